package lock

import (
	"strconv"
	"strings"
	"time"

	"github.com/solotick/solotick/internal/rds"
)

// Heard is a claim of a tick of the table, as the replicas hear of it on the channel of nudges.
type Heard struct {
	Tick   time.Time
	Job    string
	Answer Answer // as a claim of this tick would get it
}

// ParseHeard reads `JOB TICK BORN REPLICA`, which acquire publishes after `run`; false if it is anything else. So the
// others need not ask for the tick. A message that is lost costs a question.
func ParseHeard(text string) (h Heard, ok bool) {
	f := strings.Fields(text)
	if len(f) != 4 {
		return h, false
	}
	tick, bad := strconv.ParseInt(f[1], 10, 64)
	born, wrong := strconv.ParseInt(f[2], 10, 64)
	h = Heard{Job: f[0], Tick: rds.FromMillis(tick)}
	h.Answer = Answer{Code: Fired, Prev: h.Tick, Born: rds.FromMillis(born), Holder: f[3]}
	return h, bad == nil && wrong == nil
}
