package main

import (
	_ "embed"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"text/template"
)

//go:embed benchmarks.md.tmpl
var document string

// publish writes docs/benchmarks.json, and makes docs/benchmarks.md and the charts of it.
func publish(root string, p published) error {
	text, err := json.MarshalIndent(p, "", " ")
	if err != nil {
		return err
	}
	page, err := p.page()
	if err != nil {
		return err
	}
	for name, content := range map[string]string{
		"benchmarks.json":      string(text) + "\n",
		"benchmarks.md":        page,
		"benchmarks.svg":       delayChart(p.part("delay")),
		"benchmarks-crowd.svg": crowdChart(p.part("crowd").Curve),
	} {
		if err := os.WriteFile(filepath.Join(root, "docs", name), []byte(content), 0o644); err != nil {
			return fmt.Errorf("publishing: %w", err)
		}
	}
	return nil
}

// page is docs/benchmarks.md.
func (p published) page() (string, error) {
	t, err := template.New("page").Funcs(template.FuncMap{
		"table": func(name, theirs string) string {
			section := p.part(name)
			text := section.table(theirs)
			return text + p.apart(section)
		},
		"faults": func() string {
			section := p.part("faults")
			return section.faultTable(contenders) + section.keptTable() + p.apart(section)
		},
		"settings":  p.settings,
		"allFaults": allFaults,
	}).Parse(document)
	if err != nil {
		return "", err
	}
	var b strings.Builder
	err = t.Execute(&b, struct {
		Taken  environment
		Worse  []string
		Missed []string
	}{p.newest(), p.worse(), p.missed()})
	return b.String(), err
}

// newest is where and when the newest part was measured.
func (p published) newest() (env environment) {
	for _, each := range p.Parts {
		if each.Taken.Date.After(env.Date) {
			env = each.Taken
		}
	}
	return env
}

// apart tells where a part was measured that was not measured with the newest one.
func (p published) apart(section part) string {
	if section.Taken.Date.IsZero() || section.Taken.Date.Equal(p.newest().Date) {
		return ""
	}
	return fmt.Sprintf("\n\nThis table was measured apart: %s.", section.Taken)
}

func (e environment) String() string {
	return fmt.Sprintf("%s, Solotick %s, %s × %d, %s of memory, Linux %s, Go %s, Redis %s, Node.js %s",
		e.Date.Format("2006-01-02 15:04 MST"), e.Version, e.CPU, e.Cores, e.Memory, e.Kernel, e.Go, e.Redis, e.Node)
}

// table is a part in Markdown; theirs is the head of the other side's column.
func (p part) table(theirs string) string {
	if len(p.Rows) == 0 {
		return "Not measured yet."
	}
	lines := [][]string{{"", "Solotick", theirs, "ratio", "rounds", "target", "verdict", "note"}}
	for _, r := range p.Rows {
		lines = append(lines, []string{r.What, r.with(r.Ours), r.with(r.Theirs), r.Ratio.String(), r.judged().spread(),
			r.target(), r.verdict(), r.Note})
	}
	return markdown(lines)
}

func (r row) with(f *figure) string {
	if f == nil {
		return ""
	}
	return strings.TrimSpace(f.String() + " " + r.Unit)
}

// markdown leaves out columns that are empty.
func markdown(lines [][]string) string {
	var b strings.Builder
	for i, line := range lines {
		b.WriteString("|")
		rule := "|"
		for column, cell := range line {
			if column > 0 && empty(lines[1:], column) {
				continue
			}
			b.WriteString(" " + cell + " |")
			rule += " --- |"
		}
		b.WriteString("\n")
		if i == 0 {
			b.WriteString(rule + "\n")
		}
	}
	return strings.TrimSuffix(b.String(), "\n")
}

func empty(lines [][]string, column int) bool {
	for _, line := range lines {
		if line[column] != "" {
			return false
		}
	}
	return true
}

// keptTable is the same for schedulers that people keep; "" = they are not measured yet.
func (p part) keptTable() string {
	if !slices.ContainsFunc(p.Faults, func(o outcome) bool { return o.Contender == kept[0].key }) {
		return ""
	}
	return "\n\nSchedulers that people keep, with [Solotick's adapters](../examples/adapters/README.md) and with " +
		"SET NX:\n\n" + p.faultTable(kept)
}

// faultTable has a line for each fault, and a column for each contender.
func (p part) faultTable(contenders []contender) string {
	if len(p.Faults) == 0 {
		return "Not measured yet."
	}
	head := []string{"fault", "ticks"}
	for _, c := range contenders {
		head = append(head, c.name)
	}
	lines := [][]string{head}
	for _, f := range allFaults() {
		line := []string{f.name, ""}
		for _, c := range contenders {
			cell := ""
			for _, o := range p.Faults {
				if o.Fault == f.key && o.Contender == c.key {
					if cell = o.words(); o.Ticks > 0 {
						line[1] = fmt.Sprint(o.Ticks)
					}
				}
			}
			line = append(line, cell)
		}
		lines = append(lines, line)
	}
	return markdown(lines)
}

// settings has a line for each contender that the faults were measured with.
func (p published) settings() string {
	lines := [][]string{{"contender", "settings"}}
	for _, c := range slices.Concat(contenders, kept) {
		if slices.ContainsFunc(p.part("faults").Faults, func(o outcome) bool { return o.Contender == c.key }) {
			lines = append(lines, []string{c.name, c.settings})
		}
	}
	return markdown(lines)
}

func allFaults() (all []fault) {
	for _, group := range faultGroups {
		all = append(all, group...)
	}
	return all
}

// About describes a fault in the document.
func (f fault) About() string { return f.name + ": " + f.about }

// worse lists the conditions under which Solotick did worse than another contender. A ratio whose rounds lie on both
// sides of 1 is a draw.
func (p published) worse() (list []string) {
	for _, part := range p.Parts {
		if part.Name == "gate" {
			continue // it repeats what delay measures
		}
		for _, r := range part.Rows {
			if r.Ours == nil || r.Theirs == nil {
				continue
			}
			behind := !r.More && r.Ours.Value > r.Theirs.Value || r.More && r.Ours.Value < r.Theirs.Value
			if r.Ratio != nil {
				behind = !r.More && r.Ratio.Low > 1 || r.More && r.Ratio.High < 1
			}
			if behind {
				list = append(list, fmt.Sprintf("%s: %s against %s", r.What, r.with(r.Ours), r.with(r.Theirs)))
			}
		}
	}
	for _, f := range allFaults() {
		if beaten := p.part("faults").beaten(f.key, solotick.key, contenders); beaten != "" {
			list = append(list, f.name+": "+beaten)
		}
		for pair := range slices.Chunk(kept, 2) {
			if beaten := p.part("faults").beaten(f.key, pair[0].key, pair[1:]); beaten != "" {
				list = append(list, pair[0].name+", "+f.name+": "+beaten)
			}
		}
	}
	return list
}

// beaten tells which contenders did better than one with Solotick under a fault, and in what.
func (p part) beaten(fault, with string, contenders []contender) string {
	var ours *outcome
	for i, o := range p.Faults {
		if o.Fault == fault && o.Contender == with && o.NotRun == "" {
			ours = &p.Faults[i]
		}
	}
	if ours == nil {
		return ""
	}
	var parts []string
	for _, count := range []struct {
		word string
		of   func(outcome) int
	}{
		{"doubled", func(o outcome) int { return o.Doubled }}, {"lost", func(o outcome) int { return o.Lost }},
		{"overlapped", func(o outcome) int { return o.Overlapped }}, {"late", func(o outcome) int { return o.Late }},
		{"early", func(o outcome) int { return o.Early }},
	} {
		var better []string
		for _, c := range contenders {
			for _, o := range p.Faults {
				if o.Fault == fault && o.Contender == c.key && o.NotRun == "" && count.of(o) < count.of(*ours) {
					better = append(better, fmt.Sprintf("%s %d", c.name, count.of(o)))
				}
			}
		}
		if len(better) > 0 {
			parts = append(parts, fmt.Sprintf("%d %s (%s)", count.of(*ours), count.word, strings.Join(better, "; ")))
		}
	}
	return strings.Join(parts, ", ")
}

// missed lists the targets that were missed.
func (p published) missed() (list []string) {
	for _, part := range p.Parts {
		for _, r := range part.Rows {
			if r.missed() {
				text := r.with(r.Ours)
				if r.Ratio != nil {
					text += fmt.Sprintf(", %s×", r.Ratio)
				}
				list = append(list, fmt.Sprintf("%s: %s; the target is %s", r.What, text, r.target()))
			}
		}
		for _, o := range part.Faults {
			if f, _ := faultOf(o.Fault); o.missed() {
				list = append(list, contenderOf(o.Contender).name+", "+f.name+": "+o.words())
			}
		}
	}
	return list
}
