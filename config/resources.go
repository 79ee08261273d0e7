package config

import (
	"fmt"
	"math"
	"regexp"
	"strconv"
	"strings"

	"github.com/solotick/solotick/config/strict"
)

// leastMemory is less than any program needs: a smaller number lacks its unit.
const leastMemory = 1 << 20

func (d *decoder) resourceKeys() []strict.Key {
	return []strict.Key{
		{Name: "memory", Kind: strict.KindBytes, Default: strict.None, Example: "128Mi", Form: bytesForm,
			Show: strict.Shown, Common: true, Also: []string{"mem", "memoryLimit", "ram"},
			Decode: d.memory,
			Doc:    "how much memory its processes may use; a run that needs more is killed, and its detail says so"},
		{Name: "nice", Kind: strict.KindNumber, Default: "0", Example: "10",
			Show: strict.Shown, Common: true, Also: []string{"niceness"},
			Decode: func(e strict.Entry) { d.Number(e, &d.job.Resources.Nice) },
			Form:   strict.Form{Least: -20, Most: 19},
			Doc:    "niceness of its processes, from -20 to 19; values below 0 need the privilege"},
	}
}

// quantity is a number of bytes as Kubernetes writes it.
var quantity = regexp.MustCompile(bytesForm.Pattern)

var quantityUnits = map[string]int64{
	"": 1, "k": 1e3, "M": 1e6, "G": 1e9, "Ki": 1 << 10, "Mi": 1 << 20, "Gi": 1 << 30,
}

func (d *decoder) memory(e strict.Entry) {
	t := d.Scalar(e, "!!str", "!!int")
	if !t.OK() {
		return
	}
	m := quantity.FindStringSubmatch(t.Value)
	if m == nil {
		d.badQuantity(t)
		return
	}
	n, err := strconv.ParseInt(m[1], 10, 64)
	unit := quantityUnits[m[2]]
	switch {
	case err != nil || n > math.MaxInt64/unit:
		d.Bad(t, "", "must be less than 8Ei")
	case n*unit < leastMemory:
		hint := ""
		if m[2] == "" && !t.Opaque {
			hint = fmt.Sprintf("a number without a unit is bytes; write %sMi", m[1])
		}
		d.Bad(t, hint, "must be at least 1Mi")
	default:
		d.job.Resources.Memory = n * unit
	}
}

// looseQuantity is how people write numbers of bytes elsewhere.
var looseQuantity = regexp.MustCompile(`(?i)^\s*([0-9]{1,15})\s*(k|m|g)(i?)b?\s*$`)

func (d *decoder) badQuantity(t strict.Text) {
	const form = "write a number and one of k, M, G, Ki, Mi, Gi: 128Mi"
	m := looseQuantity.FindStringSubmatch(t.Value)
	if m == nil || t.Opaque {
		d.Bad(t, form, "not a number of bytes")
		return
	}
	unit := strings.ToUpper(m[2]) + strings.ToLower(m[3])
	if unit == "K" {
		unit = "k"
	}
	d.Bad(t, "write "+m[1]+unit, "not a number of bytes")
}

// checkResources refuses limits of a job without exec, unless they come from defaults, where they are for the jobs with
// exec.
func (d *decoder) checkResources() {
	j := d.job
	if j.HTTP == nil || j.Exec != nil {
		return
	}
	if j.own("resources") {
		d.Fail(j.at["resources"].Node, "limit the app that it calls, or its timeout",
			"resources: a job with http starts no process that could be limited")
	}
	j.Resources = Resources{}
}
