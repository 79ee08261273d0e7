package sim

import (
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/alicebob/miniredis/v2/server"
)

// failsOver is the fault in which a replica of Redis takes the master's place. Its replication has stood still for a
// while by then, so that it does not know the newest answers.
const failsOver = "redis fails over"

// lag is a replication that stands still, or is about to: from the first answer of a kind on.
type lag struct {
	after  string        // the script and its answer; "" = it stands still
	armed  time.Duration // since when that answer is waited for
	from   time.Duration // 0: it does not stand still
	by     time.Duration // how long before the failover it stands still
	copied time.Duration // when the replica of Redis last got what there was
	then   func()        // the failover
}

// comesBackOlder is the fault in which Redis is killed, and comes back with a snapshot of an earlier time.
const comesBackOlder = "redis comes back older"

// comesBack is the class of seeds with that fault.
const comesBack = "comes back older"

// snapshot saves what Redis has, which is what it has again when it comes back.
func (s *store) snapshot(f Fault, back func()) {
	now := s.world.now()
	s.mu.Lock()
	other := s.lag != nil // which is still to come
	if !other {
		s.lag = &lag{from: now, by: f.By}
	}
	s.mu.Unlock()
	if other {
		return
	}
	s.replicate()
	s.world.later(f.By, back)
}

// impatient is how long an answer is waited for until the next one of that script will do. After twice that, any will.
const impatient = 6 * time.Second

// copied is the database that holds what the replica of Redis has.
const copied = 1

// replicate copies what Redis has to its replica. The store is not locked.
func (s *store) replicate() {
	s.mini.DB(copied).FlushDB()
	for _, k := range s.mini.DB(0).Keys() {
		_ = s.mini.Copy(0, k, copied, k)
	}
	s.mu.Lock()
	s.shadowCopied = cloned(s.shadow)
	s.mu.Unlock()
}

// beforeScript is called before a script runs. Where the replication may stand still from this instant on, the replica
// gets what there is before all scripts of the instant: what it forgets is told by their time.
func (s *store) beforeScript() {
	s.mu.Lock()
	now := s.world.now()
	waits := s.lag != nil && s.lag.from == 0 && s.lag.copied != now
	if waits {
		s.lag.copied = now
	}
	s.mu.Unlock()
	if waits {
		s.replicate()
	}
}

// afterScript is called when a script has answered. If that is the answer that was waited for, the replication has
// stood still since before it.
func (s *store) afterScript(c *call) {
	s.mu.Lock()
	l := s.lag
	now := s.world.now()
	stands := l != nil && l.from == 0 && (l.after == c.name+" "+first(c.reply) ||
		strings.HasPrefix(l.after, c.name+" ") && now > l.armed+impatient || now > l.armed+2*impatient)
	if stands {
		l.from = now
	}
	s.mu.Unlock()
	if stands {
		s.world.note(nil, "the replication stands still", "", "", "", " after "+c.name+" "+first(c.reply))
		s.world.span(-1, now-time.Second, now+l.by+recovery, failsOver)
		s.world.later(l.by, l.then)
	}
}

// failover puts the replica of Redis in the master's place. Connections are cut, and nothing that is on its way reaches
// it.
func (s *store) failover() {
	s.world.network.sever()
	s.unload()
	s.mini.SwapDB(0, copied)
	s.mu.Lock()
	from := s.lag.from
	s.lag, s.shadow = nil, cloned(s.shadowCopied)
	s.mu.Unlock()
	s.claims.rewind(from)
}

// wait answers WAIT: a replica has what was written before, over whatever connection, unless that was after the
// replication began to stand still. So does Redis: it compares with its own offset at the connection's last command. An
// answer of too few comes when the time limit is over.
func (s *store) wait(p *server.Peer, args []string) {
	n := 1
	if s.lag != nil && s.lag.from != 0 && s.wrote >= s.lag.from {
		n = 0
		if limit, err := time.ParseDuration(args[1] + "ms"); err == nil {
			s.patience = limit
		}
		s.unconfirmed++
	}
	p.WriteInt(n)
}

func cloned(m map[string]owner) map[string]owner {
	out := make(map[string]owner, len(m))
	for k, o := range m {
		out[k] = o
	}
	return out
}

// oblivion is a failover: what happened between the two was forgotten.
type oblivion struct{ from, to time.Duration }

// forgot reports whether a failover has forgotten what happened at a time.
func (c *claims) forgot(at time.Duration) bool {
	return slices.ContainsFunc(c.oblivions, func(o oblivion) bool { return at >= o.from && at <= o.to })
}

// rewind records that Redis has forgotten what happened since a time.
func (c *claims) rewind(from time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := c.world.now()
	c.oblivions = append(c.oblivions, oblivion{from, now})
	c.forgetSuccesses(from)
	for _, cl := range c.all {
		if cl.cancelled >= from {
			cl.cancelled = 0
		}
		switch {
		case cl.won >= from:
			cl.settled, cl.how = now, "forgotten"
		case cl.settled >= from && slices.ContainsFunc(c.loss, func(at time.Duration) bool { return at >= cl.settled }):
			cl.settled, cl.how = now, "lost" // and all data with it, before the copy took over
		case cl.settled >= from && cl.how != "lost":
			cl.undone = append(cl.undone, settlement{cl.how, cl.settled, cl.told})
			cl.settled, cl.how, cl.back, cl.told = 0, "", false, 0
		}
		cl.unrenewed = cl.unrenewed || cl.renewed >= from && cl.won < from
		cl.renewed = min(cl.renewed, max(from, cl.won))
	}
	for id, o := range c.orders {
		if o.at >= from {
			o.forgotten = true
			c.orders[id] = o
		}
	}
	maps.DeleteFunc(c.bookings, func(_ string, at time.Duration) bool { return at >= from }) // asked again, they count
	c.births = slices.DeleteFunc(c.births, func(b birth) bool { return b.at >= from })
	for i := range c.held {
		switch h := &c.held[i]; {
		case h.from >= from && (h.to == 0 || h.to > now): // it was held until now
			h.to = now
		case h.from < from && h.to >= from:
			h.to = 0
		}
	}
	for i := range c.triggers {
		if c.triggers[i].at >= from {
			c.triggers[i].forgotten = now
		}
	}
	for i := range c.queued {
		if c.queued[i].at >= from {
			c.queued[i].forgotten = now
		}
	}
}
