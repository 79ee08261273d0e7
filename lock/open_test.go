package lock

import (
	"fmt"
	"regexp"
	"strings"
)

// opened is what `open` of a ledger says, as words: the runs, oldest first, `-TICK@CAME` and `+TICK@CAME` of what stands
// behind a run, the ticks that are due, those that are due by hand, those with a fate, and `TICK:SUCCEEDED` of each.
type opened struct{ runs, behind, due, byHand, counted, since string }

var openEntry = regexp.MustCompile(`^(\d+)(=|\*|~[+<]?)([^:]*):(\d*)(!?)$`)

func openIn(text string) (o opened) {
	for entry := range strings.FieldsSeq(text) {
		m := openEntry.FindStringSubmatch(entry)
		if m == nil {
			panic(wrong{fmt.Sprintf("no entry of open: %q", entry)})
		}
		switch m[2] {
		case "=":
			o.runs += m[3] + " "
		case "~":
			o.due += m[1] + " "
		case "*":
			o.byHand += m[1] + " "
		case "~+":
			o.behind += "+" + m[1] + "@" + m[3] + " "
		case "~<":
			o.behind += "-" + m[1] + "@" + m[3] + " "
		}
		if m[5] != "" {
			o.counted += m[1] + " "
		}
		if m[4] != "" {
			o.since += " " + m[1] + ":" + m[4]
		}
	}
	return o
}
