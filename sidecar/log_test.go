package sidecar

import (
	"context"
	"errors"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/solotick/solotick/sidecar/execute"
)

func TestAReloadSaysWhichJobsItAddedChangedAndRemoved(t *testing.T) {
	table := func(jobs ...string) string {
		all := "\njobs:\n"
		for _, j := range jobs {
			name, command, _ := strings.Cut(j, " ")
			all += "  - {name: " + name + ", schedule: '@yearly', exec: {command: [x" + command + "]}}\n"
		}
		return all
	}
	simulate(t, table("stays", "goes", "leaves", "turns 1"), func(w *world) {
		r := w.replica(0)
		w.at(0)
		w.swap(r, table("stays", "turns 2", "comes", "arrives"))
		w.swap(r, "maxRunning: 7"+table("stays", "turns 2", "comes", "arrives"))
		var said []string
		for _, l := range regexp.MustCompile(`msg="table reloaded" .*`).FindAllString(r.logs.String(), -1) {
			said = append(said, regexp.MustCompile(` table=\w+`).ReplaceAllString(l, ""))
		}
		want := []string{
			`msg="table reloaded" added="[comes arrives]" changed=[turns] removed="[goes leaves]" jobs=4`,
			`msg="table reloaded" added=[] changed=[] removed=[] jobs=4`,
		}
		if !slices.Equal(said, want) {
			t.Errorf("said %q\nwant %q\n%s", said, want, r.logs)
		}
	})
}

func TestTheLogOfARunBearsItsID(t *testing.T) {
	simulate(t, "\njobs:\n  - {name: minute, schedule: '* * * * *', retry: {limit: 1, backoff: 1s}, exec: {command: [x]}}", func(w *world) {
		r := w.replica(0, func(r *replica) {
			r.work = func(context.Context, execute.Run) execute.Result {
				return execute.Result{Status: execute.Failed, Err: errors.New("no luck"), Code: 1}
			}
		})
		w.at(10 * time.Second)
		run := w.started("minute")[w.origin()][0].run.ID
		for _, msg := range []string{"fired", `"trying again"`, "finished"} {
			if !regexp.MustCompile(`msg=` + msg + ` job=minute tick=\S+ run=` + run + ` `).MatchString(r.logs.String()) {
				t.Errorf("%s does not bear run=%s\n%s", msg, run, r.logs)
			}
		}
	})
}
