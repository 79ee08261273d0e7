package view

import (
	"time"

	"github.com/solotick/solotick/config"
	"github.com/solotick/solotick/internal/diagnosis"
	"github.com/solotick/solotick/sidecar/service"
)

// Self is what a replica knows itself, without Redis, in the JSON of GET /v1/replica.
type Self struct {
	Replica  string   `json:"replica"`
	Service  string   `json:"service"`
	Version  string   `json:"version"`
	Table    string   `json:"table"`
	Time     string   `json:"time"` // Redis', or else the replica's
	Ready    bool     `json:"ready"`
	NotReady string   `json:"notReady,omitempty"`
	Redis    Redis    `json:"redis"`
	Jobs     []OwnJob `json:"jobs"`
}

// Redis is how a replica gets on with Redis.
type Redis struct {
	OK      bool   `json:"ok"`
	Address string `json:"address,omitempty"`
	Since   string `json:"since,omitempty"` // when the trouble began
	Says    string `json:"says,omitempty"`  // the end of a sentence that begins with Redis
	Error   string `json:"error,omitempty"`
	Hint    string `json:"hint,omitempty"`
}

// OwnJob is a job as one replica knows it.
type OwnJob struct {
	Job       string `json:"job"`
	Schedule  string `json:"schedule"`
	TimeZone  string `json:"timeZone"`
	Guarantee string `json:"guarantee"`
	Suspended bool   `json:"suspended"`
	Next      string `json:"next,omitempty"`
	Running   []Run  `json:"running"` // on this replica
	Last      *Entry `json:"last,omitempty"`
}

// Trouble is why Redis is of no use, and since when.
type Trouble struct {
	Since time.Time
	diagnosis.Diagnosis
}

// NewRedis returns how a replica gets on with the Redis at an address; t is nil if there is no trouble.
func NewRedis(address string, t *Trouble) Redis {
	if t == nil {
		return Redis{OK: true, Address: address}
	}
	return Redis{false, address, Stamp(t.Since), t.Says, t.Reason, t.Hint}
}

// NewOwnJob returns a job of which a replica knows what it ran itself.
func NewOwnJob(t *config.Table, j config.Job, own service.Ledger, now time.Time) OwnJob {
	l := &Look{Table: t, Now: now}
	return OwnJob{j.Name, j.Schedule.String(), j.TimeZone, string(j.Guarantee), j.Suspend, Stamp(l.Next(j)),
		newRuns(own.Running), entry(own.Last)}
}
