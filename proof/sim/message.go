package sim

import (
	"bytes"
	"strconv"
	"strings"
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
	var words []string
	word := false
	for line := range bytes.SplitSeq(raw, []byte("\r\n")) {
		if word {
			words = append(words, string(line))
		}
		word = len(line) > 0 && line[0] == '$'
	}
	if registers(words) {
		words = words[:1] // a replica does so for all its jobs at once: one is as good as the other
	}
	var k uint64
	for _, w := range words {
		if len(w) <= longest && !measured(w) {
			k = dice(k).throw(text(w))
		}
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.sent == nil {
		m.sent = map[uint64]uint64{}
	}
	m.sent[k]++
	return dice(k).throw(m.sent[k])
}

// registers reports whether the first script of a message has one key, or many questions of one key each.
func registers(words []string) bool {
	if len(words) < 3 || words[0] != "eval" && words[0] != "evalsha" {
		return false
	}
	keys, _ := strconv.Atoi(words[2])
	return keys == 1 || len(words) > 3+keys && words[3+keys] == "1"
}

// measured reports whether a word is an instant that somebody measured, in milliseconds. Those of ticks are whole
// seconds.
func measured(word string) bool {
	return len(word) == 12 && word[0] == '9' && !strings.HasSuffix(word, "000")
}
