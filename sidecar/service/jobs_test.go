package service

import (
	"strings"
	"testing"

	"github.com/solotick/solotick/config"
)

func TestAJobIsFoundByItsNameOrTheNearestIsNamed(t *testing.T) {
	whole := table(t)
	if j, err := find(whole, whole.Jobs, "tidy-up"); err != nil || j.Schedule == nil {
		t.Errorf("%+v, %v", j, err)
	}
	_, err := find(whole, whole.Jobs, "report")
	refused(t, err, NoJob, `there is no job "report"`, `did you mean "reports"?`)
	_, err = find(whole, whole.Jobs, "quite-another")
	refused(t, err, NoJob, `there is no job "quite-another"`, "")
	for _, key := range []string{"jobs", "defaults", config.Names} {
		broken := &config.Table{Unknown: map[string]string{key: "it cannot be read"}}
		if j, err := find(broken, nil, "report"); err != nil || j.Name != "report" {
			t.Errorf("without %s any name may be that of a job: %+v, %v", key, j, err)
		}
	}
}

func TestOnlyAJobWithClaimsAndAKnownScheduleIsBackfilled(t *testing.T) {
	jobs := []config.Job{table(t).Jobs[0], {Name: "warm-cache", Guarantee: config.EveryReplica}, {Name: "unset"}}
	o := &Operator{Table: func() *config.Table { return &config.Table{Jobs: jobs} }}
	if j, err := o.Scheduled(t.Context(), "reports"); err != nil || j.Name != "reports" {
		t.Errorf("%+v, %v", j, err)
	}
	if j, err := o.Claimed(t.Context(), "unset"); err != nil || j.Name != "unset" {
		t.Errorf("%+v, %v", j, err)
	}
	_, err := o.Scheduled(t.Context(), "unset")
	refused(t, err, Partial, `the schedule of job "unset" is not known here`,
		"backfill needs a table without problems, and the variables of the schedule")
	for _, ask := range []func() error{
		func() error { _, err := o.Claimed(t.Context(), "warm-cache"); return err },
		func() error { _, err := o.Scheduled(t.Context(), "warm-cache"); return err },
	} {
		refused(t, ask(), EveryReplica,
			`job "warm-cache" has guarantee every-replica: each replica runs it by itself, without Redis`, "")
	}
}

func TestEachJobIsPickedOnce(t *testing.T) {
	whole := table(t)
	o := &Operator{Table: func() *config.Table { return whole }}
	for want, names := range map[string][]string{"tidy-up reports": {"tidy-up", "reports", "tidy-up"}, "reports tidy-up": nil} {
		picked, err := o.Pick(t.Context(), names...)
		if got := strings.Join(picked, " "); err != nil || got != want {
			t.Errorf("of %q %q is picked, %v; want %q", names, got, err, want)
		}
	}
	for pattern, want := range map[string]string{"*": "reports tidy-up", "t*": "tidy-up", "tidy-?p": "tidy-up", "[a-s]*": "reports"} {
		picked, err := o.Pick(t.Context(), pattern, "reports")
		if got := strings.Join(picked, " "); err != nil || got != want && got != want+" reports" {
			t.Errorf("of %s and reports %q is picked, %v; want %q", pattern, got, err, want)
		}
	}
	_, err := o.Pick(t.Context(), "reports", "tidyup")
	refused(t, err, NoJob, `there is no job "tidyup"`, `did you mean "tidy-up"?`)
	_, err = o.Pick(t.Context(), "reports", "send-*")
	refused(t, err, NoJob, `no job matches "send-*"`, "")
	_, err = o.Pick(t.Context(), "[a-")
	refused(t, err, Invalid, `the pattern "[a-" has no end`, "send-*, or [ab]*")
	whole.Unknown = map[string]string{config.Names: "there is no table"}
	for _, names := range [][]string{nil, {"*"}} {
		_, err = o.Pick(t.Context(), names...)
		refused(t, err, Partial, "not all jobs are known here: there is no table", "")
	}
}
