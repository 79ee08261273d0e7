package main

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/solotick/solotick/internal/proof/rig"
)

// maxExplained bounds how much is said of one kind of fault.
const maxExplained = 5

// explain writes what the app and the replicas' logs know of ticks that went wrong.
func explain(w io.Writer, what string, ticks []tickOf, seen []rig.Request, replicas []*rig.Replica) {
	for i, t := range ticks {
		if i == maxExplained {
			fmt.Fprintf(w, "… and %d more\n", len(ticks)-i)
			return
		}
		stamp := t.tick.UTC().Format("2006-01-02T15:04:05.000Z")
		fmt.Fprintf(w, "%s: %s %s\n", what, t.job, stamp)
		for _, r := range seen {
			if r.Job == t.job && r.Tick.Equal(t.tick) {
				fmt.Fprintf(w, "  app: from %s, run %s, kind %s, token %d, arrived %s, ended %s\n", r.Replica, r.Run, r.Kind, r.Token,
					r.Arrived.UTC().Format("15:04:05.000000"), r.Ended.UTC().Format("15:04:05.000000"))
			}
		}
		for _, r := range replicas {
			grep(w, r, `"job":"`+t.job+`"`, stamp)
		}
	}
}

// grep writes the lines of a replica's log that hold all of the texts.
func grep(w io.Writer, r *rig.Replica, texts ...string) {
	f, err := os.Open(r.Log)
	if err != nil {
		fmt.Fprintf(w, "  %s: %v\n", r.Name, err)
		return
	}
	defer f.Close()
lines:
	for in := bufio.NewScanner(f); in.Scan(); {
		for _, t := range texts {
			if !strings.Contains(in.Text(), t) {
				continue lines
			}
		}
		fmt.Fprintf(w, "  %s: %s\n", r.Name, in.Text())
	}
}
