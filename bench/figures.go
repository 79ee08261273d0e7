package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"
)

// figure is one measured number, with the lowest and the highest of its rounds.
type figure struct {
	Value float64 `json:"value"`
	Low   float64 `json:"low"`
	High  float64 `json:"high"`
}

// of is the median of rounds, of which there is one at least.
func of(rounds []float64) *figure { return around(median(rounds), rounds) }

// around is a value that was made of all rounds together.
func around(value float64, rounds []float64) *figure {
	return &figure{round(value), round(slices.Min(rounds)), round(slices.Max(rounds))}
}

// one is a number that was measured once.
func one(v float64) *figure { return around(v, []float64{v}) }

// round keeps four digits: people read the file.
func round(v float64) float64 {
	if v == 0 || math.IsNaN(v) || math.IsInf(v, 0) {
		return v
	}
	scale := math.Pow(10, 4-math.Ceil(math.Log10(math.Abs(v))))
	return math.Round(v*scale) / scale
}

func median(v []float64) float64 {
	v = slices.Sorted(slices.Values(v))
	return v[len(v)/2]
}

// noise is how far the rounds lay from the value.
func (f *figure) noise() float64 { return max(f.High-f.Value, f.Value-f.Low) }

func (f *figure) String() string {
	switch {
	case f == nil:
		return ""
	case f.Value == math.Trunc(f.Value) && math.Abs(f.Value) < 1e6:
		return strconv.FormatFloat(f.Value, 'f', 0, 64)
	case math.Abs(f.Value) >= 1000:
		return strconv.FormatFloat(f.Value, 'f', 0, 64)
	case math.Abs(f.Value) >= 100:
		return strconv.FormatFloat(f.Value, 'f', 1, 64)
	}
	return strconv.FormatFloat(f.Value, 'f', 2, 64)
}

// spread is the range of the rounds, in words; "" if there was one.
func (f *figure) spread() string {
	if f == nil || f.Low == f.High {
		return ""
	}
	return fmt.Sprintf("%s–%s", one(f.Low), one(f.High))
}

// target is a limit that one of a row's figures has to keep.
type target struct {
	Of      string  `json:"of"` // ratio or ours
	AtLeast bool    `json:"atLeast,omitempty"`
	Limit   float64 `json:"limit"`
}

func ratioAtMost(v float64) target { return target{Of: "ratio", Limit: v} }
func oursAtMost(v float64) target  { return target{Of: "ours", Limit: v} }
func oursAtLeast(v float64) target { return target{Of: "ours", AtLeast: true, Limit: v} }

// row is one line of a part's table. Theirs is the same of gocron + redsync, if the row does not say otherwise.
type row struct {
	What    string   `json:"what"`
	Unit    string   `json:"unit,omitempty"`
	Ours    *figure  `json:"ours,omitempty"`
	Theirs  *figure  `json:"theirs,omitempty"`
	Ratio   *figure  `json:"ratio,omitempty"`
	Targets []target `json:"targets,omitempty"`
	Note    string   `json:"note,omitempty"`
	// More says that more is better.
	More bool `json:"moreIsBetter,omitempty"`
	// NotRun says why there is no figure.
	NotRun string `json:"notRun,omitempty"`
}

// compared is a row of both sides' rounds.
func compared(what, unit string, ours, theirs []float64, targets ...target) row {
	r := row{What: what, Unit: unit, Ours: of(ours), Theirs: of(theirs), Targets: targets}
	r.Ratio = ratio(ours, theirs)
	return r
}

// ratio is that of the rounds' ratios; nil if the other side has a zero in it.
func ratio(ours, theirs []float64) *figure {
	var ratios []float64
	for i := range ours {
		if theirs[i] == 0 {
			return nil
		}
		ratios = append(ratios, ours[i]/theirs[i])
	}
	return of(ratios)
}

func (r row) of(t target) *figure {
	if t.Of == "ratio" {
		return r.Ratio
	}
	return r.Ours
}

// missed is true if a target is missed, or could not be measured.
func (r row) missed() bool {
	return slices.ContainsFunc(r.Targets, func(t target) bool {
		f := r.of(t)
		return f == nil || t.AtLeast && f.Value < t.Limit || !t.AtLeast && f.Value > t.Limit
	})
}

func (r row) verdict() string {
	switch {
	case r.NotRun != "":
		return "not run: " + r.NotRun
	case len(r.Targets) == 0:
		return ""
	case r.missed():
		return "MISSED"
	}
	return "met"
}

// target is the row's targets in words.
func (r row) target() string {
	var words []string
	for _, t := range r.Targets {
		sign, unit := "≤", ""
		if t.AtLeast {
			sign = "≥"
		}
		if t.Of == "ratio" {
			unit = "×"
		} else if r.Unit != "" {
			unit = " " + r.Unit
		}
		if t.Limit == 0 {
			sign, unit = "", ""
		}
		words = append(words, strings.TrimSpace(fmt.Sprintf("%s %g%s", sign, t.Limit, unit)))
	}
	return strings.Join(words, ", ")
}

// judged is the figure by which a run is compared with an earlier one: the ratio, which depends least on the machine.
func (r row) judged() *figure {
	if r.Ratio != nil {
		return r.Ratio
	}
	return r.Ours
}

// deviation compares a row with the committed one. beyond says that they lie further apart than their noise.
func (r row) deviation(was row) (text string, beyond bool) {
	now, then := r.judged(), was.judged()
	if now == nil || then == nil {
		return "", false
	}
	if now.Value == then.Value {
		return "0 %", false
	}
	noise := now.noise() + then.noise()
	beyond = math.Abs(now.Value-then.Value) > noise
	if then.Value == 0 {
		return fmt.Sprintf("%+.3g", now.Value), beyond
	}
	text = fmt.Sprintf("%+.0f %%, noise %.0f %%", 100*(now.Value/then.Value-1), 100*noise/math.Abs(then.Value))
	return text, beyond
}

// part is one table of the document.
type part struct {
	Name   string      `json:"name"`
	Taken  environment `json:"taken"`
	Rows   []row       `json:"rows,omitempty"`
	Curve  []point     `json:"curve,omitempty"`  // of crowds
	Faults []outcome   `json:"faults,omitempty"` // of faults
}

// published is what docs/benchmarks.json holds, and docs/benchmarks.md is made of.
type published struct {
	Parts []part `json:"parts"`
}

func load(file string) (published, error) {
	var p published
	text, err := os.ReadFile(file)
	if errors.Is(err, fs.ErrNotExist) {
		return p, nil
	}
	if err == nil {
		err = json.Unmarshal(text, &p)
	}
	if err != nil {
		return p, fmt.Errorf("reading %s: %w", file, err)
	}
	return p, nil
}

func (p published) part(name string) part {
	for _, each := range p.Parts {
		if each.Name == name {
			return each
		}
	}
	return part{Name: name}
}

func (p part) row(what string) (row, bool) {
	for _, r := range p.Rows {
		if r.What == what {
			return r, true
		}
	}
	return row{}, false
}

// with puts a part in the place of the one of its name, in the order of the parts.
func (p published) with(new part) published {
	merged := published{}
	for _, m := range measurements {
		next := p.part(m.name)
		if m.name == new.Name {
			next = new
		}
		if !next.Taken.Date.IsZero() {
			merged.Parts = append(merged.Parts, next)
		}
	}
	return merged
}

// environment is where and when a part was measured.
type environment struct {
	Date    time.Time `json:"date"`
	Version string    `json:"version"` // of Solotick
	CPU     string    `json:"cpu"`
	Cores   int       `json:"cores"`
	Memory  string    `json:"memory"`
	Kernel  string    `json:"kernel"`
	Go      string    `json:"go"`
	Redis   string    `json:"redis"`
	Node    string    `json:"node"`
}
