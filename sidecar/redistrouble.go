package sidecar

import (
	"log/slog"
	"time"

	"github.com/solotick/solotick/internal/diagnosis"
)

// reportAgain is how often the log repeats the same trouble, so that a reader need not look far back for it.
const reportAgain = time.Minute

// trouble is a Redis that is of no use, as the log has it. The looker alone uses it.
type trouble struct {
	redis string // where Redis is; "" = that is not told
	says  string // as it was last logged; "" = there is no trouble
	at    time.Time
}

// report logs what is wrong: a new trouble at once, the same one once a minute. with has further attributes.
func (t *trouble) report(log *slog.Logger, d diagnosis.Diagnosis, with ...any) {
	if d.Says == t.says && time.Since(t.at) < reportAgain {
		return
	}
	t.says, t.at = d.Says, time.Now()
	attrs := with
	if t.redis != "" {
		attrs = append(attrs, "redis", t.redis)
	}
	attrs = append(attrs, "err", d.Reason)
	if d.Hint != "" {
		attrs = append(attrs, "hint", d.Hint)
	}
	log.Error("Redis "+d.Says, attrs...)
}

// clear records that the trouble is over.
func (t *trouble) clear() { t.says = "" }
