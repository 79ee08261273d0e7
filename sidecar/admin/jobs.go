package admin

import (
	"context"
	"fmt"
	"net/http"

	"github.com/solotick/solotick/config"
	"github.com/solotick/solotick/sidecar/admin/view"
)

// setJob keeps a job for all replicas. It cannot be one of the table's: who may talk to the API must not change those.
func (a *api) setJob(r *http.Request) (*answer, error) {
	name := r.PathValue("job")
	if err := a.notOfTheTable(name); err != nil {
		return nil, err
	}
	body, err := document(r)
	if err != nil {
		return nil, err
	}
	j, err := config.ParseJob(name, body)
	if err != nil {
		return nil, err
	}
	if p := a.Replica.Table().Admits(j); p != nil {
		return nil, config.Problems{*p}
	}
	ctx, cancel := context.WithTimeout(r.Context(), operateLimit)
	defer cancel()
	created, err := a.Store.SetJob(ctx, name, j.Source)
	if err != nil {
		return nil, err
	}
	a.Log.Info("job set", "job", name, "new", created)
	return &answer{made(created), view.SetJob{Job: name, Created: created}}, nil
}

func (a *api) deleteJob(r *http.Request) (*answer, error) {
	if _, err := parameters(r); err != nil {
		return nil, err
	}
	name := r.PathValue("job")
	if err := a.notOfTheTable(name); err != nil {
		return nil, err
	}
	if !config.IsName(name) {
		return nil, unknownJob(name, a.Replica.Jobs())
	}
	ctx, cancel := context.WithTimeout(r.Context(), operateLimit)
	defer cancel()
	deleted, err := a.Store.DeleteJob(ctx, name)
	if err == nil && !deleted {
		err = unknownJob(name, a.Replica.Jobs())
	}
	if err != nil {
		return nil, err
	}
	a.Log.Info("job deleted", "job", name)
	return &answer{body: view.DeletedJob{Job: name, Deleted: true}}, nil
}

func (a *api) notOfTheTable(name string) error {
	for _, j := range a.Replica.Table().Jobs {
		if j.Name == name {
			return &refusal{status: http.StatusConflict, err: fmt.Sprintf("job %q is in the table, and changes there alone", name)}
		}
	}
	return nil
}

// named is the job of that name: one of those that are at work here, or one that was just made.
func (a *api) named(ctx context.Context, name string) (config.Job, error) {
	jobs := a.Replica.Jobs()
	for _, j := range jobs {
		if j.Name == name {
			return j, nil
		}
	}
	_, sources, err := a.Store.DynamicJobs(ctx)
	if err != nil {
		return config.Job{}, err
	}
	if source := sources[name]; source != nil {
		if j, err := config.ParseJob(name, source); err == nil {
			return *j, nil
		}
	}
	return config.Job{}, unknownJob(name, jobs)
}

// unknownJob is the refusal of a name that no job has.
func unknownJob(name string, jobs []config.Job) *refusal {
	var names []string
	for _, j := range jobs {
		names = append(names, j.Name)
	}
	f := &refusal{status: http.StatusNotFound, err: "there is no job of that name", hint: "GET /v1/jobs shows all jobs"}
	if near := config.Nearest(name, names); near != "" {
		f.hint = fmt.Sprintf("did you mean %q?", near)
	}
	return f
}
