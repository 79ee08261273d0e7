package admin

import (
	"net/http"

	"github.com/solotick/solotick/config"
	"github.com/solotick/solotick/sidecar/view"
)

// setJob saves a dynamic job for all replicas. It refuses the name of a job in the table: only the table may change
// that job.
func (a *api) setJob(r *http.Request) (*answer, error) {
	name := r.PathValue("job")
	if err := a.operator.Changeable(name); err != nil {
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
	operator, err := a.as(author{})
	if err != nil {
		return nil, err
	}
	created, err := operator.SetJob(r.Context(), j)
	if err != nil {
		return nil, err
	}
	a.Log.Info("job set", "job", name, "new", created)
	return &answer{made(created), view.SetJob{Job: name, Created: created}}, nil
}

func (a *api) deleteJob(r *http.Request) (*answer, error) {
	name := r.PathValue("job")
	operator, err := a.as(author{})
	if err != nil {
		return nil, err
	}
	if err := operator.DeleteJob(r.Context(), name); err != nil {
		return nil, err
	}
	a.Log.Info("job deleted", "job", name)
	return &answer{body: view.DeletedJob{Job: name, Deleted: true}}, nil
}
