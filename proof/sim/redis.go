package sim

import (
	"crypto/sha1"
	"encoding/hex"
	"net"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/alicebob/miniredis/v2/server"
)

// store is the Redis of a world: the real scripts in miniredis, behind a network, with a clock that can be stepped. It
// sees every script that runs and every lock that one touches, in the order in which Redis does.
type store struct {
	world *world
	mini  *miniredis.Miniredis
	dials net.Conn // holds the server that Dial started

	mu      sync.Mutex
	sky     weather
	offset  time.Duration // of its clock, from the world's
	from    *call         // what arrived last
	at      *link         // over this
	replies uint64        // to it
	script  *call         // the script under way
	wrote   time.Duration // when anybody wrote last
	names   map[string]string
	shadow  map[string]owner // lock keys
	claims  *claims
	scripts int

	standstill   standstill
	state        string // redisFull, redisReadsOnly; "" = well
	denials      int
	lag          *lag
	shadowCopied map[string]owner // what the replica of Redis has of shadow
	patience     time.Duration    // how long the next answer is kept back
	unconfirmed  int
	hasty        []hasty
}

// owner is what stands in a lock key.
type owner struct {
	run     string
	expires time.Duration // on Redis' clock, as a time of the world
}

// call is a request under way, and then its answer.
type call struct {
	sent    time.Duration // when it left its replica
	replica *replica
	key     uint64   // of dice
	name    string   // of its script, "" when it is none
	keys    []string // of the script
	args    []string
	reply   []string
	ask     *ask          // what acquire made of it
	wrote   bool          // the script has changed something
	keep    time.Duration // how long Redis keeps the answer back
}

// run is the UUID that the script was called for.
func (c *call) run() string {
	switch {
	case c.name == "settle" && len(c.args) > argRun:
		return c.args[argRun]
	case c.name != "register" && len(c.args) > 0:
		return c.args[0]
	}
	return ""
}

func newStore(w *world) (*store, error) {
	s := &store{world: w, mini: miniredis.NewMiniRedis(), names: map[string]string{}, shadow: map[string]owner{}}
	s.claims = newClaims(w)
	s.mini.ClockTTL(true)
	c, err := s.mini.Dial() // starts the server, without a listener
	if err != nil {
		return nil, err
	}
	s.dials = c
	s.mini.Server().SetPreHook(s.hook)
	return s, nil
}

func (s *store) serve(c net.Conn) { s.mini.Server().ServeConn(c) }

func (s *store) weather() weather {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.sky
}

// step moves Redis' clock. TTLs are durations to miniredis: a step back does not make them longer, which a real
// server's would be.
func (s *store) step(d time.Duration) {
	s.mu.Lock()
	s.offset += d
	if d < 0 {
		for _, locks := range []map[string]owner{s.shadow, s.shadowCopied} {
			for k, o := range locks {
				o.expires += d
				locks[k] = o
			}
		}
	}
	s.mu.Unlock()
	s.setTime()
}

// setTime tells miniredis the time once its clock was stepped: from then on it has none of its own.
func (s *store) setTime() {
	s.mu.Lock()
	offset := s.offset
	s.mu.Unlock()
	s.mini.SetTime(time.Now().UTC().Add(offset))
}

// forget loses all data, the copy of a replica of Redis too, and with a restart the scripts.
func (s *store) forget() {
	uncounted := s.uncounted()
	s.mini.FlushAll()
	s.mu.Lock()
	s.shadow, s.shadowCopied = map[string]owner{}, nil
	s.mu.Unlock()
	s.claims.lost(uncounted)
}

// arriving is called before a message is put before the server.
func (s *store) arriving(l *link, about *call) {
	s.mu.Lock()
	s.from, s.at, s.replies = about, l, 0
	stepped := s.world.stepped
	s.mu.Unlock()
	if stepped {
		s.setTime()
	}
}

// hook sees every command before it runs, those of scripts among them.
func (s *store) hook(p *server.Peer, cmd string, args ...string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.script != nil && (cmd == "EVALSHA" || cmd == "EVAL"):
		panic("the answer of " + s.script.name + " was not seen before the next script")
	case s.script != nil:
		if s.denied(p, cmd) {
			return true
		}
		s.touched(cmd, args)
		return false
	case cmd == "WAIT" && len(args) > 1:
		s.wait(p, args)
		return true
	case s.from == nil:
		return false
	case cmd != "EVALSHA" && cmd != "EVAL" || len(args) < 2:
		return s.denied(p, cmd)
	}
	c := *s.from
	c.name, c.keys, c.args = s.name(cmd, args[0]), keysOf(args), argv(args)
	s.mu.Unlock() // no other script runs, and miniredis must not be asked with the store locked
	s.beforeScript()
	s.mu.Lock()
	s.script = &c
	s.scripts++
	return false
}

// name of a script: the first word of its first comment, which comes with an EVAL after each restart.
func (s *store) name(cmd, text string) string {
	if cmd == "EVALSHA" {
		return s.names[text]
	}
	sum := sha1.Sum([]byte(text))
	_, comment, _ := strings.Cut(text, "-- ")
	name, _, _ := strings.Cut(comment, ":")
	s.names[hex.EncodeToString(sum[:])] = name
	return name
}

// argv are a script's arguments without its keys.
func argv(args []string) []string { return args[2+len(keysOf(args)):] }

func keysOf(args []string) []string {
	n, _ := strconv.Atoi(args[1])
	return args[2:min(2+n, len(args))]
}

// job is whose ledger a script was called with as its first key.
func (c *call) job() string {
	_, job, _ := strings.Cut(first(c.keys), ":job:")
	return job
}

// answered takes the reply to what runs; the answer belongs to it until its replica has read it.
// A message on another link than the request's is a nudge.
func (s *store) answered(l *link, reply []byte) (*call, []byte) {
	s.mu.Lock()
	if s.at != l {
		defer s.mu.Unlock()
		return &call{key: dice(text(string(reply))).throw(l.id)}, reply
	}
	c, keep := s.script, s.patience
	s.script, s.patience = nil, 0
	s.replies++
	key := dice(s.from.key).throw(s.replies)
	s.mu.Unlock()
	if c == nil {
		return &call{key: key, keep: keep}, reply
	}
	reply = asRedis(reply)
	c.key = key
	c.reply = parts(reply)
	s.claims.ran(c)
	if c.ask != nil {
		s.checkQueue(c.ask)
		s.checkLimit(c.ask)
		s.checkScheduleFirst(c.ask)
	}
	s.afterScript(c)
	return c, reply
}

// delivered is called when a replica has read the answer.
func (s *store) delivered(c *call) { s.claims.known(c) }

// parts are the texts and numbers of a reply that is an array; of an error its line.
func parts(reply []byte) []string {
	lines := strings.Split(string(reply), "\r\n")
	if len(lines) == 0 || !strings.HasPrefix(lines[0], "*") {
		return lines[:min(1, len(lines))]
	}
	var out []string
	for i := 1; i < len(lines); i++ {
		switch {
		case strings.HasPrefix(lines[i], ":"):
			out = append(out, lines[i][1:])
		case strings.HasPrefix(lines[i], "$") && i+1 < len(lines):
			i++
			out = append(out, lines[i])
		}
	}
	return out
}

// unload is what a restart does to scripts.
func (s *store) unload() {
	c, srv := net.Pipe()
	s.mini.Server().ServeConn(srv)
	defer c.Close()
	_, _ = c.Write([]byte("*2\r\n$6\r\nSCRIPT\r\n$5\r\nFLUSH\r\n"))
	_, _ = c.Read(make([]byte, 16))
}
