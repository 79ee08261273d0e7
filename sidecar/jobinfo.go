package sidecar

import "github.com/prometheus/client_golang/prometheus"

// jobInfo is solotick_job_info: what the jobs at work are, at each scrape. An alert takes owner, runbook and severity
// from it. The jobs' other labels are not in it: all series of a metric have the same label names, and each job may
// have others.
type jobInfo struct{ jobs func() roster }

var jobInfoDesc = perJob("job_info", "1; when the job runs, whom to call and what to do when it fails.",
	"schedule", "time_zone", "guarantee", "owner", "runbook", "severity")

// Describe implements prometheus.Collector.
func (jobInfo) Describe(ch chan<- *prometheus.Desc) { ch <- jobInfoDesc }

// Collect implements prometheus.Collector.
func (i jobInfo) Collect(ch chan<- prometheus.Metric) {
	for _, j := range i.jobs() {
		if sp := j.inForce(); sp != nil { // it may have left the table since the roster was read
			ch <- prometheus.MustNewConstMetric(jobInfoDesc, prometheus.GaugeValue, 1,
				sp.Name, sp.Schedule.String(), sp.TimeZone, string(sp.Guarantee), sp.Owner, sp.Runbook,
				sp.Labels["severity"])
		}
	}
}
