package series

import "math/bits"

// Rule is one thought of the scripts or of their callers. Each can be left out, to see what it is there for. A set of
// them is their sum.
type Rule uint32

const (
	AskedOnce Rule = 1 << iota
	Window
	Wait
	Keep
	Newest
	MarkNewest
	OldMember
	TakenBack
	Member
	MemberCopy
	Past
	GivesWay
	ReplacedTold
	Overlap
	MissedTold
	OfBefore
	MissedFrom
	EndedMark
	Weighed
	OwnEntry
	Forget
	numberOfRules = iota

	// AllRules is the protocol as it is.
	AllRules Rule = 1<<numberOfRules - 1
)

var rules = [numberOfRules]struct{ name, what string }{
	{"AskedOnce", "a request that was carried out is not carried out again, not even after a DELETE"},
	{"Window", "a copy of a request has no effect when its window is closed"},
	{"Wait", "a caller sends another copy when the window of the one before is closed"},
	{"Keep", "a time that has come is kept when the timer is set with another schedule"},
	{"Newest", "a timer that is set anew knows the newest time that was made due"},
	{"MarkNewest", "so does the mark that DELETE leaves"},
	{"OldMember", "the member of the definition before leaves the due set"},
	{"TakenBack", "DELETE also takes the newest time back that was made due"},
	{"Member", "spring moves a timer on only if it waits for the time that the replica has seen"},
	{"MemberCopy", "and only if no request has set it since"},
	{"Past", "a time up to the newest one is not made due again"},
	{"GivesWay", "a time that no replica has claimed gives way to a newer one"},
	{"ReplacedTold", "and is told to the history as missed"},
	{"Overlap", "no time becomes due while the one before runs, or is handed on"},
	{"MissedTold", "times that are passed over are told to the history"},
	{"OfBefore", "so is the one for which the timer waited, though its schedule may not have it any more"},
	{"MissedFrom", "and those that were made due before are not"},
	{"EndedMark", "when its schedule ends, a timer leaves a mark with the request that set it"},
	{"Weighed", "the bytes of a time that gives way are not counted any more"},
	{"OwnEntry", "a time that is due has an entry of its own"},
	{"Forget", "the end of its run deletes it"},
}

// String is the name of a single rule.
func (r Rule) String() string { return rules[bits.TrailingZeros32(uint32(r))].name }

// Means says in words what a single rule does.
func (r Rule) Means() string { return rules[bits.TrailingZeros32(uint32(r))].what }

// Violation is a broken promise.
type Violation uint8

const (
	None Violation = iota
	StartedTwice
	OldDefinition
	NotInForce
	SetAgain
	Leftover
	SteppedOver
	EndedEarly
	TwoFates
	NoFate
	Blocked
	LeftDue
	Beside
	WrongRequest
	WrongBytes
)

var violations = [...]string{
	None:          "none",
	StartedTwice:  "time started twice",
	OldDefinition: "definition in force that is older than an answered request",
	NotInForce:    "request answered, and not in force",
	SetAgain:      "timer set again by a request that was carried out before a DELETE",
	Leftover:      "due members that are not those of the entries",
	SteppedOver:   "timer waits for a time behind the next one",
	EndedEarly:    "timer ended before its schedule",
	TwoFates:      "time with two fates",
	NoFate:        "time without a fate",
	Blocked:       "time passed over for one that no replica has claimed",
	LeftDue:       "time due after an answered DELETE",
	Beside:        "two times of the timer dealt with at once",
	WrongRequest:  "time run with another request than its own",
	WrongBytes:    "wrong sum of bytes",
}

func (v Violation) String() string { return violations[v] }
