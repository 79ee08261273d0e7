package model

import (
	"fmt"
	"math/bits"
	"strings"
)

// Mend is one thought of the protocol. Each can be left out, to see what it is there for. A set of them is their sum.
type Mend uint64

const (
	DueBypass Mend = 1 << iota
	NoEarly
	SameAnswer
	Refresh
	PerRun
	Pend
	Abandon
	Requeue
	SoftReplace
	GapInClaim
	Nonce
	LateFinish
	Settle
	Born
	LateEvidence
	OneRerun
	GapBehind
	NotYet
	BornAhead
	Respect
	AllRuns
	WaitForAll
	StopRuns
	OneWaits
	Lived
	BeganBefore
	Superseded
	Gaps
	OutOfBehind
	Memo
	Look
	DropCounts
	DueWaits
	Cancel
	Named
	SoftCancel
	AskedOnce
	HandWaits
	HandAside
	Place
	SameEnd
	Sightings
	Owner
	Alone
	Unbegun
	numberOfMends = iota

	// AllMends is the protocol as it is.
	AllMends Mend = 1<<numberOfMends - 1
)

var mends = [numberOfMends]struct{ name, what string }{
	{"DueBypass", "a due member is claimed by popping it, however old its tick"},
	{"NoEarly", "a claim ahead of Redis' time is refused"},
	{"SameAnswer", "asked again with its UUID, a run is won only while its entry is there"},
	{"Refresh", "asked again with its UUID, the lease begins anew"},
	{"PerRun", "a run is settled by its own entry, not by the ledger's newest run"},
	{"Pend", "an overlap is provisional until the run in the way has really ended"},
	{"Abandon", "a copy of a claim has no effect after its window, and who gives up abandons its UUID"},
	{"Requeue", "an at-least-once run that its own replica cut short is due again"},
	{"SoftReplace", "Replace queues the newest tick and tells the run to end, and does not steal its lock"},
	{"GapInClaim", "missed: all makes the older ticks due in the step that claims"},
	{"Nonce", "a due member is new at every enqueue"},
	{"LateFinish", "a finish that comes after the takeover takes the re-run out of the due set"},
	{"Settle", "a claim waits for the entry, not for the lock; a takeover goes by the watcher's own clock"},
	{"Born", "a ledger that was lost refuses every tick up to its new birth"},
	{"LateEvidence", "abandoning a run recorded as interrupted makes its tick due again"},
	{"OneRerun", "a run that its takeover made due again cannot be taken back as well"},
	{"GapBehind", "missed: all makes all ticks due that were refused for a run that did not end, " +
		"and not only the newest"},
	{"NotYet", "a run is not in the way of a tick still to come"},
	{"BornAhead", "a new ledger also refuses the ticks that may have been claimed early"},
	{"Respect", "a lock whose owner the ledger does not know is left alone"},
	{"AllRuns", "all live runs of the job are in the way, whatever policy they began under"},
	{"WaitForAll", "what waits behind several runs is set free by the end of the last one"},
	{"StopRuns", "Replace tells the live runs to end, and neither others nor those that end change that"},
	{"OneWaits", "while a tick waits under Queue, the next is an overlap for good"},
	{"Lived", "a takeover settles as overlaps the ticks that came due while the dead run certainly lived"},
	{"BeganBefore", "a run is in the way only of ticks that came due after it began"},
	{"Superseded", "a claim from the table has no effect once the next tick is due"},
	{"Gaps", "ticks that are passed over are written down as missed in the step that does so"},
	{"OutOfBehind", "a tick that Allow starts is no longer refused"},
	{"Memo", "that a run was interrupted is remembered for each run"},
	{"Look", "a wake without a free slot asks all the same, and must not win"},
	{"DropCounts", "a due member that is dropped is written down as missed in the same step"},
	{"DueWaits", "under Queue a tick that is due counts as the one that waits"},
	{"Cancel", "a run that an operator has cancelled is over, whoever settles it and how"},
	{"Named", "a cancel names its run, and touches no other"},
	{"SoftCancel", "a cancel tells the run to end, and does not settle it"},
	{"AskedOnce", "a request for a rerun is remembered, and has an effect once"},
	{"HandWaits", "a tick that is run by hand waits for runs as any other"},
	{"HandAside", "a tick that is due by hand takes no place in the queue"},
	{"Place", "a replica that was restarted takes only the runs of earlier processes in its own place for dead"},
	{"SameEnd", "a takeover leaves a run alone whose lease has another end than its watcher saw"},
	{"Sightings", "what another watcher has seen of a lease counts only while the lease has that very end"},
	{"Owner", "a lease is renewed, and a run is settled, only by the run that has it"},
	{"Alone", "a run whose app outlives the replica is of no process: a restart in place waits for its lease"},
	{"Unbegun", "a run that never began was in no tick's way, however it ends"},
}

// MendNamed finds a mend by its name; the error lists the names there are.
func MendNamed(name string) (Mend, error) {
	var names []string
	for i, m := range mends {
		if m.name == name {
			return 1 << i, nil
		}
		names = append(names, m.name)
	}
	return 0, fmt.Errorf("no mend is named %q: %s", name, strings.Join(names, ", "))
}

// String is the name of a single mend.
func (m Mend) String() string { return mends[bits.TrailingZeros64(uint64(m))].name }

// Means says in words what a single mend does.
func (m Mend) Means() string { return mends[bits.TrailingZeros64(uint64(m))].what }
