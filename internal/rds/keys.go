package rds

import "strings"

// Keys are the Redis keys of one service. The service in braces is the hash tag: all of them share one Cluster slot,
// so that every script is legal there.
type Keys struct {
	Prefix, Running, Seen, DueJobs, DueTimers, Replicas, Reports, Events, Acts string
}

// NewKeys names the keys of a service.
func NewKeys(service string) Keys {
	p := "solotick:{" + service + "}:"
	return Keys{Prefix: p, Running: p + "running", Seen: p + "seen", DueJobs: p + "due", DueTimers: p + "timers:due",
		Replicas: p + "replicas", Reports: p + "reports", Events: p + "events", Acts: p + "acts"}
}

const (
	// TimerJobs is the name by which the ledger that all timers of a service share is registered.
	TimerJobs = "@timers"

	timerPrefix = "timer:" // of the job of a single timer

	occurrence = "@" // between a timer and one time of its schedule; no id has it
)

// TimerJob is the name of a timer's job in the due set, in claims and in the history.
func TimerJob(id string) string { return timerPrefix + id }

// IsTimer reports whether the job is a timer's.
func IsTimer(job string) bool { return strings.HasPrefix(job, timerPrefix) }

// TimerID is the id of the timer that the job belongs to.
func TimerID(job string) string { return strings.TrimPrefix(job, timerPrefix) }

// OccurrenceJob is the job of one time of a timer with a schedule, in milliseconds.
func OccurrenceJob(job string, tick int64) string { return job + occurrence + Itoa(tick) }

// IsOccurrence reports whether a job is one time of a timer with a schedule.
func IsOccurrence(job string) bool { return SeriesJob(job) != job }

// SeriesJob is the job by which users know a job: of one time of a timer with a schedule, that of the timer.
func SeriesJob(job string) string {
	if IsTimer(job) {
		job, _, _ = strings.Cut(job, occurrence)
	}
	return job
}

// History is the key of the stream that keeps the newest entries of the job's history, or of that of all timers.
func (k Keys) History(job string) string { return k.Prefix + "history:" + ledgerJob(job) }

// Failures is the key of the stream that keeps the newest entries of runs that failed.
func (k Keys) Failures(job string) string { return k.Prefix + "failures:" + ledgerJob(job) }

// Lock is the key of a job's lock or, under Allow, of the lock of one of its ticks, which slot names.
func (k Keys) Lock(job, slot string) string { return k.Prefix + "lock:" + job + slot }

// ledgerJob is the job whose ledger keeps what the job does: itself, or the one that all timers share.
func ledgerJob(job string) string {
	if IsTimer(job) {
		return TimerJobs
	}
	return job
}

// Ledger is the key of the job's own ledger, or of the ledger that all timers share.
func (k Keys) Ledger(job string) string { return k.Prefix + "job:" + ledgerJob(job) }

// Due is the key of the set that keeps the due members of a job.
func (k Keys) Due(job string) string {
	if ledgerJob(job) != job {
		return k.DueTimers
	}
	return k.DueJobs
}

// Timer is the key of the entry of the timer that the job belongs to.
func (k Keys) Timer(job string) string { return k.Prefix + job }

// Memo is the key of the memo that Redis keeps of a uuid for a day: of a run that was taken over, or of an operator's
// request.
func (k Keys) Memo(uuid string) string { return k.Prefix + "memo:" + uuid }
