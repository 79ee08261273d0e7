package admin

import (
	"cmp"
	"encoding/json"
	"math"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/solotick/solotick/config"
	"github.com/solotick/solotick/sidecar/service"
	"github.com/solotick/solotick/sidecar/view"
)

const (
	someRuns = 100  // are answered by default
	maxRuns  = 1000 // are answered at most

	maxHistory = 2 << 20 // bytes of runs are answered: those of long failures are fewer
)

// shows answers with a part of a look.
func (a *api) shows(part func(view.Status) any) http.HandlerFunc {
	return asJSON(func(r *http.Request) (*answer, error) {
		table := a.Replica.Table()
		l, err := view.Read(r.Context(), a.Store, table, table.Jobs)
		if err != nil {
			return nil, err
		}
		return &answer{body: part(l.Status())}, nil
	})
}

func (a *api) job(r *http.Request) (*answer, error) {
	j, err := a.operator.Find(r.Context(), r.PathValue("job"))
	if err != nil {
		return nil, err
	}
	l, err := view.Read(r.Context(), a.Store, a.Replica.Table(), []config.Job{j})
	if err != nil {
		return nil, err
	}
	whole := view.WholeJob{Job: l.Status().Jobs[0], Target: view.Target(j), Settings: view.Settings(j)}
	return &answer{body: whole}, nil
}

// tick answers what became of a tick; "now" stands for the job as it stands.
func (a *api) tick(r *http.Request) (*answer, error) {
	j, err := a.operator.FindAny(r.Context(), r.PathValue("job"))
	if err != nil {
		return nil, err
	}
	at, err := tickOf(r)
	if err != nil {
		return nil, err
	}
	w, err := view.Explain(r.Context(), a.Store, a.Replica.Table(), j, at)
	return &answer{body: w}, err
}

// tickOf reads the tick of the path; zero for "now".
func tickOf(r *http.Request) (at time.Time, err error) {
	if text := r.PathValue("tick"); text != "now" {
		if at, err = time.Parse(time.RFC3339, text); err != nil {
			return at, refuse(http.StatusBadRequest, "2026-11-23T08:00:00Z, or now",
				"%q is not a time as in RFC 3339", text)
		}
	}
	return at, nil
}

// self answers with what this replica knows itself, while Redis may not answer.
func (a *api) self(r *http.Request) (*answer, error) {
	table := a.Replica.Table()
	now, ok := a.Store.Now()
	if !ok {
		now = time.Now()
	}
	self := view.Self{Replica: a.Name, Service: table.Service, Version: a.Version, Table: table.Hash,
		Time: view.Stamp(now), Ready: true, Jobs: []view.OwnJob{},
		Redis: view.NewRedis(a.Redis, a.Replica.RedisTrouble())}
	if err := a.Replica.WhyIdle(); err != nil {
		self.Ready, self.NotReady = false, err.Error()
	}
	for _, j := range table.Jobs {
		self.Jobs = append(self.Jobs, view.NewOwnJob(table, j, a.Replica.OwnRuns(j.Name), now))
	}
	return &answer{body: self}, nil
}

// runs answers with the newest runs of one job or of all; with each, the newest few of each job.
func (a *api) runs(r *http.Request) (*answer, error) {
	p := r.URL.Query()
	limit, err := number(p, "limit", someRuns, maxRuns)
	each, wrong := number(p, "each", 0, maxRuns)
	if err = cmp.Or(err, wrong); err != nil {
		return nil, err
	}
	if failed := p.Get("failed"); failed != "" && failed != "true" && failed != "false" {
		return nil, refuse(http.StatusBadRequest, "", "failed is true or false")
	}
	if each > 0 {
		if p.Get("job") != "" || p.Get("limit") != "" {
			return nil, refuse(http.StatusBadRequest, "", "each stands in place of job and limit")
		}
		limit = math.MaxInt
	}
	entries, err := a.operator.Search(r.Context(), service.Search{Jobs: strings.Fields(p.Get("job")),
		Failed: p.Get("failed") == "true", Limit: limit, Each: each})
	if err != nil {
		return nil, err
	}
	size, rows := 0, []json.RawMessage{}
	for _, e := range entries {
		row, _ := json.Marshal(view.NewEntry(e)) // never fails
		if size += len(row); size > maxHistory {
			break
		}
		rows = append(rows, row)
	}
	return &answer{body: rows}, nil
}

func (a *api) events(r *http.Request) (*answer, error) {
	p := r.URL.Query()
	limit, err := number(p, "limit", someRuns, maxRuns)
	if err != nil {
		return nil, err
	}
	acts, err := a.operator.Acts(r.Context(), p.Get("job"), limit)
	return &answer{body: view.NewEvents(acts)}, err
}

// number reads a parameter from 1 to most.
func number(p url.Values, name string, otherwise, most int) (int, error) {
	if !p.Has(name) {
		return otherwise, nil
	}
	n, err := strconv.Atoi(p.Get(name))
	if err != nil || n < 1 || n > most {
		return 0, refuse(http.StatusBadRequest, "", "%s is not a number from 1 to %d", name, most)
	}
	return n, nil
}
