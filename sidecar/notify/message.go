package notify

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/solotick/solotick/config"
	"github.com/solotick/solotick/internal/credentials"
	"github.com/solotick/solotick/internal/file"
	"github.com/solotick/solotick/internal/text"
)

// Message tells people of a change. Its JSON, with what message adds, is a contract: docs/table.md lists the fields.
type Message struct {
	To          config.Change `json:"-"`
	Event       config.Event  `json:"event"`
	Service     string        `json:"service"`
	Job         string        `json:"job"`
	Replica     string        `json:"replica"`               // that ran the job, or noticed the change
	Tick        time.Time     `json:"-"`                     // of ticks that were missed: the last one
	Run         string        `json:"run,omitempty"`         // uuid; "" = ticks were missed
	Outcome     string        `json:"outcome,omitempty"`     // of the run, if it has ended
	Failures    int           `json:"failures,omitempty"`    // ticks in a row that have failed; of Recovered: that had
	First       time.Time     `json:"-"`                     // of ticks that were missed
	Count       int           `json:"count,omitempty"`       // of ticks that were missed
	After       time.Duration `json:"-"`                     // StartedLate: since due; TakesTooLong: since the start
	Detail      string        `json:"detail,omitempty"`      // why it failed
	Description string        `json:"description,omitempty"` // what the job is for
	Owner       string        `json:"owner,omitempty"`       // whom to call
	Runbook     string        `json:"runbook,omitempty"`     // what to do; a URL
	At          time.Time     `json:"-"`                     // when this became known
}

// lane has the messages of a job in their order. A receiver that hangs delays no ping. No job's name has a blank.
func (m Message) lane() string { return m.Job + " change" }

func (m Message) lost() (string, []any) {
	return "a message did not arrive", []any{"job", m.Job, "event", string(m.Event)}
}

func (m Message) request(now time.Time) (request, error) {
	to := m.To.URL
	if m.To.URLFile != "" {
		var err error
		if to, err = content(m.To.URLFile); err != nil {
			return request{}, err
		}
	}
	body := m.written()
	h := http.Header{"Content-Type": {"application/json"}}
	if m.To.SecretFile == "" {
		return request{to, h, body}, nil
	}
	secrets, err := credentials.SecretFile(m.To.SecretFile, nil).Now()
	if err != nil {
		return request{url: to}, err
	}
	secrets.SignIn(h, m.id(), body, now)
	return request{to, h, body}, nil
}

// id is the same for each attempt to send the message, and for no other message.
func (m Message) id() string {
	of := cmp.Or(m.Run, stamp(m.First)+" "+stamp(m.Tick))
	sum := sha256.Sum256([]byte(strings.Join([]string{m.Service, m.Job, string(m.Event), of}, "\n")))
	return "msg_" + hex.EncodeToString(sum[:16])
}

// message is a Message as JSON, with its times.
type message struct {
	ID string `json:"id"`
	Message
	Tick    string  `json:"tick"`
	First   string  `json:"first,omitempty"`
	Seconds float64 `json:"seconds,omitempty"`
	Text    string  `json:"text"`
	At      string  `json:"at"`
}

// written is the message in the form that its receiver wants.
func (m Message) written() string {
	if m.To.Format == config.Slack {
		return text.JSON(map[string]string{"text": unmarked.Replace(m.text())})
	}
	return text.JSON(message{m.id(), m, stamp(m.Tick), stamp(m.First), m.After.Round(time.Millisecond).Seconds(),
		m.text(), stamp(m.At)})
}

// unmarked escapes what Slack would take for markup, as it asks for.
var unmarked = strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;")

// text says what happened, and what to do.
func (m Message) text() string {
	job, why := m.Job+" of "+m.Service, m.Outcome+text.Between(": ", m.Detail, "")
	said := ""
	switch m.Event {
	case config.Failed:
		said = fmt.Sprintf("%s has failed (%s).", job, why)
		if m.Failures > 1 {
			said = fmt.Sprintf("%s has failed %d times in a row (%s).", job, m.Failures, why)
		}
	case config.Recovered:
		said = fmt.Sprintf("%s succeeds again. Before, it had failed %d times in a row.", job, m.Failures)
		if m.Failures == 1 {
			said = job + " succeeds again. Before, it had failed once."
		}
	case config.TicksMissed:
		said = fmt.Sprintf("No replica fired %d ticks of %s, from %s to %s.",
			m.Count, job, stamp(m.First), stamp(m.Tick))
		if m.Count == 1 {
			said = fmt.Sprintf("No replica fired the tick of %s at %s.", job, stamp(m.Tick))
		}
	case config.StartedLate:
		said = fmt.Sprintf("%s began %s late, on %s.", job, m.After.Round(time.Millisecond), m.Replica)
	case config.TakesTooLong:
		said = fmt.Sprintf("%s has run for %s on %s, and still runs.", job, m.After.Round(time.Millisecond), m.Replica)
	}
	return said + " See: solotick history " + m.Job + text.Between(" and ", m.Runbook, "") +
		text.Between(" (owner: ", m.Owner, ")")
}

func stamp(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.UTC().Format("2006-01-02T15:04:05.000Z07:00")
}

// mostInFile is more than a URL needs.
const mostInFile = 16 << 10

// content reads a file with a URL.
func content(path string) (string, error) {
	data, _, err := file.Read(path, mostInFile)
	if err != nil {
		return "", err
	}
	text := strings.TrimSpace(string(data))
	if text == "" {
		return "", fmt.Errorf("%s is empty", path)
	}
	return text, nil
}
