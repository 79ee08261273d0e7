package sidecar

import (
	"log/slog"
	"time"

	"github.com/solotick/solotick/internal/diagnosis"
)

// tellAgain is after how long the same trouble is told again: whoever looks at the log need not look far back for it.
const reportAgain = time.Minute

// trouble is what the log says of a Redis that is of no use. The looker alone uses it.
type trouble struct {
	redis string // where Redis is; "" = that is not told
	says  string // what was told last; "" = there is no trouble
	at    time.Time
}

// tell tells what is wrong, and with what: at once if it is something else than before, and then once a minute.
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

// over says that there is none any more.
func (t *trouble) clear() { t.says = "" }
