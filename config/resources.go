package config

import (
	"fmt"
	"math"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// leastMemory is less than any program needs: who writes less has forgotten the unit.
const leastMemory = 1 << 20

func resourceKeys() []key {
	return []key{
		{name: "memory", kind: kindBytes, def: none, example: "128Mi", form: bytesForm,
			show: shown, common: true, aka: []string{"mem", "memoryLimit", "ram"},
			decode: (*decoder).memory,
			doc:    "what its processes may hold; a run that needs more is killed and says so"},
		{name: "cpu", kind: kindDuration, def: none, example: "60s",
			show: shown, common: true, aka: []string{"cpuTime", "cpuLimit"},
			decode: (*decoder).cpu,
			doc:    "time on a CPU, in whole seconds: no share of one, as in Kubernetes, but a sum; a run that uses it up is killed and says so"},
		{name: "nice", kind: kindNumber, def: "0", example: "10",
			show: shown, common: true, aka: []string{"niceness", "priority"},
			decode: func(d *decoder, e entry) { d.number(e, &d.job.Resources.Nice) },
			form:   form{least: -20, most: 19},
			doc:    "from -20 to 19: how much it stands back behind other processes; below 0 needs the right to"},
	}
}

// quantity is a number of bytes as Kubernetes writes it.
var quantity = regexp.MustCompile(bytesForm.pattern)

var quantityUnits = map[string]int64{
	"": 1, "k": 1e3, "M": 1e6, "G": 1e9, "Ki": 1 << 10, "Mi": 1 << 20, "Gi": 1 << 30,
}

func (d *decoder) memory(e entry) {
	t := d.scalar(e, "!!str", "!!int")
	if !t.ok() {
		return
	}
	m := quantity.FindStringSubmatch(t.value)
	if m == nil {
		d.badQuantity(t)
		return
	}
	n, err := strconv.ParseInt(m[1], 10, 64)
	unit := quantityUnits[m[2]]
	switch {
	case err != nil || n > math.MaxInt64/unit:
		d.bad(t, "", "must be less than 8Ei")
	case n*unit < leastMemory:
		hint := ""
		if m[2] == "" && !t.opaque {
			hint = fmt.Sprintf("a number without a unit is bytes; write %sMi", m[1])
		}
		d.bad(t, hint, "must be at least 1Mi")
	default:
		d.job.Resources.Memory = n * unit
	}
}

// looseQuantity is how people write numbers of bytes elsewhere.
var looseQuantity = regexp.MustCompile(`(?i)^\s*([0-9]{1,15})\s*(k|m|g)(i?)b?\s*$`)

func (d *decoder) badQuantity(t text) {
	const form = "write a number and one of k, M, G, Ki, Mi, Gi: 128Mi"
	m := looseQuantity.FindStringSubmatch(t.value)
	if m == nil || t.opaque {
		d.bad(t, form, "not a number of bytes")
		return
	}
	unit := strings.ToUpper(m[2]) + strings.ToLower(m[3])
	if unit == "K" {
		unit = "k"
	}
	d.bad(t, "write "+m[1]+unit, "not a number of bytes")
}

// milliCPU is what Kubernetes takes for thousandths of a CPU, and Go for minutes.
var milliCPU = regexp.MustCompile(`^[0-9]{3,}m$`)

func (d *decoder) cpu(e entry) {
	t := d.duration(e, &d.job.Resources.CPU, func(v time.Duration) string {
		if complaint := atLeast(time.Second)(v); complaint != "" || v%time.Second == 0 {
			return complaint
		}
		return "must be whole seconds"
	})
	if t.ok() && milliCPU.MatchString(t.value) {
		d.warn(t.node, "it is a sum of time; if that is meant write "+shortDuration(d.job.Resources.CPU),
			"%s: these are %v minutes of CPU time, no share of a CPU", t.label, d.job.Resources.CPU.Minutes())
	}
}

// checkResources refuses limits for what is no process of ours. Those of defaults are for the jobs that are.
func (d *decoder) checkResources() {
	j := d.job
	if j.HTTP == nil || j.Exec != nil {
		return
	}
	if j.own("resources") {
		d.fail(j.at["resources"].node, "limit the app that it calls, or its timeout",
			"resources: a job with http starts no process that could be limited")
	}
	j.Resources = Resources{}
}
