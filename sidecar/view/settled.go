package view

import (
	"fmt"
	"slices"
	"strings"

	"github.com/solotick/solotick/sidecar/service"
)

// Settled is an entry of the history, together with the handovers of the same tick that came before it.
type Settled struct {
	service.Entry
	Handed []service.Entry // the newest first
}

// Fold groups the handovers of a tick under the entry that settled it. entries may be of several jobs, the newest
// first. Fold returns at most most results.
func Fold(entries []service.Entry, most int) []Settled {
	type tickOf struct {
		job  string
		tick int64
	}
	var rows []Settled
	newest := map[tickOf]int{} // the row of a tick that its handovers belong to
	for _, e := range entries {
		k := tickOf{e.Job, e.Tick.UnixMilli()}
		at, known := newest[k]
		if known && e.Outcome == service.HandedOver {
			rows[at].Handed = append(rows[at].Handed, e)
			continue
		}
		newest[k] = len(rows)
		rows = append(rows, Settled{Entry: e})
	}
	return rows[:min(len(rows), most)]
}

// HandedWords says how often the tick was handed over, by which replicas, and the reason of the last handover.
func (s *Settled) HandedWords() string {
	if len(s.Handed) == 0 {
		return ""
	}
	var by []string
	for _, e := range slices.Backward(s.Handed) {
		if !slices.Contains(by, e.Replica) {
			by = append(by, e.Replica)
		}
	}
	times := "once"
	if n := len(s.Handed); n > 1 {
		times = fmt.Sprintf("%d times", n)
	}
	words := fmt.Sprintf("handed over %s before, by %s", times, strings.Join(by, ", "))
	if why := s.Handed[0].Detail; why != "" && why != s.Detail {
		words += ": " + why
	}
	return words
}
