package config

import (
	"regexp"
	"strconv"

	"github.com/solotick/solotick/config/strict"
)

// Busy says from which load on a replica leaves ticks to others, in percent of what it has; 0 = its load is no matter.
type Busy struct{ CPU, Memory int }

var percentForm = strict.Form{Pattern: `^([1-9][0-9]?|100)%$`}

var percentage = regexp.MustCompile(percentForm.Pattern)

func busyKeys(to *Busy) []strict.Key {
	return []strict.Key{
		{Name: "cpu", Type: percent(&to.CPU), Example: "80%", Form: percentForm, Show: strict.Shown, Also: "load processor",
			Doc: "share of the machine's CPUs, or of the container's limit, in use over five seconds"},
		{Name: "memory", Type: percent(&to.Memory), Example: "80%", Form: percentForm, Show: strict.Shown, Also: "mem ram",
			Doc: "share of the machine's memory, or of the container's limit, in use"},
	}
}

func percent(to *int) strict.Type {
	return strict.Accepted(strict.KindText, func(d *strict.Decoder, _ strict.Entry, t strict.Text) bool {
		m := percentage.FindStringSubmatch(t.Value)
		if m == nil {
			d.Bad(t, "write a whole number and a percent sign: 80%", "must be from 1%% to 100%%")
			return false
		}
		*to, _ = strconv.Atoi(m[1]) // the pattern has digits alone
		return true
	}, "!!str", "!!int", "!!float")
}
