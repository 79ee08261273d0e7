package embedded

import (
	"strings"
	"testing"

	"github.com/solotick/solotick/internal/testing/rig"
)

// Ctrl-Z in the first terminal: when it goes on, its replica would fire what the others have fired from a second store.
func TestAStoppedStoreIsNotReplacedByASecondOne(t *testing.T) {
	t.Parallel()
	addrs := []string{silent(t), rig.FreeAddr(t)}
	m := mark(addrs[0])
	if s, err := Open(addrs...); err == nil || !strings.Contains(err.Error(), "the process that serves it is stopped") {
		t.Errorf("got %v, %v", s, err)
	}
	if err := m.Close(); err != nil {
		t.Fatal(err)
	}
	if s := start(t, addrs...); !s.Serving() || s.At() != addrs[1] {
		t.Errorf("without a mark it is another program, and the store is at %s", s.At())
	}
}

func TestAStoreMarksItsAddressWhileItServes(t *testing.T) {
	p := start(t, "127.0.0.1:0")
	at := p.At()
	if !marked(at) {
		t.Error("it does not")
	}
	p.end()
	if marked(at) {
		t.Error("it has ended, and its mark is there")
	}
}
