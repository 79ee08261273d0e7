package sim

import (
	"bytes"
	"sync"
)

// messages names what a replica sends: by its words, without UUIDs and texts that hold one, and by how often the same
// was sent before. Messages that several goroutines send at the same instant have no order, and must not need one.
type messages struct {
	mu   sync.Mutex
	sent map[uint64]uint64
}

// longest word that a message is named by.
const longest = 24

func (m *messages) key(raw []byte) uint64 {
	var k uint64
	word := false
	script, words := false, 0
	for line := range bytes.SplitSeq(raw, []byte("\r\n")) {
		if word && len(line) <= longest && !measured(line) {
			k = dice(k).throw(text(string(line)))
			script = script || words == 0 && (string(line) == "eval" || string(line) == "evalsha")
			if words++; script && words == 2 && string(line) == "1" {
				break // registering, which a replica does for all its jobs at once: one is as good as the other
			}
		}
		word = len(line) > 0 && line[0] == '$'
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.sent == nil {
		m.sent = map[uint64]uint64{}
	}
	m.sent[k]++
	return dice(k).throw(m.sent[k])
}

// measured reports whether a word is an instant that somebody measured, in milliseconds. Those of ticks are whole
// seconds.
func measured(word []byte) bool {
	return len(word) == 12 && word[0] == '9' && !bytes.HasSuffix(word, []byte("000"))
}
