package model

import "cmp"

// Policy says what becomes of a tick that comes due while the job's previous run is not over.
type Policy uint8

const (
	Forbid Policy = iota
	Allow
	Replace
	Queue
	numberOfPolicies
)

var policyNames = [numberOfPolicies]string{"forbid", "allow", "replace", "queue"}

func (p Policy) String() string { return policyNames[p] }

// RedisFault is what the fault Redis does.
type RedisFault uint8

const (
	Failover  RedisFault = iota // to a standby that may lag behind
	Flush                       // total loss of data
	ClockJump                   // Redis' clock steps over the end of every lease
)

// Fault is a kind of thing that goes wrong.
type Fault uint8

const (
	Crash       Fault = iota // of a replica, without goodbye
	Restart                  // of a crashed replica
	Loss                     // of a request or of a reply
	Stray                    // the sender times out, and its request arrives later, or never
	Stall                    // a trust window closes before its holder acts: SIGSTOP, a garbage collection, Redis away
	Refusal                  // the job cannot be started
	Extension                // no fault, but bounded like one: the keeper extends the lease
	Redis                    // see RedisFault
	Theft                    // somebody else takes the lock for a while
	Freeze                   // Redis stops; after the next tick has come, it runs what it got before
	CancelAsked              // no fault: an operator has a live run end for good
	RerunAsked               // no fault: an operator has a tick run again
	LateReap                 // a watcher has seen that a lease is over, and its takeover is under way for a while
	AppGone                  // the app that asked for a tick is gone before its run begins
	kindsOfFault
)

var faultNames = [kindsOfFault]string{"crash", "restart", "loss", "stray", "stall", "refusal", "extension",
	"redis fault", "theft", "freeze", "cancel", "rerun", "late reap", "app gone"}

func (f Fault) String() string { return faultNames[f] }

// Faults says how often each kind may strike. In a state it is what is left.
type Faults [kindsOfFault]uint8

// Scenario is one bounded world to be searched in full.
type Scenario struct {
	Name     string
	Replicas int // up to 3; 0 = 2
	Ticks    int // up to 4; 0 = 2
	Policy   Policy

	// In a rollout each replica asks with the policy that By has for it. From the tick Reload on, all ask with After;
	// 0 = there is no reload.
	Rollout bool
	By      [maxReplicas]Policy
	Reload  uint8
	After   Policy

	AtLeastOnce bool
	MaxAttempts uint8 // of an at-least-once run; 0 = 3
	MissedAll   bool  // `missed: all`; otherwise `latest`

	Healthy      int  // a replica that no fault strikes; -1 = none
	Skew         bool // clocks are wrong: replicas may wake for a tick at any time
	Tolerance    bool // claims may be a little early
	CannotStart  [maxReplicas]bool
	OneSlot      bool  // a replica runs one tick at a time
	Asked        bool  // an app asks for each tick, and none for what is due; it may outlive its replica
	Drops        bool  // members of the due set that a newer tick has superseded are dropped
	Begin        uint8 // ticks that have come before the first replica starts
	Faults       Faults
	RedisFault   RedisFault
	WaitReplicas bool // a claim is believed only once it is replicated

	Strict  bool      // every tick is fired or truly overlapped; otherwise it may also be counted as missed
	Only    Violation // look for nothing else
	IsLimit bool      // a known limit of the protocol: its violation has to be found

	small bool
}

func (c *Scenario) setDefaults() {
	c.Replicas = cmp.Or(c.Replicas, 2)
	c.Ticks = cmp.Or(c.Ticks, 2)
	c.MaxAttempts = cmp.Or(c.MaxAttempts, 3)
}

// policyOf is what a replica's table says of the job when a tick has come.
func (c *Scenario) policyOf(replica int, tick uint8) Policy {
	switch {
	case c.Reload != 0 && tick >= c.Reload:
		return c.After
	case c.Rollout:
		return c.By[replica]
	}
	return c.Policy
}

// mixed reports whether ticks are asked with more than one policy.
func (c *Scenario) mixed() bool { return c.Rollout || c.Reload != 0 }
