package lock

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/solotick/solotick/internal/rds"
)

// Due is one tick that must be fired besides the table: it was handed over, set free by a takeover, or asked for. Each
// enqueue writes a new member to the due set (Nonce), so that a late copy of a claim never removes a member that was
// put back after it.
type Due struct {
	Tick    time.Time
	Job     string
	Kind    string // as a Claim's
	Key     string // with a new key the app sees another run than those before; "" = the app sees the same run
	Attempt int
	Rounds  int           // how often all replicas have refused to start it
	Deaths  int           // how many replicas have died with it
	Nonce   string        // UUID of the run that enqueued it
	Refused []string      // replicas that could not start it in this round, and leave it to others
	Age     time.Duration // for how long it had been due when a Look read it; not part of the member
}

// Member is the text in the due set: separated by blanks, the tick in milliseconds first.
func (d Due) Member() string { return d.words(rds.Itoa(rds.Millis(d.Tick))) }

// Suffix is what follows the tick in Member.
func (d Due) Suffix() string { return d.words("") }

func (d *Due) words(tick string) string {
	return strings.Join(append([]string{tick, d.Job, kindText(d.Kind, d.Key), strconv.Itoa(d.Attempt),
		strconv.Itoa(d.Rounds), strconv.Itoa(d.Deaths), d.Nonce}, d.Refused...), " ")
}

// kindText is a kind as Redis keeps it, followed by the key, if there is one.
func kindText(kind, key string) string {
	if key == "" {
		return kind
	}
	return kind + ":" + key
}

// ParseDue reads a member. It refuses what Acquire would refuse, and what Member would write differently. A member that
// a replica can read and cannot claim would stay due, in the way of all that is due of its job.
func ParseDue(member string) (Due, error) {
	const maxMember = 64 << 10 // bytes; more than a member has that a thousand replicas have refused
	f := strings.Split(member[:min(len(member), maxMember)], " ")
	if len(f) < 7 || len(member) > maxMember {
		return Due{}, fmt.Errorf("reading due member %.100q: it has %d bytes and %d fields", member, len(member),
			len(f))
	}
	var n [6]int64
	var text [20]byte
	for _, i := range [...]int{0, 3, 4, 5} {
		v, err := strconv.ParseInt(f[i], 10, 64)
		if err == nil && string(strconv.AppendInt(text[:0], v, 10)) != f[i] {
			err = fmt.Errorf("%q would be written %d", f[i], v)
		}
		if err != nil {
			return Due{}, fmt.Errorf("reading due member %.100q: %w", member, err)
		}
		n[i] = v
	}
	d := Due{Tick: rds.FromMillis(n[0]), Job: f[1], Attempt: int(n[3]), Rounds: int(n[4]), Deaths: int(n[5]),
		Nonce: f[6]}
	d.Kind, d.Key, _ = strings.Cut(f[2], ":")
	if kindText(d.Kind, d.Key) != f[2] {
		return Due{}, fmt.Errorf("reading due member %.100q: its kind has an empty key", member)
	}
	if len(f) > 7 {
		d.Refused = f[7:]
	}
	if err := d.check(Series); err != nil {
		return Due{}, fmt.Errorf("reading due member %.100q: %w", member, err)
	}
	return d, nil
}

// RefusedBy says who could not start the tick.
func (d *Due) RefusedBy() string {
	if d.Rounds > 0 { // Refused has those of the present round alone
		return "no replica that took it could start it"
	}
	return "these replicas could not start it: " + strings.Join(d.Refused, ", ")
}

// endOfTime bounds the ticks that are accepted, in milliseconds: scripts write numbers below it exactly as they read
// them.
const endOfTime = 1e15

// kinds are all kinds of runs: each says why the run's tick was fired.
var kinds = []string{"schedule", "catchup", "handover", "takeover", "manual", "backfill", "timer"}

// Series is the kind of a due member that no claim takes: a timer with a schedule, whose next time has come.
const Series = "series"

// check tells what is wrong with a tick, of a claim and of a due member alike: each due member must be claimed, and
// each claim may become due. more are kinds that are none of runs.
func (d *Due) check(more ...string) error {
	if err := rds.OneWord("job", d.Job); err != nil {
		return err
	}
	if err := rds.OneWord("run", d.Nonce); err != nil {
		return err
	}
	if d.Key != "" {
		if err := rds.OneWord("key", d.Key); err != nil {
			return err
		}
	}
	for _, r := range d.Refused {
		if err := rds.OneWord("replica", r); err != nil {
			return err
		}
	}
	switch ms := rds.Millis(d.Tick); {
	case d.Job == rds.TimerJobs:
		return fmt.Errorf("job %q is that of all timers, and has no tick", d.Job)
	case !slices.Contains(kinds, d.Kind) && !slices.Contains(more, d.Kind):
		return fmt.Errorf("kind %q is none of %s", d.Kind, strings.Join(kinds, ", "))
	case ms <= 0 || ms >= endOfTime:
		return fmt.Errorf("tick %d ms is no time that is scheduled", ms)
	case d.Attempt < 0 || d.Rounds < 0 || d.Deaths < 0:
		return fmt.Errorf("attempt %d, rounds %d or deaths %d is negative", d.Attempt, d.Rounds, d.Deaths)
	}
	return nil
}

// Drop removes a member from the due set without running it; false when another replica was faster. Its tick gets the
// fate, unless that is "": the replica that books the returned gaps counts it (see Book). After an error the
// member may have been dropped or not. Drop does not look at the entry of a timer: its caller has found none.
func (s *Store) Drop(ctx context.Context, d Due, fate string) (ours bool, gaps string, err error) {
	member := d.Member()
	parts, err := s.redis.Call(ctx, dropScript, 1, []string{s.redis.Keys.Ledger(d.Job), s.redis.Keys.Due(d.Job)},
		member, fate)
	if err != nil {
		return false, "", fmt.Errorf("dropping due member %q: %w", member, err)
	}
	if len(parts) != 4 {
		return false, "", fmt.Errorf("dropping due member %q: %w", member, rds.Unexpected(parts))
	}
	n, err := rds.Integer(parts[2])
	gaps, _ = parts[3].(string)
	return n == 1, gaps, err
}
