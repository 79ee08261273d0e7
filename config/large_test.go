package config

import (
	"crypto/sha256"
	"fmt"
	"hash"
	"runtime"
	"strings"
	"testing"
	"time"
)

// The rows of a table of thousands of jobs are read in half a second. This test bounds what they take by figures that
// no machine's speed changes: allocations, schedules that are kept, and how much of the table is in memory as JSON.
func TestARowTakesLittleToRead(t *testing.T) {
	const jobs, expressions = 2000, 50
	var b strings.Builder
	b.WriteString("service: s\ndefaults: {timeZone: Europe/Berlin}\njobs:\n")
	for i := range jobs {
		fmt.Fprintf(&b, "  - {name: j%d, schedule: \"%d 4 * * *\", timeZone: Europe/Paris, http: {url: \"http://127.0.0.1/%d\"}}\n",
			i, i%expressions, i)
	}
	data := []byte(b.String())
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	table, err := parse("table.yaml", data, nil, time.Now())
	runtime.ReadMemStats(&after)
	if err != nil {
		t.Fatal(err)
	}
	if each := (after.Mallocs - before.Mallocs) / jobs; each > 175 {
		t.Errorf("a row takes %d allocations", each)
	}
	kept := map[any]bool{}
	for _, j := range table.Jobs {
		kept[j.Schedule] = true
	}
	if len(kept) != expressions {
		t.Errorf("%d expressions are %d schedules", expressions, len(kept))
	}
	h := &widest{Hash: sha256.New()}
	if (jsonHash{h}).table(table).digits(64) != newJSONHash().table(table).digits(64) || h.most > 4096 {
		t.Errorf("the hash is taken of %d bytes at once", h.most)
	}
}

// widest is a hash that tells how much was written to it at once.
type widest struct {
	hash.Hash
	most int
}

func (w *widest) Write(p []byte) (int, error) {
	w.most = max(w.most, len(p))
	return w.Hash.Write(p)
}
