package config

import (
	"errors"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/solotick/solotick/config/schedule"
	"github.com/solotick/solotick/config/strict"
)

// Problem, Problems and Env are those of package strict.
type (
	Problem  = strict.Problem
	Problems = strict.Problems
	Env      = strict.Env
)

// Table is a checked table: every value is valid and every default is filled in.
type Table struct {
	Service       string        // names the group of replicas; part of every lock's name
	Redis         Redis         // where the locks are
	Listen        string        // address of /metrics, /healthz, /readyz; default ":9747", "" = off
	Clock         string        // "redis" (default) | "local"
	Admin         string        // of the status page and the API, on this machine; default "127.0.0.1:9748", "" = off
	ShutdownGrace time.Duration // default 25s
	MaxRunning    int           // runs at once on this replica, to 10000; 0 = no limit, -1 = none: the table is broken
	Ready         *Ready        // nil = the app counts as ready
	Calendars     Calendars     `json:",omitempty"` // that jobs may name
	Jobs          []Job         // in the order of the file
	Warnings      []Problem     // what is odd but no error, sorted by position
	Hash          string        // 12 hex digits over the table before its variables; "" = not all of it could be read

	// Read fills these in; they are empty in a table of Load.
	Unset   []string          `json:"-"` // variables that are not set
	Unknown map[string]string `json:"-"` // unread keys outside of jobs ("redis.url"), and Names, each with the reason
}

// Ready says how to ask the app whether it is ready. Exactly one of URL, TCP and Exec is set.
type Ready struct {
	URL      string        // on this machine, or http://unix:/run/app.sock:/path
	TCP      string        // host:port on this machine
	Exec     []string      // the program and its arguments
	Interval time.Duration // from one answer to the next question, 100ms to 1h; default 2s
	Timeout  time.Duration // of one question, 10ms to 1m; default 1s
}

// Redis says how to reach the server that holds the locks.
type Redis struct {
	URL             string        // redis://, rediss://, unix:///path?db=0, "embedded"; "" when the table names none
	Sentinel        *Sentinel     // in place of URL; nil = none
	Cluster         *Cluster      // in place of URL; nil = none
	Username        string        // user of the ACL; "" = the default user, or the one in URL
	PasswordFile    string        // read at every connect, and again when it changes
	PasswordCommand []string      `json:",omitempty"` // prints the password; nil = none
	PasswordRefresh time.Duration `json:",omitzero"`  // how often PasswordCommand is run; 0 = DefaultPasswordRefresh
	Identity        *Identity     `json:",omitempty"` // in place of a password; nil = none
	TLS             *TLS          // nil = none beyond what the URL asks for
	WaitReplicas    int           // replicas that must have a claim before it is believed, 0 to 10
	Timeout         time.Duration // one round trip; default 500ms
	History         int           `json:",omitzero"` // entries of each job, 1 to 100000; 0 = not said: 200
}

// Sentinel names the Sentinels that know the present master.
type Sentinel struct {
	Master       string
	Addrs        []string // host:port, at least one
	Username     string   // on the Sentinels; "" = the default user
	PasswordFile string   // of the Sentinels; "" = no password
}

// Cluster names some nodes of a Redis Cluster.
type Cluster struct {
	Addrs []string // host:port, at least one
}

// Job is one row of the table.
type Job struct {
	Name              string
	Schedule          *schedule.Schedule
	TimeZone          string // IANA name; "UTC" by default
	HTTP              *HTTP  // exactly one of HTTP, Exec and Claim is set
	Exec              *Exec
	Claim             *Async        `json:",omitempty"` // the app's own scheduler runs the job, and asks first
	AllowRemote       bool          // the HTTP target may be another host
	Timeout           time.Duration // a run's limit; default 5m
	Guarantee         Guarantee
	ConcurrencyPolicy ConcurrencyPolicy
	Concurrency       int `json:",omitzero"` // under Allow, how many runs may live at once in the cluster; 0 = no limit
	Missed            Missed
	StartingDeadline  time.Duration // 0 = no limit
	StartRetries      int           // further rounds of all replicas when none could start a tick, 0 to 100; default 5
	Retry             Retry
	Lock              Lock
	Jitter            time.Duration // 0 = none
	Start, End        time.Time     // zero = no bound
	Days              Days          `json:",omitzero"` // which ticks of its schedule it has; the zero value = all
	Suspend           bool
	Observe           bool   `json:",omitzero"` // its ticks are taken, and nothing is called
	Priority          int    `json:",omitzero"` // among what waits for a slot, from 0 to 100, the highest first
	Reserved          bool   // its runs do not count against MaxRunning and never wait for it
	Notify            string // the URL that is pinged when a run starts or ends; may hold secrets; "" = none
	Change            Change `json:",omitzero"` // notify.change; zero = no messages
	// Facts about the job, for people. A job without it keeps the hash that it had before these fields came.
	Description string            `json:",omitempty"` // one line
	Owner       string            `json:",omitempty"` // one line
	Runbook     string            `json:",omitempty"` // http(s)://host/path
	Labels      map[string]string `json:",omitempty"` // with those of defaults; at most 5

	Fingerprint string // 16 hex digits: equal as long as the job is the same series of ticks

	// Content is 16 hex digits over everything in the job, with its secrets. It is equal as long as a reload leaves the
	// job as it was. It must not leave the process, because it could confirm a guess at a secret.
	Content string `json:"-"`
}

// Reports says how the app reports on the job's runs; nil = it does not.
func (j *Job) Reports() *Async {
	if j.Claim == nil && j.HTTP != nil {
		return j.HTTP.Async
	}
	return j.Claim
}

// Guarantee says how many replicas run a tick.
type Guarantee string

// The guarantees a job can ask for.
const (
	AtMostOnce   Guarantee = "at-most-once"
	AtLeastOnce  Guarantee = "at-least-once"
	EveryReplica Guarantee = "every-replica"
)

// ConcurrencyPolicy says what happens to a tick that comes due while the job still runs.
type ConcurrencyPolicy string

// The policies a job can ask for.
const (
	Forbid  ConcurrencyPolicy = "Forbid"
	Allow   ConcurrencyPolicy = "Allow"
	Replace ConcurrencyPolicy = "Replace"
	Queue   ConcurrencyPolicy = "Queue"
)

// Missed says what happens to ticks that no replica could fire in time.
type Missed string

// The ways to treat missed ticks.
const (
	Latest Missed = "latest"
	All    Missed = "all"
	Skip   Missed = "skip"
)

// Retry says how failed attempts of a run are repeated.
type Retry struct {
	Limit      int           // attempts after the first; default 0
	Backoff    time.Duration // before the second attempt, doubled for each further one; default 5s
	MaxBackoff time.Duration // default 1m
	On         []CodeRange   `json:",omitempty"` // answers that are tried again; nil = 408, 425, 429 and 500-599
}

// retried are the answers by which an app says that a later attempt may succeed.
var retried = []CodeRange{{408, 408}, {425, 425}, {429, 429}, {500, 599}}

// After reports whether a request is sent again after an answer with that code.
func (r Retry) After(code int) bool {
	if r.On == nil {
		return covers(retried, code)
	}
	return covers(r.On, code)
}

// Lock tunes a job's lock.
type Lock struct {
	TTL         time.Duration // default 15s
	SafetyDelay time.Duration // default 1s
}

// HTTP is a request that runs a job.
type HTTP struct {
	Method       string // default POST
	URL          string // http(s)://host/path, http://unix:/run/app.sock:/path for a unix socket
	Headers      map[string]string
	Body         string
	SuccessCodes []CodeRange // default 200-299
	// IdempotencyKey is the form of the header Idempotency-Key; "" is KeyText.
	IdempotencyKey KeyForm `json:",omitzero"`
	// A request without these keeps the hash that it had before they came.
	HeaderFiles map[string]HeaderFile `json:",omitempty"` // by the headers' names, none of which is in Headers
	TLS         *TLS                  `json:",omitempty"` // of an https URL; nil = the system's roots, no certificate
	Sign        Sign                  `json:",omitzero"`
	Async       *Async                `json:",omitempty"` // nil = the answer ends the run
}

// Async says how an app reports on a run that it has accepted by the answer 202, or claimed.
type Async struct {
	Timeout   time.Duration // of the run from then on; default 1h
	Heartbeat time.Duration // the app reports at least this often; default 5s
}

// KeyForm is a form of the key that names a tick for the app.
type KeyForm string

// The forms of a key.
const (
	KeyText KeyForm = "text" // "service/job/tick", with its quotes
	KeyUUID KeyForm = "uuid" // a UUID made of that text, without quotes
)

// IsZero reports whether the key has its default form. Then it is left out of hashes, so that tables keep those that
// they had before there were forms.
func (k KeyForm) IsZero() bool { return k == "" || k == KeyText }

// Succeeds reports whether an answer is a success.
func (h *HTTP) Succeeds(code int) bool { return covers(h.SuccessCodes, code) }

// CodeRange is a range of HTTP status codes, both ends included.
type CodeRange struct{ From, To int }

func covers(codes []CodeRange, code int) bool {
	return slices.ContainsFunc(codes, func(r CodeRange) bool { return r.From <= code && code <= r.To })
}

// Exec is a command that runs a job.
type Exec struct {
	Command []string // at least the program
	Env     map[string]string
	Dir     string // "" = Solotick's own
}

// set puts text into a mapping, which it makes if needed. A missing mapping and an empty one then have the same hash.
func set[M ~map[string]V, V any](to *M, name string, value V) {
	if *to == nil {
		*to = M{}
	}
	(*to)[name] = value
}

// TLS names the files of a TLS connection; an empty name leaves the part to the system's defaults.
type TLS struct{ CAFile, CertFile, KeyFile, ServerName string }

// HeaderFile names the file that a header's value comes from.
type HeaderFile struct {
	File   string // read for each attempt
	Prefix string // stands before what the file holds
}

// Sign says how requests prove that Solotick made them. The zero value is no signature.
type Sign struct {
	SecretFile string // signs as Standard Webhooks; read for each attempt
}

// Change says which messages for people a job sends, and where. The zero value sends none.
type Change struct {
	URL, URLFile string        // exactly one is set; the file is read for each attempt to send
	On           []Event       // default failed, recovered and missed
	After        int           // failed: when so many ticks in a row have failed; default 1
	Late         time.Duration // a run begins later than this after its tick came due; 0 = no message
	Long         time.Duration // a run lasts longer than this; 0 = no message
	Format       Format
	SecretFile   string // signs as Standard Webhooks; "" = no signature; read for each attempt to send
}

// Event is what a message tells.
type Event string

// The events of a job. Late and Long are switched on by their durations, the others by On.
const (
	Failed       Event = "failed"
	Recovered    Event = "recovered"
	TicksMissed  Event = "missed"
	StartedLate  Event = "late"
	TakesTooLong Event = "long"
)

// Format is the form of a message.
type Format string

// The formats of a message.
const (
	JSON  Format = "json"
	Slack Format = "slack"
)

// Wanted reports whether the job sends a message about an event.
func (c *Change) Wanted(e Event) bool {
	switch e {
	case StartedLate:
		return c.Late > 0
	case TakesTooLong:
		return c.Long > 0
	}
	return slices.Contains(c.On, e)
}

// OfStreak says what a settlement tells, before which so many ticks in a row had failed, and now so many have; "" =
// nothing.
func (c *Change) OfStreak(before, now int) Event {
	event := Event("")
	switch {
	case c.After == 0 || before == now:
	case now == 0 && before >= c.After:
		event = Recovered
	case before < c.After && now >= c.After:
		event = Failed
	}
	if !c.Wanted(event) {
		return ""
	}
	return event
}

// Identity says which cloud vouches for this process, in place of a password. Exactly one field is set.
type Identity struct {
	AWS    *AWS
	Google bool
	Azure  bool
}

// AWS names a Redis of AWS that checks tokens of IAM.
type AWS struct {
	Service AWSService
	Cluster string // the replication group, the cluster of MemoryDB, or the serverless cache
	Region  string // "" = that of the environment
}

// AWSService is a service of AWS that runs a Redis.
type AWSService string

// The services of AWS whose tokens differ.
const (
	ElastiCache           AWSService = "elasticache"
	ElastiCacheServerless AWSService = "elasticache-serverless"
	MemoryDB              AWSService = "memorydb"
)

// Calendars are sets of whole days by name.
type Calendars map[string]*schedule.Days

// Days says which ticks of a job's schedule the job has, and which move to another day.
type Days struct {
	Exclude    []string       `json:",omitempty"` // names of calendars
	Include    []string       `json:",omitempty"`
	OnExcluded schedule.Shift `json:",omitempty"` // "" = skip
	Every      schedule.Every `json:",omitzero"`
	Sums       []string       `json:",omitempty"` // of what the calendars say: those of Exclude, then of Include
}

// Embedded is the redis.url of the store inside Solotick itself, for trials on one machine.
const Embedded = "embedded"

// Restart names what a replica cannot change while it runs: its name, its connections and its clock. It returns nil if
// next can replace t. The error names keys and never shows their values.
func (t *Table) Restart(next *Table) error {
	var keys []string
	compare := func(key string, was, is any) {
		if !reflect.DeepEqual(was, is) {
			keys = append(keys, key)
		}
	}
	compare("service", t.Service, next.Service)
	redis, named := reflect.ValueOf(next.Redis), redisKeys(&Redis{})
	for field, value := range reflect.ValueOf(t.Redis).Fields() {
		key, _ := strict.NearestKey(named, field.Name) // they differ in case alone
		compare("redis."+key.Name, value.Interface(), redis.FieldByIndex(field.Index).Interface())
	}
	compare("listen", t.Listen, next.Listen)
	compare("admin", t.Admin, next.Admin)
	compare("clock", t.Clock, next.Clock)
	if len(keys) == 0 {
		return nil
	}
	return errors.New(strings.Join(keys, ", ") + " cannot change while running: restart the replica")
}
