package convert

import (
	"cmp"
	"fmt"
	"github.com/solotick/solotick/config/strict"
	"strconv"
	"strings"
	"time"

	"go.yaml.in/yaml/v4"
)

// defaultRetries is Kubernetes' default for backoffLimit.
const defaultRetries = 6

// maxRetries is the highest limit that a table accepts.
const maxRetries = 100

// cronJob is a CronJob while it is read.
type cronJob struct {
	job
	elsewhere map[string]string // variables whose values are not in the manifest, and where they are
}

func (m *manifests) cronJob(o object) {
	name, namespace := o.get("metadata", "name").text(), o.get("metadata", "namespace").text()
	if name == "" {
		name = strings.TrimRight(o.get("metadata", "generateName").text(), "-")
	}
	c := &cronJob{elsewhere: map[string]string{}}
	c.at = fmt.Sprintf("%s:%d", m.file, o.node.Line)
	c.was = "CronJob " + strings.TrimLeft(namespace+"/"+name, "/")
	c.wish = []string{name, namespace + "-" + name}
	spec := o.get("spec")
	c.schedules(spec)
	c.policies(spec)
	of := spec.get("jobTemplate", "spec")
	c.attempts(of)
	c.rest("CronJob", spec, "schedule timeZone startingDeadlineSeconds concurrencyPolicy suspend jobTemplate")
	c.rest("Job", of, "backoffLimit activeDeadlineSeconds template ttlSecondsAfterFinished selector")
	c.pod(of.get("template", "spec"))
	m.jobs = append(m.jobs, c.job)
}

// schedules reads when the job runs.
func (c *cronJob) schedules(spec object) {
	c.schedule = strings.TrimSpace(c.word(spec, "schedule"))
	c.timeZone = c.word(spec, "timeZone")
	for _, prefix := range []string{"TZ=", "CRON_TZ="} {
		if zoned, ok := strings.CutPrefix(c.schedule, prefix); ok {
			zone, rest := word(zoned)
			c.schedule = strings.TrimSpace(rest)
			c.timeZone = cmp.Or(c.timeZone, zone)
			c.note("time zone", "%s%s in the schedule is timeZone here", prefix, zone)
		}
	}
	c.schedule = translateKubernetes(c.schedule)
	if period, ok := strings.CutPrefix(c.schedule, "@every "); ok {
		d, err := time.ParseDuration(strings.TrimSpace(period))
		if err == nil && d >= time.Second && d%time.Second != 0 { // as Kubernetes does
			c.schedule = "@every " + strict.ShortDuration(d.Truncate(time.Second))
		}
		c.note("schedule",
			"Kubernetes counts @every from the moment that it saw the CronJob, Solotick from 1970-01-01T00:00:00Z")
	}
}

// policies reads what happens to a tick in special cases.
func (c *cronJob) policies(spec object) {
	switch policy := c.word(spec, "concurrencyPolicy"); policy {
	case "", "Allow":
	case "Forbid", "Replace":
		c.concurrency = policy
	default:
		c.lose("concurrencyPolicy %q is none", policy)
	}
	if spec.get("startingDeadlineSeconds").is() {
		c.deadline = c.seconds(spec, "startingDeadlineSeconds")
		if c.deadline == 0 && c.lost == "" {
			c.deadline = time.Second
			c.note("starting deadline",
				"startingDeadlineSeconds: 0 would be no limit here; 1s is the shortest that says what it said")
		}
	}
	switch suspend := c.word(spec, "suspend"); suspend {
	case "", "false":
	case "true":
		c.suspend = true
	default:
		c.lose("suspend %q is neither true nor false", suspend)
	}
	succeeded, failed := c.word(spec, "successfulJobsHistoryLimit"), c.word(spec, "failedJobsHistoryLimit")
	if succeeded != "" && succeeded != "3" || failed != "" && failed != "1" { // the API fills in its own
		c.note("history",
			"the history limits have no place here: `solotick history` shows what Redis keeps, failures longest")
	}
}

// attempts reads the retries and the time limit of the job.
func (c *cronJob) attempts(spec object) {
	c.retries = defaultRetries
	if text := c.word(spec, "backoffLimit"); text != "" {
		n, err := strconv.ParseUint(text, 10, 31)
		if err != nil {
			c.lose("backoffLimit %q is no number", text)
		}
		if c.retries = int(n); n > maxRetries {
			c.retries = maxRetries
			c.note("retries", "backoffLimit: %d is more than retry.limit takes", n)
		}
	}
	if c.retries > 0 {
		// Kubernetes also replaces a Pod whose node went away.
		c.guarantee = "at-least-once"
	}
	if spec.get("activeDeadlineSeconds").is() {
		c.timeout = c.seconds(spec, "activeDeadlineSeconds")
		if c.retries > 0 {
			c.note("timeout", "activeDeadlineSeconds was for all attempts together, timeout is for each")
		}
	}
	for _, key := range []string{"parallelism", "completions"} {
		if n := c.word(spec, key); n != "" && n != "1" {
			c.note("parallel Pods", "%s: %s: here one run is one command", key, n)
		}
	}
}

// word returns a scalar's text. Another kind of value loses the job.
func (c *cronJob) word(o object, key string) string {
	v := o.get(key)
	if v.is() && v.node.Kind != yaml.ScalarNode {
		c.lose("%s must be one value, not a list or mapping", key)
		return ""
	}
	return v.text()
}

func (c *cronJob) seconds(o object, key string) time.Duration {
	text := c.word(o, key)
	n, err := strconv.ParseUint(text, 10, 31)
	if err != nil {
		c.lose("%s %q is no number of seconds", key, text)
		return 0
	}
	const longest = 366 * 24 * time.Hour // that a table accepts
	return min(time.Duration(n)*time.Second, longest)
}

// handled has the keys that the import reads, and those that matter only to Kubernetes.
var handled = map[string]map[string]bool{
	"CronJob": words("successfulJobsHistoryLimit failedJobsHistoryLimit"),
	"Job": words("parallelism completions completionMode manualSelector podReplacementPolicy suspend " +
		"backoffLimitPerIndex"),
	"Pod": words("restartPolicy dnsPolicy schedulerName terminationGracePeriodSeconds enableServiceLinks " +
		"imagePullSecrets serviceAccount automountServiceAccountToken preemptionPolicy priority " +
		"activeDeadlineSeconds initContainers"),
	"container": words("name image imagePullPolicy terminationMessagePath terminationMessagePolicy workingDir " +
		"envFrom volumeMounts"),
}

// rest notes the keys that have a value and no place in a table.
func (c *cronJob) rest(what string, o object, read string) {
	var left []string
	known := words(read)
	for _, key := range o.keys() {
		if !known[key] && !handled[what][key] && !o.get(key).empty() {
			left = append(left, key)
		}
	}
	if len(left) > 0 {
		c.note("settings of the "+what, "no place here for the %s's %s", what, strings.Join(left, ", "))
	}
}
