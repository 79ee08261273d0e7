package service

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/redis/go-redis/v9"

	"github.com/solotick/solotick/internal/rds"
	"github.com/solotick/solotick/internal/text"
)

// MaxBy bounds the name of an operator, in characters.
const MaxBy = 100

// Author is who makes a request by hand, and why. The texts become one line of printable characters.
type Author struct {
	By     string // a name, such as anna@ops; "" = not known
	Reason string // "" = none was given; a pause has its own
	All    string // id that the requests of one command for all jobs share; "" = the command named its jobs. See Pause
}

// CheckAuthor checks the texts of an author. Each is one line; an empty text was not given.
func CheckAuthor(by, reason Field) error {
	for _, f := range []struct {
		Field
		most int
	}{{by, MaxBy}, {reason, MaxReason}} {
		if n := utf8.RuneCountInString(f.Text); n > f.most {
			return refuse(Invalid, "%s has %d characters, at most %d are kept", f.Name, n, f.most)
		}
	}
	return nil
}

// As returns a Store whose requests by hand have that author.
func (s *Store) As(a Author) *Store {
	theirs := *s
	theirs.author = Author{text.OneLine(a.By), text.OneLine(a.Reason), a.All}
	return &theirs
}

// Act is a request by hand that had an effect. The script that had it wrote the act down, so there is one act per
// request, however often the request arrived.
type Act struct {
	Author
	At    time.Time // by Redis' clock
	What  string    // the verb of the command line: pause, resume, trigger, rerun, backfill, cancel
	Jobs  []string  // one, unless All
	Until time.Time // of a pause; zero = until it is resumed
	Tick  time.Time // of a trigger: the one that it made; of a rerun; of a backfill: the first
	Count int       // of a backfill: how many ticks it added; of a cancel: how many waited
	Runs  []string  // of a cancel: the UUIDs of the runs
}

// actText is an Act as Redis keeps it: JSON with times in milliseconds, in the field `act` of an entry of the stream.
// The id of the entry is its time. The field `made` is the answer of the script, if the answer tells more.
type actText struct {
	What   string `json:"what"`
	Job    string `json:"job"`
	By     string `json:"by,omitempty"`
	Reason string `json:"reason,omitempty"`
	All    string `json:"all,omitempty"`
	Until  int64  `json:"until,omitempty"`
	Tick   int64  `json:"tick,omitempty"`
}

// act is what a script writes down of a request.
func (s *Store) act(t actText) string {
	t.By, t.Reason, t.All = s.author.By, cmp.Or(t.Reason, s.author.Reason), s.author.All
	return text.JSON(t)
}

// mostActs is more than Redis keeps of them: the scripts trim to a thousand, and not at each act.
const mostActs = 2000

// Acts returns the newest acts of operators on one job or on all ("" = all), at most limit of them, the newest first.
// Redis keeps about a thousand. The requests of one command for all jobs are one act.
func (s *Store) Acts(ctx context.Context, job string, limit int) ([]Act, error) {
	entries, err := onServer(ctx, s, func(ctx context.Context, rdb redis.UniversalClient) ([]redis.XMessage, error) {
		return rdb.XRevRangeN(ctx, s.redis.Keys.Acts, "+", "-", mostActs).Result()
	})
	if err != nil {
		return nil, fmt.Errorf("reading the acts of operators: %w", err)
	}
	var acts []Act
	for _, e := range entries {
		a, ok := parseAct(e)
		switch last := len(acts) - 1; {
		case !ok || job != "" && a.Jobs[0] != job: // the first: written by another version
		case last >= 0 && a.All != "" && acts[last].All == a.All:
			acts[last].Jobs = append([]string{a.Jobs[0]}, acts[last].Jobs...)
		case len(acts) == limit:
			return acts, nil
		default:
			acts = append(acts, a)
		}
	}
	return acts, nil
}

// parseAct reads one entry of the stream; false if another version wrote it.
func parseAct(e redis.XMessage) (Act, bool) {
	var t actText
	written, _ := e.Values["act"].(string)
	if err := json.Unmarshal([]byte(written), &t); err != nil || t.Job == "" {
		return Act{}, false
	}
	a := Act{Author: Author{t.By, t.Reason, t.All}, At: time.UnixMilli(int64(splitID(e.ID)[0])), What: t.What,
		Jobs: []string{t.Job}, Until: rds.FromMillis(t.Until), Tick: rds.FromMillis(t.Tick)}
	switch made, _ := e.Values["made"].(string); {
	case made == "":
	case a.What == "cancel" && strings.Contains(made, "-"):
		a.Runs = strings.Fields(made)
	case a.What != "cancel" && a.Tick.IsZero():
		a.Tick = rds.FromMillis(rds.Number(made))
	default:
		a.Count = int(rds.Number(made))
	}
	return a, true
}
