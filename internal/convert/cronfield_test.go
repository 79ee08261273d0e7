package convert

import (
	"fmt"
	"math/rand"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/solotick/solotick/config/schedule"
)

// vixie is a crontab's schedule as cron(5) runs it, written down here once more and in the plainest way.
type vixie struct {
	fields  [5]map[int]bool
	starred [5]bool
}

func readVixie(text string) vixie {
	var v vixie
	for i, field := range strings.Fields(text) {
		low, high := []int{0, 0, 1, 1, 0}[i], []int{59, 23, 31, 12, 7}[i]
		v.fields[i], v.starred[i] = map[int]bool{}, field[0] == '*'
		for _, part := range strings.Split(field, ",") {
			span, step, _ := strings.Cut(part, "/")
			from, to, isRange := strings.Cut(span, "-")
			a, b := number(i, from), number(i, to)
			switch {
			case span == "*":
				a, b = low, high
			case !isRange:
				b = a
			}
			n := 1
			if step != "" {
				n, _ = strconv.Atoi(step)
			}
			for ; a <= b; a += n {
				v.fields[i][a] = true
				if i == 4 {
					v.fields[i][a%7] = true
				}
			}
		}
	}
	return v
}

func number(i int, text string) int {
	for n, name := range strings.Fields([]string{3: "jan feb mar apr may jun jul aug sep oct nov dec", 4: "sun mon tue wed thu fri sat"}[max(i, 3)]) {
		if strings.EqualFold(name, text) {
			return n + 4 - i
		}
	}
	n, _ := strconv.Atoi(text)
	return n
}

func (v vixie) day(t time.Time) bool {
	month, week := v.fields[2][t.Day()], v.fields[4][int(t.Weekday())]
	if v.starred[2] || v.starred[4] {
		return v.fields[3][int(t.Month())] && month && week
	}
	return v.fields[3][int(t.Month())] && (month || week)
}

// ticks are the first n from a moment on, within ten years.
func (v vixie) ticks(from time.Time, n int) []time.Time {
	var out []time.Time
	for d := range 3653 {
		midnight := from.AddDate(0, 0, d)
		if !v.day(midnight) {
			continue
		}
		for hour := range 24 {
			for minute := range 60 {
				if v.fields[1][hour] && v.fields[0][minute] {
					if out = append(out, midnight.Add(time.Duration(hour*60+minute)*time.Minute)); len(out) == n {
						return out
					}
				}
			}
		}
	}
	return out
}

// anyField makes up a field that every cron reads alike.
func anyField(r *rand.Rand, i int) string {
	low, high := []int{0, 0, 1, 1, 0}[i], []int{59, 23, 31, 12, 7}[i]
	if r.Intn(3) == 0 {
		return "*"
	}
	var parts []string
	for range 1 + r.Intn(3) {
		a, b := low+r.Intn(high-low+1), low+r.Intn(high-low+1)
		a, b = min(a, b), max(a, b)
		step := 1 + r.Intn(high+20)
		parts = append(parts, []string{strconv.Itoa(a), "*", fmt.Sprintf("*/%d", step), fmt.Sprintf("%d-%d", a, b),
			fmt.Sprintf("%d-%d/%d", a, b, step), []string{2: "1-7", 3: "Mar", 4: "wed-FRI"}[max(i, 2)]}[r.Intn(6)])
	}
	return strings.Join(parts, ",")
}

func TestACrontabsScheduleKeepsItsTicks(t *testing.T) {
	r := rand.New(rand.NewSource(20261121))
	from := time.Date(2027, 1, 1, 0, 0, 0, 0, time.UTC)
	both, other := 0, 0
	for range 1500 {
		fields := make([]string, 5)
		for i := range fields {
			fields[i] = anyField(r, i)
		}
		text := strings.Join(fields, " ")
		v := readVixie(text)
		want := v.ticks(from, 40)
		got, err := translate(text)
		if err != nil {
			// The only error is that a schedule cannot express the meaning.
			if !strings.Contains(err.Error(), "a day must match") || !v.starred[2] && !v.starred[4] {
				t.Errorf("%q: %v", text, err)
			}
			both++
			continue
		}
		s, err := schedule.Parse(got.schedule, schedule.Options{})
		if err != nil {
			if len(want) > 0 || !strings.Contains(err.Error(), "never fire") {
				t.Errorf("%q became %q: %v", text, got.schedule, err)
			}
			continue
		}
		other++
		at := from.Add(-time.Second)
		for _, w := range want {
			if at = s.Next(at); !at.Equal(w) {
				t.Errorf("%q became %q: ticks at %s, cron at %s", text, got.schedule, at, w)
				break
			}
		}
	}
	if both < 50 || other < 500 {
		t.Errorf("%d schedules were carried over, %d not: too few of one", other, both)
	}
}

// The way to say "the first Monday" in a crontab.
func TestADayFieldWithAStarIsAConditionBesideTheOther(t *testing.T) {
	for text, want := range map[string]string{
		"0 3 */100,1-7 * MON":  "0 3 * * MON#1",
		"0 3 *,1 * MON":        "0 3 * * MON",
		"0 3 */1 * 1,3":        "0 3 * * 1,3",
		"0 3 */32,1-14 * 0,6":  "0 3 * * SUN#1,SAT#1,SUN#2,SAT#2",
		"0 3 29-31,*/29 * FRI": "0 3 29-31,*/29 * FRI", // does not begin with a star
		"0 3 29-31,* * FRI":    "0 3 * * *",
		"0 3 1 * */1":          "0 3 1 * *",
		"0 3 1 * 0-6":          "0 3 * * *",
	} {
		got, err := translate(text)
		if err != nil || got.schedule != want {
			t.Errorf("%q became %q, %v, want %q", text, got.schedule, err, want)
		}
	}
	if _, err := translate("0 3 */2 * MON"); err == nil {
		t.Error("a day that is odd and a Monday cannot be said, and was")
	}
}

func TestKubernetesSchedulesKeepTheirMeaning(t *testing.T) {
	for text, want := range map[string]string{
		"? ? ? * ?":       "* * * * *",
		"*/90 0 */2 * 1":  "0 0 */2 * 1", // either, as in Kubernetes
		"5/15 * * * *":    "5/15 * * * *",
		"@every 1h":       "@every 1h",
		"0 0 * * mon-fri": "0 0 * * MON-FRI",
		"nothing at all":  "nothing at all",
	} {
		if got := translateKubernetes(text); got != want {
			t.Errorf("%q became %q, want %q", text, got, want)
		}
	}
}
