package budget

import (
	"flag"
	"fmt"
	"math"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
)

const (
	root       = "../.."
	limitsFile = "limits.txt"

	updateCommand = "go test ./internal/budget -update"
)

var update = flag.Bool("update", false, "lower the limits in "+limitsFile+" to today's figures; no limit is raised")

// figure is one row of the budget.
type figure struct {
	name string
	now  float64
	free bool // it is shown, and not compared
}

func counted(name string, n int) figure { return figure{name: name, now: float64(n)} }

// measure lists all figures except the size of the binary. The most telling ones come last.
func measure() ([]figure, error) {
	c, err := linked(root, program)
	if err != nil {
		return nil, err
	}
	second, err := linked(root, another)
	if err != nil {
		return nil, err
	}
	imports, err := second.besides(c)
	if err != nil {
		return nil, err
	}
	wide := 0
	for _, program := range []*code{c, second} {
		n, err := program.wide()
		if err != nil {
			return nil, err
		}
		wide += n
	}
	modules, err := c.dependencies()
	if err != nil {
		return nil, err
	}
	keys, paths, metrics, err := documented(root)
	if err != nil {
		return nil, err
	}
	pages, allPages, err := words(root)
	if err != nil {
		return nil, err
	}
	lines, err := c.lines()
	if err != nil {
		return nil, err
	}
	scripts, err := c.lua()
	if err != nil {
		return nil, err
	}
	commands, err := c.commands()
	if err != nil {
		return nil, err
	}
	first := []figure{counted("go.mod: direct dependencies", modules), counted("API: paths", paths),
		counted("metrics: names", metrics)}
	last := []figure{counted("Go: solotick-import besides", imports), counted("Go: lines wider than 120", wide),
		counted("table: keys", keys), counted("cmd: verbs", commands)}
	return slices.Concat(first, pages, []figure{allPages}, lines, scripts, last), nil
}

// limits are the lines of a file, in which a name is followed by its limit. Lines that begin with # say something else.
type limits struct {
	lines []string
	of    map[string]float64
}

func parseLimits(text string) (limits, error) {
	l := limits{lines: strings.Split(strings.TrimSpace(text), "\n"), of: map[string]float64{}}
	for n, line := range l.lines {
		name, number := cut(line)
		if name == "" {
			continue
		}
		limit, err := strconv.ParseFloat(number, 64)
		if _, twice := l.of[name]; err != nil || twice {
			return l, fmt.Errorf("line %d: %q is not a new name and its limit", n+1, line)
		}
		l.of[name] = limit
	}
	return l, nil
}

// cut splits a line into the name and the number; the name is empty in a comment.
func cut(line string) (name, number string) {
	fields := strings.Fields(line)
	if len(fields) < 2 || strings.HasPrefix(line, "#") {
		return "", ""
	}
	return strings.Join(fields[:len(fields)-1], " "), fields[len(fields)-1]
}

// lowered is the file with the figures of today as limits, unless a limit would rise. A limit without a figure goes.
func (l limits) lowered(figures []figure) string {
	var b strings.Builder
	for _, line := range l.lines {
		name, _ := cut(line)
		at := slices.IndexFunc(figures, func(f figure) bool { return f.name == name })
		switch {
		case name == "":
			fmt.Fprintln(&b, line)
		case at >= 0 && figures[at].free:
			fmt.Fprintln(&b, line)
		case at >= 0:
			fmt.Fprintf(&b, "%-36s %6s\n", name, number(min(l.of[name], figures[at].now)))
		}
	}
	return b.String()
}

// wrong lists the figures that are not at their limits, and what to do.
func (l limits) wrong(figures []figure) (list []string) {
	known := map[string]bool{}
	for _, f := range figures {
		known[f.name] = true
		limit, ok := l.of[f.name]
		switch {
		case f.free:
		case !ok:
			list = append(list, fmt.Sprintf("%s: %s, and it has no limit: write one into internal/budget/%s, "+
				"take something away for it, and say in the commit what.", f.name, number(f.now), limitsFile))
		case f.now > limit:
			list = append(list, fmt.Sprintf("%s: %s, and the limit is %s: "+
				"take something away, and say in the commit what.", f.name, number(f.now), number(limit)))
		case f.now < limit:
			list = append(list, fmt.Sprintf("%s: %s, and the limit is %s: lower the limit to %[2]s ("+updateCommand+").",
				f.name, number(f.now), number(limit)))
		}
	}
	for _, line := range l.lines {
		if name, _ := cut(line); name != "" && !known[name] {
			list = append(list, name+": it is gone: remove its limit ("+updateCommand+").")
		}
	}
	return list
}

func number(v float64) string { return strconv.FormatFloat(v, 'f', -1, 64) }

// row shows a figure beside its limit.
func (l limits) row(f figure) string {
	spare := number(math.Round((l.of[f.name]-f.now)*10)/10) + " spare"
	if f.free {
		spare = "not compared"
	}
	return fmt.Sprintf("%-36s %6s of %6s, %s\n", f.name, number(f.now), number(l.of[f.name]), spare)
}

// It prints the rows, which make budget shows. The binary is last: building it may take a while.
func TestTheProductIsNoLargerThanItsBudget(t *testing.T) {
	text, err := os.ReadFile(limitsFile)
	if err != nil {
		t.Fatal(err)
	}
	l, err := parseLimits(string(text))
	if err != nil {
		t.Fatalf("%s: %v", limitsFile, err)
	}
	figures, err := measure()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range figures {
		fmt.Print(l.row(f))
	}
	size, err := binary(root, t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	fmt.Print(l.row(size))
	figures = append(figures, size)
	if *update {
		lower := l.lowered(figures)
		if err := os.WriteFile(limitsFile, []byte(lower), 0o644); err != nil {
			t.Fatal(err)
		}
		if l, err = parseLimits(lower); err != nil {
			t.Fatal(err)
		}
	}
	for _, w := range l.wrong(figures) {
		t.Error(w)
	}
}

func TestALimitIsOnlyLowered(t *testing.T) {
	l, err := parseLimits("# words\n\nabove  10\nbelow 10\nat 10\ngone 10\nsize 19.5\n")
	if err != nil {
		t.Fatal(err)
	}
	figures := []figure{counted("above", 11), counted("below", 9), counted("at", 10), counted("new", 1),
		{name: "size", now: 30, free: true}}
	var short []string
	for _, w := range l.wrong(figures) {
		name, _, _ := strings.Cut(w, ":")
		short = append(short, name)
	}
	if want := []string{"above", "below", "new", "gone"}; !slices.Equal(short, want) {
		t.Errorf("wrong: got %q", short)
	}
	lower, err := parseLimits(l.lowered(figures))
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]float64{"above": 10, "below": 9, "at": 10, "size": 19.5} {
		if lower.of[name] != want {
			t.Errorf("%s: the limit became %g, not %g", name, lower.of[name], want)
		}
	}
	if len(lower.of) != 4 || lower.lines[0] != "# words" {
		t.Errorf("the lines became %q", lower.lines)
	}
	for _, bad := range []string{"name ten", "a 1\na 2"} {
		if _, err := parseLimits(bad); err == nil {
			t.Errorf("%q: no error", bad)
		}
	}
}

func TestWhatCountsIsFound(t *testing.T) {
	fields := ledgerFields(map[string]string{"a.lua": `
redis.call('HSET', ledger, 'a', f('x', 'y'), 'b', 'value', 'r:' .. id, 1) -- redis.call('HGET', ledger, 'not')
local h = redis.pcall('HMGET', ledger, 'c', variable, 'fate:' .. g(',', ')'),
  'd')
note('e', 1)
redis.call('HSET', other, 'not', 1)`})
	for _, want := range []string{"a", "b", "c", "d", "e", "r:", "fate:"} {
		if !fields[want] {
			t.Errorf("the field %q is not found", want)
		}
	}
	if len(fields) != 7 {
		t.Errorf("fields: %v", fields)
	}
	inner := map[string]any{"properties": map[string]any{"b": true}}
	schema := map[string]any{"properties": map[string]any{"a": inner, "c": true}, "anyOf": []any{inner}}
	if n := properties(schema); n != 4 {
		t.Errorf("%d keys", n)
	}
	if n := countWords("| a `b` | -- |\n1. c–d"); n != 4 {
		t.Errorf("%d words", n)
	}
	for file, want := range map[string]string{"fire.go": ticks, "look.go": looks, "clock.go": rest, "unheard.go": ""} {
		if got := group("sidecar", file); got != want {
			t.Errorf("sidecar/%s is in the group %q, not in %q", file, got, want)
		}
	}
}
