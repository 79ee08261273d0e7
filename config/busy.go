package config

import (
	"regexp"
	"strconv"

	"github.com/solotick/solotick/config/strict"
)

// Busy says from which load on a replica leaves ticks to others, in percent of what it has; 0 = its load is no matter.
type Busy struct{ CPU, Memory int }

var percentForm = strict.Form{Pattern: `^([1-9][0-9]?|100)%$`}

var percent = regexp.MustCompile(percentForm.Pattern)

func (d *decoder) busyKeys() []strict.Key {
	key := func(name, doc string, to *int, also ...string) strict.Key {
		return strict.Key{Name: name, Kind: strict.KindText, Default: strict.None, Example: "80%", Doc: doc, Form: percentForm,
			Show: strict.Shown, Also: also, Decode: func(e strict.Entry) { d.percent(e, to) }}
	}
	return []strict.Key{
		key("cpu", "share of the machine's CPUs, or of the container's limit, in use over five seconds", &d.table.Busy.CPU, "load", "processor"),
		key("memory", "share of the machine's memory, or of the container's limit, in use", &d.table.Busy.Memory, "mem", "ram"),
	}
}

func (d *decoder) percent(e strict.Entry, to *int) {
	t := d.Scalar(e, "!!str", "!!int", "!!float")
	if !t.OK() {
		return
	}
	m := percent.FindStringSubmatch(t.Value)
	if m == nil {
		d.Bad(t, "write a whole number and a percent sign: 80%", "must be from 1%% to 100%%")
		return
	}
	*to, _ = strconv.Atoi(m[1]) // the pattern has digits alone
}
