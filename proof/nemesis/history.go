package nemesis

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"
)

// keyPrefix is that of the service's keys.
const keyPrefix = "solotick:{nemesis}:"

// historian copies the histories out of Redis while they last: a failover may lose some of them. Of a run that ended
// twice it keeps what came first.
type historian struct {
	client  redis.UniversalClient
	mu      sync.Mutex
	last    map[string]string // id of the newest entry of each stream
	ended   map[string]bool   // runs
	entries []entry
}

func newHistorian(client redis.UniversalClient) *historian {
	return &historian{client: client, last: map[string]string{}, ended: map[string]bool{}}
}

// run copies until ctx ends. The nemesis sees to it that Redis does not always answer.
func (h *historian) run(ctx context.Context) {
	for t := time.NewTicker(500 * time.Millisecond); ; {
		select {
		case <-ctx.Done():
			t.Stop()
			return
		case <-t.C:
			short, cancel := context.WithTimeout(ctx, time.Second)
			_ = h.read(short)
			cancel()
		}
	}
}

// read copies what is new.
func (h *historian) read(ctx context.Context) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	streams, err := h.client.Keys(ctx, keyPrefix+"history:*").Result()
	if err != nil {
		return fmt.Errorf("reading the histories: %w", err)
	}
	for _, stream := range streams {
		messages, err := h.client.XRange(ctx, stream, cmp.Or(h.last[stream], "-"), "+").Result()
		if err != nil {
			return fmt.Errorf("reading the history: %w", err)
		}
		for _, m := range messages {
			e, err := parseEntry(m)
			if err != nil {
				return err
			}
			// Without a run, ticks were not fired, and the judge knows that by itself.
			if h.last[stream] = "(" + m.ID; e.run != "" && !h.ended[e.run] {
				h.ended[e.run], h.entries = true, append(h.entries, e)
			}
		}
	}
	slices.SortStableFunc(h.entries, func(a, b entry) int { return a.at.Compare(b.at) })
	return nil
}

// all is every entry so far.
func (h *historian) all() []entry {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.entries
}

// entryText is the text of an entry: of the end of a run or, if it has the field tick, of what became of ticks.
func entryText(m redis.XMessage) string {
	text, tick := m.Values["tick"].(string)
	if !tick {
		text, _ = m.Values["run"].(string)
	}
	return text
}

// parseEntry reads one message of a stream: JSON in the field run or tick, with times in milliseconds.
func parseEntry(m redis.XMessage) (entry, error) {
	var e struct {
		Job, Run, Replica, Kind, Outcome, Detail string
		Tick                                     int64
		Attempt                                  int
	}
	if err := json.Unmarshal([]byte(entryText(m)), &e); err != nil {
		return entry{}, fmt.Errorf("reading entry %q of the history: %w", m.ID, err)
	}
	ms, _, _ := strings.Cut(m.ID, "-")
	at, err := strconv.ParseInt(ms, 10, 64)
	if err != nil {
		return entry{}, fmt.Errorf("reading entry %q of the history: %w", m.ID, err)
	}
	return entry{at: time.UnixMilli(at), job: e.Job, tick: time.UnixMilli(e.Tick).UTC(), run: e.Run, replica: e.Replica,
		kind: e.Kind, attempt: e.Attempt, outcome: e.Outcome, detail: e.Detail}, nil
}

// leftovers lists what is still said to run, and the due members of ticks up to an instant, after the last replica has
// gone.
func leftovers(ctx context.Context, client redis.UniversalClient, upTo time.Time) ([]string, error) {
	running, err := client.ZRange(ctx, keyPrefix+"running", 0, -1).Result()
	if err != nil {
		return nil, fmt.Errorf("reading what is left in Redis: %w", err)
	}
	due, err := waiting(ctx, client, upTo)
	return append(running, due...), err
}

// waiting lists the due members of ticks up to an instant.
func waiting(ctx context.Context, client redis.UniversalClient, upTo time.Time) ([]string, error) {
	due, err := client.ZRange(ctx, keyPrefix+"due", 0, -1).Result()
	if err != nil {
		return nil, fmt.Errorf("reading what is left in Redis: %w", err)
	}
	return ofTicks(due, upTo), nil
}

// ofTicks are those of the due members whose tick, their first word, is not after an instant. A tick that was handed on
// may come due later than that.
func ofTicks(due []string, upTo time.Time) []string {
	return slices.DeleteFunc(due, func(member string) bool {
		tick, _, _ := strings.Cut(member, " ")
		ms, err := strconv.ParseInt(tick, 10, 64)
		return err == nil && ms > upTo.UnixMilli()
	})
}

// quiet logs nothing, for clients whose Redis comes and goes.
type quiet struct{}

func (quiet) Printf(context.Context, string, ...any) {}
