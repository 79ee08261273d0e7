package config

import (
	"fmt"
	"math"
	"regexp"
	"strconv"
	"strings"

	"github.com/solotick/solotick/config/strict"
)

func resourceKeys(to *Resources) []strict.Key {
	return []strict.Key{
		{Name: "memory", Type: memory(&to.Memory), Example: "128Mi", Form: bytesForm, Show: strict.Shown, Also: "mem memoryLimit ram",
			Doc: "how much memory its processes may use; a run that needs more is killed, and its detail says so"},
		{Name: "nice", Type: strict.Number(&to.Nice), Default: "0", Example: "10", Form: strict.Form{Least: -20, Most: 19},
			Show: strict.Shown, Also: "niceness", Doc: "niceness of its processes, from -20 to 19; values below 0 need the privilege"},
	}
}

// quantity is a number of bytes as Kubernetes writes it.
var quantity = regexp.MustCompile(bytesForm.Pattern)

var quantityUnits = map[string]int64{
	"": 1, "k": 1e3, "M": 1e6, "G": 1e9, "Ki": 1 << 10, "Mi": 1 << 20, "Gi": 1 << 30,
}

func memory(to *int64) strict.Type {
	return strict.Accepted(strict.KindBytes, func(d *strict.Decoder, _ strict.Entry, t strict.Text) bool {
		m := quantity.FindStringSubmatch(t.Value)
		if m == nil {
			badQuantity(d, t)
			return false
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
			*to = n * unit
			return true
		}
		return false
	}, "!!str", "!!int")
}

// looseQuantity is how people write numbers of bytes elsewhere.
var looseQuantity = regexp.MustCompile(`(?i)^\s*([0-9]{1,15})\s*(k|m|g)(i?)b?\s*$`)

func badQuantity(d *strict.Decoder, t strict.Text) {
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
func checkResources(d *strict.Decoder, j *draft) {
	if j.HTTP == nil || j.Exec != nil {
		return
	}
	if j.own("resources") {
		d.Fail(j.at["resources"].Node, "limit the app that it calls, or its timeout",
			"resources: a job with http starts no process that could be limited")
	}
	j.Resources = Resources{}
}
