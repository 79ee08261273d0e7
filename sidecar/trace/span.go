package trace

import (
	"encoding/binary"
	"encoding/hex"
	"math"
	"math/rand/v2"
	"time"

	"github.com/google/uuid"
)

// ID names a span within its trace.
type ID [8]byte

// Kind is a span's kind, as OTLP numbers it.
type Kind int

// The kinds that occur.
const (
	Internal Kind = 1
	Client   Kind = 3
)

// Span is a time in a run: the run itself, or one attempt.
type Span struct {
	Run        string // uuid of the run: it is the id of the trace, too
	ID         ID
	Parent     ID // zero = it has none
	Name       string
	Kind       Kind
	Start, End time.Time
	Attributes []Attribute
	Error      string // what went wrong, in one line; "" = nothing did
	Failed     bool
}

// Attribute is a fact about a span. Its value is a string, an int64 or a bool.
type Attribute struct {
	Key   string
	Value any
}

// OfRun is the id of the span of a whole run. It is a part of the run's uuid, so that each attempt knows its parent.
func OfRun(run string) ID {
	u, _ := uuid.Parse(run) // of our own making
	return ID(u[:8])
}

// NewID returns the id of an attempt's span.
func NewID() ID {
	var id ID
	binary.BigEndian.PutUint64(id[:], rand.Uint64N(math.MaxUint64)+1) // zero is no id
	return id
}

// Sampled reports whether a share of all traces contains that of a run. It goes by the random beginning of the uuid:
// all replicas agree, and the end of the uuid names a process.
func Sampled(run string, share float64) bool {
	u, _ := uuid.Parse(run) // of our own making
	return float64(binary.BigEndian.Uint32(u[:4])) < share*(1<<32)
}

// traceID is the id of a run's trace.
func traceID(run string) string {
	u, _ := uuid.Parse(run) // of our own making
	return hex.EncodeToString(u[:])
}

// Parent is what the job is told of a span that is recorded: a traceparent as W3C's Trace Context, version 00, has it.
func Parent(run string, id ID) string {
	return "00-" + traceID(run) + "-" + hex.EncodeToString(id[:]) + "-01"
}
