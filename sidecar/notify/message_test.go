package notify

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"reflect"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/solotick/solotick/config"
	"github.com/solotick/solotick/internal/credentials"
)

// whsec is the secret of the reference test of Standard Webhooks; other is one more.
const (
	whsec = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
	other = "whsec_c29tZSBvdGhlciBzZWNyZXQgb2YgMjQgYg=="
)

// messages are one of each event.
func messages(to config.Change) []Message {
	at := time.Date(2026, 11, 23, 9, 0, 1, 500e6, time.UTC)
	to.URL = "https://hooks.example/s3cret"
	of := Message{To: to, Service: "shop", Job: "invoices", Replica: "shop-1", Tick: at.Truncate(time.Minute), At: at}
	with := func(change func(*Message)) Message { m := of; change(&m); return m }
	return []Message{
		with(func(m *Message) {
			m.Event, m.Run, m.Outcome, m.Failures, m.Detail = config.Failed, "r1", "failed", 1, "exit code 1: a < b & c"
		}),
		with(func(m *Message) { m.Event, m.Run, m.Outcome, m.Failures = config.Failed, "r2", "timed_out", 3 }),
		with(func(m *Message) { m.Event, m.Run, m.Outcome, m.Failures = config.Recovered, "r3", "succeeded", 3 }),
		with(func(m *Message) { m.Event, m.Run, m.Outcome, m.Failures = config.Recovered, "r4", "succeeded", 1 }),
		with(func(m *Message) { m.Event, m.First, m.Count = config.TicksMissed, m.Tick.Add(-time.Hour), 61 }),
		with(func(m *Message) { m.Event, m.First, m.Count = config.TicksMissed, m.Tick, 1 }),
		with(func(m *Message) { m.Event, m.Run, m.After = config.StartedLate, "r5", 61500*time.Millisecond }),
		with(func(m *Message) { m.Event, m.Run, m.After = config.TakesTooLong, "r5", 30*time.Minute }),
	}
}

var said = []string{
	"invoices of shop has failed (failed: exit code 1: a < b & c).",
	"invoices of shop has failed 3 times in a row (timed_out).",
	"invoices of shop succeeds again. Before, it had failed 3 times in a row.",
	"invoices of shop succeeds again. Before, it had failed once.",
	"No replica fired 61 ticks of invoices of shop, from 2026-11-23T08:00:00.000Z to 2026-11-23T09:00:00.000Z.",
	"No replica fired the tick of invoices of shop at 2026-11-23T09:00:00.000Z.",
	"invoices of shop began 1m1.5s late, on shop-1.",
	"invoices of shop has run for 30m0s on shop-1, and still runs.",
}

func TestAMessageSaysWhatHappenedInEachFormat(t *testing.T) {
	ids := map[string]bool{}
	for i, m := range messages(config.Change{Format: config.JSON}) {
		text := said[i] + " See: solotick history invoices"
		if i == 0 {
			m.Description, m.Owner, m.Runbook = "sends invoices", "team-billing", "https://wiki.example.com/invoices"
			text += " and https://wiki.example.com/invoices (owner: team-billing)"
		}
		r, err := m.request(time.Now())
		var got map[string]any
		if err != nil || r.url != m.To.URL || len(r.header) != 1 || r.header.Get("Content-Type") != "application/json" || json.Unmarshal([]byte(r.body), &got) != nil {
			t.Fatalf("%+v, %v", r, err)
		}
		want := map[string]any{"id": m.id(), "event": string(m.Event), "service": "shop", "job": "invoices", "tick": "2026-11-23T09:00:00.000Z",
			"replica": "shop-1", "text": text, "at": "2026-11-23T09:00:01.500Z"}
		for name, v := range map[string]any{"run": m.Run, "outcome": m.Outcome, "failures": float64(m.Failures), "count": float64(m.Count),
			"first": stamp(m.First), "seconds": m.After.Seconds(), "detail": m.Detail, "description": m.Description, "owner": m.Owner,
			"runbook": m.Runbook} {
			if v != "" && v != 0.0 {
				want[name] = v
			}
		}
		if !reflect.DeepEqual(got, want) {
			t.Errorf("%s:\n got %v\nwant %v", m.Event, got, want)
		}
		if ids[m.id()] || strings.Contains(m.id(), ".") || len(m.id()) != 36 {
			t.Errorf("%s: id %s", m.Event, m.id())
		}
		ids[m.id()] = true

		m.To.Format = config.Slack
		var slack map[string]string
		r, _ = m.request(time.Now())
		if err := json.Unmarshal([]byte(r.body), &slack); err != nil || len(slack) != 1 ||
			slack["text"] != strings.NewReplacer("< b & c", "&lt; b &amp; c").Replace(text) || r.header.Get("Content-Type") != "application/json" {
			t.Errorf("%s: %+v, %v", m.Event, r, err)
		}
	}
}

// deliveries plays with a Pinger whose receiver answers with some code, and gives what came there, and the log.
func deliveries(t *testing.T, code func(n int) int, play func(p *Pinger)) (got []request, log string) {
	var mu sync.Mutex
	bubble(t, &receiver{}, func(p *Pinger, _ func(), j *journal) {
		p.post = func(_ context.Context, r request) (int, time.Duration, error) {
			mu.Lock()
			defer mu.Unlock()
			got = append(got, r)
			return code(len(got)), 0, nil
		}
		play(p)
		time.Sleep(time.Minute)
		synctest.Wait()
		log = j.String()
	})
	return got, log
}

func TestFilesAreReadForEachAttempt(t *testing.T) {
	dir := t.TempDir()
	url, secret := filepath.Join(dir, "url"), filepath.Join(dir, "secret")
	write := func(path, text string) {
		t.Helper()
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write(url, "https://old.example/s3cret\n")
	write(secret, whsec+"\n")
	m := messages(config.Change{Format: config.JSON, SecretFile: secret})[0]
	m.To.URL, m.To.URLFile = "", url
	got, log := deliveries(t, func(n int) int { return []int{500, 200}[n-1] }, func(p *Pinger) {
		p.Tell(m)
		synctest.Wait()
		write(url, "https://new.example/s3cret\n")
		write(secret, other+"\n")
	})
	if len(got) != 2 || log != "" || got[0].url != "https://old.example/s3cret" || got[1].url != "https://new.example/s3cret" || got[0].body != got[1].body {
		t.Fatalf("%+v; %s", got, log)
	}
	var at [2]int64
	for i, r := range got {
		id, stamp := r.header.Get("Webhook-Id"), r.header.Get("Webhook-Timestamp")
		secrets, err := credentials.ParseSecrets([]string{whsec, other}[i])
		if err != nil || id != m.id() || r.header.Get("Webhook-Signature") != secrets.Sign(id, stamp, r.body) {
			t.Errorf("attempt %d: %v", i+1, r.header)
		}
		at[i], _ = strconv.ParseInt(stamp, 10, 64)
	}
	if at[1] != at[0]+1 {
		t.Errorf("sent at %v", at)
	}
}

func TestAFileOfAURLIsNotReadWithoutABound(t *testing.T) {
	path := filepath.Join(t.TempDir(), "url")
	if err := os.WriteFile(path, []byte(strings.Repeat("x", mostInFile+1)), 0o600); err != nil {
		t.Fatal(err)
	}
	if text, err := content(path); len(text) > mostInFile {
		t.Errorf("%d bytes were read, %v", len(text), err)
	}
}

func TestAFileThatCannotBeUsedIsOneWarning(t *testing.T) {
	dir := t.TempDir()
	empty, bad := filepath.Join(dir, "empty"), filepath.Join(dir, "bad")
	for path, text := range map[string]string{empty: " \n", bad: "s3cret"} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for says, to := range map[string]config.Change{
		`host="" err="open ` + dir + `/none: no such file or directory"`: {URLFile: dir + "/none"},
		`host="" err="` + empty + ` is empty"`:                           {URLFile: empty},
		`host=hooks.example err="` + bad + `: not a secret of`:           {SecretFile: bad, URL: "https://hooks.example/s3cret"},
	} {
		m := messages(to)[0]
		m.To.URL = to.URL
		got, log := deliveries(t, func(int) int { return 200 }, func(p *Pinger) { p.Tell(m) })
		if len(got) != 0 || strings.Count(log, "\n") != 1 || !strings.Contains(log, `msg="a message did not arrive" job=invoices event=failed `+says) {
			t.Errorf("%d attempts; logged %s, want %s", len(got), log, says)
		}
	}
}

// A receiver of messages that hangs delays no ping of the job.
func TestMessagesKeepTheirOrderBesideThePings(t *testing.T) {
	r := &receiver{}
	slow := slowly(5 * time.Second)
	r.answer = func(ctx context.Context, url, text string) (int, time.Duration, error) {
		if strings.HasPrefix(url, "https://hooks") {
			return slow(ctx, url, text)
		}
		return 200, 0, nil
	}
	bubble(t, r, func(p *Pinger, _ func(), log *journal) {
		all := messages(config.Change{Format: config.Slack})
		for _, m := range all {
			p.Tell(m)
		}
		p.Send(aPing("invoices", "failed"))
		synctest.Wait()
		if got := r.calls(); len(got) != 2 {
			t.Errorf("at once %q", got)
		}
		time.Sleep(time.Minute)
		synctest.Wait()
		var got []string
		for _, c := range r.calls() {
			if strings.HasPrefix(c, "https://hooks") {
				got = append(got, c)
			}
		}
		for i := range all {
			if want := strings.ReplaceAll(said[i], "a < b & c", "a &lt; b &amp; c"); i >= len(got) || !strings.Contains(got[i], want) {
				t.Errorf("%d: %q, want %s", i, got, want)
				break
			}
		}
	})
	var none *Pinger
	none.Tell(Message{})
}
