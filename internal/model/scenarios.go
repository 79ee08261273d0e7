package model

import (
	"fmt"
	"slices"
)

// nobody is healthy: a fault may strike every replica.
const nobody = -1

// policies are searched with every pair of faults.
var policies = []Scenario{
	{Name: "forbid/amo", Skew: true, Strict: true},
	{Name: "forbid/alo", AtLeastOnce: true, Strict: true},
	{Name: "allow/amo", Policy: Allow, Skew: true, Strict: true},
	{Name: "allow/alo", Policy: Allow, AtLeastOnce: true},
	{Name: "queue/amo", Policy: Queue, Strict: true},
	{Name: "queue/alo", Policy: Queue, AtLeastOnce: true, Strict: true},
	{Name: "replace/amo", Policy: Replace, Strict: true},
	{Name: "replace/alo", Policy: Replace, AtLeastOnce: true, Strict: true},
}

var pairs = []struct {
	name   string
	faults Faults
	// small: searched within a second; smallOnce: at-most-once only
	small, smallOnce bool
}{
	{"crash+stall", Faults{Crash: 1, Stall: 1}, false, true},
	{"crash+stray", Faults{Crash: 1, Stray: 1}, true, false},
	{"crash+loss", Faults{Crash: 1, Loss: 1}, true, false},
	{"crash+restart", Faults{Crash: 1, Restart: 1}, false, true},
	{"stray+stall", Faults{Stray: 1, Stall: 1}, false, false},
	{"loss+stall", Faults{Loss: 1, Stall: 1}, false, false},
	{"loss+stray", Faults{Loss: 1, Stray: 1}, false, false},
	{"stall+extend", Faults{Stall: 1, Extension: 1}, false, true},
	{"crash+extend", Faults{Crash: 1, Extension: 1}, true, false},
}

// special are worlds of their own: more replicas or ticks, refused starts, `missed: all`, faults of Redis.
var special = []Scenario{
	{Name: "forbid/amo/unhealthy crash+stall", Healthy: nobody, Skew: true, Faults: Faults{Crash: 1, Stall: 1}},
	{Name: "forbid/amo/unhealthy restart", Healthy: nobody, Skew: true, Faults: Faults{Crash: 2, Restart: 1}},
	{small: true, Name: "forbid/amo/T3 crash", Ticks: 3, Skew: true, Strict: true, Faults: Faults{Crash: 1}},
	{Name: "forbid/amo/T3 stall", Ticks: 3, Strict: true, Faults: Faults{Stall: 1}},
	{Name: "forbid/amo/R3 crash", Replicas: 3, Skew: true, Strict: true, Faults: Faults{Crash: 1}},
	{small: true, Name: "forbid/alo/T1 crash+stall", Ticks: 1, AtLeastOnce: true, Strict: true,
		Faults: Faults{Crash: 1, Stall: 1}},
	{Name: "forbid/alo/R3 stall", Replicas: 3, AtLeastOnce: true, Strict: true, Faults: Faults{Stall: 1}},
	{Name: "queue/amo/T3 crash", Ticks: 3, Policy: Queue, Strict: true, Faults: Faults{Crash: 1}},
	{Name: "queue/alo/T3 stall", Ticks: 3, Policy: Queue, AtLeastOnce: true, Strict: true, Faults: Faults{Stall: 1}},
	{Name: "replace/amo/T3 crash+extend", Ticks: 3, Policy: Replace, Strict: true,
		Faults: Faults{Crash: 1, Extension: 1}},

	{small: true, Name: "handover/alone", Replicas: 1, Strict: true, Faults: Faults{Loss: 1, Stray: 1, Refusal: 2}},
	{small: true, Name: "handover/alone stray2", Replicas: 1, Strict: true, Faults: Faults{Stray: 2, Refusal: 2}},
	{Name: "handover/1other", Strict: true, Faults: Faults{Stray: 1, Refusal: 2}},
	{Name: "handover/1other crash", Strict: true, Faults: Faults{Crash: 1, Refusal: 2}},
	{Name: "handover/2others", Replicas: 3, Ticks: 1, Strict: true, Faults: Faults{Crash: 1, Stray: 1, Refusal: 2}},
	{Name: "handover/2others T2", Replicas: 3, Strict: true, Faults: Faults{Refusal: 2}},
	{Name: "handover/2 cannot", Replicas: 3, Ticks: 1, Strict: true, CannotStart: [maxReplicas]bool{1: true, 2: true},
		Faults: Faults{Stray: 1}},

	{Name: "all/amo crash", Ticks: 3, Begin: 2, MissedAll: true, Faults: Faults{Crash: 1}},
	{Name: "all/amo late crash+loss", Begin: 2, MissedAll: true, Faults: Faults{Crash: 1, Loss: 1}},
	{small: true, Name: "all/amo/R1 T3 refusal", Replicas: 1, Ticks: 3, Begin: 1, MissedAll: true,
		Faults: Faults{Refusal: 1}},
	{small: true, Name: "all/queue/R1 T4", Replicas: 1, Ticks: 4, Policy: Queue, MissedAll: true, Healthy: nobody,
		Faults: Faults{Extension: 1}},
	{Name: "all/alo crash+stall", Begin: 2, MissedAll: true, AtLeastOnce: true, Faults: Faults{Crash: 1, Stall: 1}},

	{small: true, Name: "early/forbid/amo crash+stray", Tolerance: true, Strict: true,
		Faults: Faults{Crash: 1, Stray: 1}},
	{Name: "early/forbid/alo crash+stall", Tolerance: true, AtLeastOnce: true, Strict: true,
		Faults: Faults{Crash: 1, Stall: 1}},
	{small: true, Name: "early/queue/amo crash+loss", Tolerance: true, Policy: Queue, Strict: true,
		Faults: Faults{Crash: 1, Loss: 1}},
	{small: true, Name: "early/replace/amo crash+extend", Tolerance: true, Policy: Replace, Strict: true,
		Faults: Faults{Crash: 1, Extension: 1}},
	{Name: "early/flush/amo", Tolerance: true, Healthy: nobody, Only: FiredTwice, RedisFault: Flush,
		Faults: Faults{Loss: 1, Redis: 1}},

	{small: true, Name: "theft/forbid/amo crash", Strict: true, Faults: Faults{Crash: 1, Theft: 1}},
	{small: true, Name: "theft/forbid/amo stray", Strict: true, Faults: Faults{Stray: 1, Theft: 1}},
	{small: true, Name: "theft/forbid/alo extend2", AtLeastOnce: true, Strict: true,
		Faults: Faults{Extension: 2, Theft: 1}},
	{small: true, Name: "theft/allow/amo crash", Policy: Allow, Strict: true, Faults: Faults{Crash: 1, Theft: 1}},
	{small: true, Name: "theft/queue/amo crash+extend", Policy: Queue, Strict: true,
		Faults: Faults{Crash: 1, Extension: 1, Theft: 1}},
	{small: true, Name: "theft/replace/amo extend", Policy: Replace, Strict: true,
		Faults: Faults{Extension: 1, Theft: 1}},

	{small: true, Name: "failover/nowait (known limit)", Ticks: 1, Healthy: nobody, Only: FiredTwice,
		Faults: Faults{Loss: 1, Redis: 1}, IsLimit: true},
	{Name: "failover/wait", Healthy: nobody, Only: FiredTwice, WaitReplicas: true, Faults: Faults{Stall: 1, Redis: 1}},
	{Name: "failover/wait T1 crash", Ticks: 1, Healthy: nobody, Only: FiredTwice, WaitReplicas: true,
		Faults: Faults{Crash: 1, Restart: 1, Loss: 1, Stall: 1, Redis: 2}},
	{Name: "flush/amo", Healthy: nobody, Only: FiredTwice, RedisFault: Flush, Faults: Faults{Loss: 1, Redis: 1}},
	{small: true, Name: "early/flush/amo T1", Ticks: 1, Tolerance: true, Healthy: nobody, Only: FiredTwice,
		RedisFault: Flush, Faults: Faults{Loss: 1, Redis: 1}},
	{small: true, Name: "flush/amo T1", Ticks: 1, Healthy: nobody, Only: FiredTwice, RedisFault: Flush,
		Faults: Faults{Loss: 1, Redis: 1}},
	{small: true, Name: "clockjump/amo", Strict: true, RedisFault: ClockJump, Faults: Faults{Extension: 1, Redis: 1}},
	{small: true, Name: "clockjump/alo", AtLeastOnce: true, Strict: true, RedisFault: ClockJump,
		Faults: Faults{Extension: 1, Redis: 1}},
	{Name: "clockjump/alo T1", Ticks: 1, AtLeastOnce: true, Strict: true, RedisFault: ClockJump,
		Faults: Faults{Crash: 1, Loss: 1, Stall: 1, Extension: 1, Redis: 1}},
}

// learned are worlds with faults that reviews and simulations have shown: a dead run that overlapped, a Redis that runs
// after a pause what it got before, ticks that nobody asks for in time.
var learned = []Scenario{
	{small: true, Name: "reap/forbid crash+extend", Faults: Faults{Crash: 1, Extension: 1}},
	{small: true, Name: "reap/queue crash", Policy: Queue, Ticks: 3, Faults: Faults{Crash: 1}},
	{Name: "overtaken/queue", Policy: Queue, Ticks: 4, Strict: true},
	{Name: "overtaken/queue alo", Policy: Queue, Ticks: 4, AtLeastOnce: true, Faults: Faults{Refusal: 1}},
	{Name: "reap/queue crash+extend", Policy: Queue, Ticks: 3, Faults: Faults{Crash: 1, Extension: 1}},
	{small: true, Name: "freeze/forbid", Faults: Faults{Freeze: 1}},
	{Name: "freeze/forbid crash", Faults: Faults{Crash: 1, Freeze: 1}},
	{Name: "freeze/forbid stray", Faults: Faults{Stray: 1, Freeze: 1}},
	{Name: "freeze/all", Ticks: 3, MissedAll: true, Faults: Faults{Freeze: 1}},
	{Name: "freeze/queue", Policy: Queue, Ticks: 3, Faults: Faults{Freeze: 1}},
	{Name: "freeze/replace", Policy: Replace, Ticks: 3, Faults: Faults{Freeze: 1}},
	{Name: "fates/forbid loss", Ticks: 3, Healthy: nobody, Faults: Faults{Loss: 1}},
	{Name: "fates/forbid crash", Ticks: 3, Healthy: nobody, Faults: Faults{Crash: 1}},
	{Name: "fates/all crash", Ticks: 3, MissedAll: true, Healthy: nobody, Faults: Faults{Crash: 1}},
	{Name: "fates/queue loss", Ticks: 3, Policy: Queue, Healthy: nobody, Faults: Faults{Loss: 1}},
	{Name: "fates/replace loss", Ticks: 3, Policy: Replace, Healthy: nobody, Faults: Faults{Loss: 1}},
	{Name: "fates/allow loss", Ticks: 3, Policy: Allow, Healthy: nobody, Faults: Faults{Loss: 1}},
	{small: true, Name: "slot/forbid", Replicas: 1, Ticks: 3, OneSlot: true, Strict: true,
		Faults: Faults{Extension: 1}},
	{small: true, Name: "slot/queue", Replicas: 1, Ticks: 3, OneSlot: true, Policy: Queue, Strict: true,
		Faults: Faults{Extension: 1}},
	{small: true, Name: "slot/replace", Replicas: 1, Ticks: 3, OneSlot: true, Policy: Replace, Strict: true,
		Faults: Faults{Extension: 1}},
	{small: true, Name: "slot/forbid loss", OneSlot: true, Strict: true, Faults: Faults{Loss: 1}},
	{Name: "slot/replace crash+loss", OneSlot: true, Policy: Replace, Strict: true, Faults: Faults{Crash: 1, Loss: 1}},
	{Name: "slot/all crash", Ticks: 3, MissedAll: true, OneSlot: true, Faults: Faults{Crash: 1}},
	{small: true, Name: "drop/forbid crash+refusal", Drops: true, Faults: Faults{Crash: 1, Refusal: 1}},
	{Name: "drop/forbid T3 crash", Ticks: 3, Drops: true, Faults: Faults{Crash: 1}},
	{Name: "drop/replace T3 crash", Ticks: 3, Policy: Replace, Drops: true, Faults: Faults{Crash: 1}},
	{Name: "drop/forbid stray+refusal", Drops: true, Faults: Faults{Stray: 1, Refusal: 1}},
	{small: true, Name: "instance/forbid/alo/T1 crash+restart", Replicas: 3, Ticks: 1, AtLeastOnce: true,
		Healthy: nobody, Faults: Faults{Crash: 1, Restart: 1}},
	{small: true, Name: "instance/forbid/amo/T1 crash+restart+stray", Ticks: 1, Healthy: nobody,
		Faults: Faults{Crash: 1, Restart: 1, Stray: 1}},
	{Name: "instance/forbid/alo/T1 crash+restart+stray", Ticks: 1, AtLeastOnce: true, Healthy: nobody,
		Faults: Faults{Crash: 1, Restart: 1, Stray: 1}},
	{Name: "instance/forbid/alo crash+restart+latereap", AtLeastOnce: true, Strict: true,
		Faults: Faults{Crash: 1, Restart: 1, LateReap: 1}},
	{small: true, Name: "latereap/forbid/alo/T1 stall", Ticks: 1, AtLeastOnce: true, Strict: true,
		Faults: Faults{Stall: 1, LateReap: 1}},
	{small: true, Name: "latereap/forbid/alo/T1 stall+extend", Ticks: 1, AtLeastOnce: true, Strict: true,
		Faults: Faults{Stall: 1, Extension: 1, LateReap: 1}},
	{small: true, Name: "latereap/forbid/amo stall", Strict: true, Faults: Faults{Stall: 1, LateReap: 1}},
	{Name: "latereap/forbid/alo crash+stall", AtLeastOnce: true, Strict: true,
		Faults: Faults{Crash: 1, Stall: 1, LateReap: 1}},
	{Name: "latereap/forbid/amo stray+stall", Strict: true, Faults: Faults{Stray: 1, Stall: 1, LateReap: 1}},
	{Name: "latereap/queue/amo stall+extend", Policy: Queue, Strict: true,
		Faults: Faults{Stall: 1, Extension: 1, LateReap: 1}},
	{Name: "latereap/replace/amo stall+extend", Policy: Replace, Strict: true,
		Faults: Faults{Stall: 1, Extension: 1, LateReap: 1}},
	{Name: "latereap/allow/alo stall+extend", Policy: Allow, AtLeastOnce: true,
		Faults: Faults{Stall: 1, Extension: 1, LateReap: 1}},
	{Name: "memo/allow stall2", Policy: Allow, Strict: true, Faults: Faults{Stall: 2}},
}

// operated are worlds in which an operator cancels a run, or has a tick run again.
var operated = []Scenario{
	{small: true, Name: "cancel/forbid/amo crash", Strict: true, Faults: Faults{Crash: 1, CancelAsked: 1}},
	{small: true, Name: "cancel/forbid/amo extend", Strict: true, Faults: Faults{Extension: 1, CancelAsked: 1}},
	{small: true, Name: "cancel/forbid/amo/T1 stall+stray", Ticks: 1, Strict: true,
		Faults: Faults{Stall: 1, Stray: 1, CancelAsked: 1}},
	{small: true, Name: "cancel/forbid/amo/T1 refusal", Ticks: 1, Strict: true,
		Faults: Faults{Refusal: 1, CancelAsked: 1}},
	{small: true, Name: "cancel/forbid/alo/T1 crash+extend", Ticks: 1, AtLeastOnce: true, Strict: true,
		Faults: Faults{Crash: 1, Extension: 1, CancelAsked: 1}},
	{small: true, Name: "cancel/forbid/alo/T1 stall", Ticks: 1, AtLeastOnce: true, Strict: true,
		Faults: Faults{Stall: 1, CancelAsked: 1}},
	{small: true, Name: "cancel/replace/amo extend", Policy: Replace, Strict: true,
		Faults: Faults{Extension: 1, CancelAsked: 1}},
	{Name: "cancel/forbid/amo refusal", Strict: true, Faults: Faults{Refusal: 1, CancelAsked: 1}},
	{Name: "cancel/forbid/amo T3 crash", Ticks: 3, Strict: true, Faults: Faults{Crash: 1, CancelAsked: 1}},
	{Name: "cancel/forbid/alo crash+stall", AtLeastOnce: true, Strict: true,
		Faults: Faults{Crash: 1, Stall: 1, CancelAsked: 1}},
	{Name: "cancel/queue/amo crash+extend", Policy: Queue, Strict: true,
		Faults: Faults{Crash: 1, Extension: 1, CancelAsked: 1}},
	{Name: "cancel/replace/alo crash+extend", Policy: Replace, AtLeastOnce: true, Strict: true,
		Faults: Faults{Crash: 1, Extension: 1, CancelAsked: 1}},
	{Name: "cancel/allow/alo crash+extend", Policy: Allow, AtLeastOnce: true,
		Faults: Faults{Crash: 1, Extension: 1, CancelAsked: 1}},

	{small: true, Name: "rerun/forbid/amo", Strict: true, Faults: Faults{RerunAsked: 1}},
	{small: true, Name: "rerun/forbid/amo/T1 crash", Ticks: 1, Strict: true, Faults: Faults{Crash: 1, RerunAsked: 1}},
	{small: true, Name: "rerun/forbid/alo/T1 crash", Ticks: 1, AtLeastOnce: true, Strict: true,
		Faults: Faults{Crash: 1, RerunAsked: 1}},
	{small: true, Name: "rerun/queue/R1 T3", Replicas: 1, Ticks: 3, Policy: Queue, Strict: true,
		Faults: Faults{RerunAsked: 1}},
	{small: true, Name: "rerun/replace/R1 T3", Replicas: 1, Ticks: 3, Policy: Replace, Strict: true,
		Faults: Faults{RerunAsked: 1}},
	{small: true, Name: "rerun/allow/amo/T1 crash", Ticks: 1, Policy: Allow, Strict: true,
		Faults: Faults{Crash: 1, RerunAsked: 1}},
	{small: true, Name: "rerun/all/R1", Replicas: 1, Ticks: 3, Begin: 1, MissedAll: true,
		Faults: Faults{RerunAsked: 1}},
	{small: true, Name: "rerun/reload forbid+allow (limit)", After: Allow, Reload: 2, Only: TickBeside,
		Faults: Faults{RerunAsked: 1}, IsLimit: true},
	{small: true, Name: "rerun/cancel/alo/T1", Ticks: 1, AtLeastOnce: true, Strict: true,
		Faults: Faults{CancelAsked: 1, RerunAsked: 1}},
	{Name: "rerun/forbid/amo crash", Strict: true, Faults: Faults{Crash: 1, RerunAsked: 1}},
	{Name: "rerun/forbid/amo crash+stall", Strict: true, Faults: Faults{Crash: 1, Stall: 1, RerunAsked: 1}},
	{Name: "rerun/forbid/alo crash", AtLeastOnce: true, Strict: true, Faults: Faults{Crash: 1, RerunAsked: 1}},
	{Name: "rerun/forbid/alo/T1 stall", Ticks: 1, AtLeastOnce: true, Strict: true,
		Faults: Faults{Stall: 1, RerunAsked: 1}},
	{Name: "rerun/forbid/amo stray+refusal", Ticks: 1, Strict: true,
		Faults: Faults{Stray: 1, Refusal: 1, RerunAsked: 1}},
	{Name: "rerun/queue/amo crash", Policy: Queue, Strict: true, Faults: Faults{Crash: 1, RerunAsked: 1}},
	{Name: "rerun/replace/amo extend", Policy: Replace, Strict: true, Faults: Faults{Extension: 1, RerunAsked: 1}},
	{Name: "rerun/allow/amo crash", Policy: Allow, Strict: true, Faults: Faults{Crash: 1, RerunAsked: 1}},
}

// asked are worlds in which apps ask for their ticks. A lease is such a job: a tick of it comes whenever an app asks,
// and all that matters is who holds it.
var asked = []Scenario{
	{small: true, Name: "asked/forbid crash+restart", Asked: true, Faults: Faults{Crash: 1, Restart: 1}},
	{small: true, Name: "asked/forbid gone", Asked: true, Faults: Faults{AppGone: 1}},
	{small: true, Name: "asked/forbid gone+loss", Asked: true, Faults: Faults{AppGone: 1, Loss: 1}},
	{Name: "asked/forbid gone+crash", Asked: true, Faults: Faults{AppGone: 1, Crash: 1}},
	{Name: "asked/forbid gone+stall", Asked: true, Faults: Faults{AppGone: 1, Stall: 1}},
	{Name: "asked/forbid gone+stray", Asked: true, Faults: Faults{AppGone: 1, Stray: 1}},
	{Name: "asked/forbid gone+cancel", Asked: true, Faults: Faults{AppGone: 1, CancelAsked: 1}},
	{Name: "asked/forbid T3 gone", Ticks: 3, Asked: true, Faults: Faults{AppGone: 2}},
	{Name: "asked/forbid T3 crash+restart", Ticks: 3, Asked: true, Faults: Faults{Crash: 1, Restart: 1}},
	{Name: "asked/forbid crash+restart+stray", Asked: true, Faults: Faults{Crash: 1, Restart: 1, Stray: 1}},
	{Name: "asked/allow crash+restart", Policy: Allow, Asked: true, Faults: Faults{Crash: 1, Restart: 1}},

	{small: true, Name: "lease/crash+restart", Asked: true, Only: RunsOverlap, Faults: Faults{Crash: 1, Restart: 1}},
	{small: true, Name: "lease/stall+extend", Asked: true, Only: RunsOverlap, Faults: Faults{Stall: 1, Extension: 1}},
	{small: true, Name: "lease/T3 stray", Ticks: 3, Asked: true, Only: RunsOverlap, Faults: Faults{Stray: 1}},
	{Name: "lease/T3 stall+extend", Ticks: 3, Asked: true, Only: RunsOverlap, Faults: Faults{Stall: 1, Extension: 1}},
	{Name: "lease/R3 T3 crash+restart", Replicas: 3, Ticks: 3, Asked: true, Only: RunsOverlap,
		Faults: Faults{Crash: 1, Restart: 1}},
}

// mixedFaults strike while two policies are about.
var mixedFaults = []struct {
	name   string
	ticks  int
	faults Faults
	small  bool
}{
	{"crash", 2, Faults{Crash: 1}, true},
	{"stall", 2, Faults{Stall: 1}, true},
	{"loss", 2, Faults{Loss: 1}, true},
	{"crash+extend", 2, Faults{Crash: 1, Extension: 1}, false},
	{"refusal+extend", 2, Faults{Refusal: 1, Extension: 1}, false},
	{"T3 extend", 3, Faults{Extension: 1}, false},
	{"T3 crash", 3, Faults{Crash: 1}, false},
	{"T3 refusal", 3, Faults{Refusal: 1}, false},
}

// mixed are worlds in which ticks are asked with two policies: in a rollout by two replicas, or after a reload by all.
func mixed() []Scenario {
	var all []Scenario
	for p := range numberOfPolicies {
		for q := range numberOfPolicies {
			if p == q {
				continue
			}
			for _, f := range mixedFaults {
				for _, alo := range []bool{false, true} {
					c := Scenario{Ticks: f.ticks, AtLeastOnce: alo, Strict: true, Faults: f.faults,
						small: f.small && !alo}
					guarantee := "amo"
					if alo {
						guarantee = "alo"
					}
					reload := c
					c.Name = fmt.Sprintf("rollout/%s+%s/%s %s", p, q, guarantee, f.name)
					c.Rollout, c.By = true, [maxReplicas]Policy{p, q}
					reload.Name = fmt.Sprintf("reload/%s+%s/%s %s", p, q, guarantee, f.name)
					reload.Policy, reload.After, reload.Reload = p, q, uint8(f.ticks)
					all = append(all, c, reload)
				}
			}
		}
	}
	return all
}

// threeFaults combine three faults, or two with more replicas or ticks.
var threeFaults = []Scenario{
	{Name: "forbid/amo crash+restart+stall", Skew: true, Strict: true, Faults: Faults{Crash: 1, Restart: 1, Stall: 1}},
	{Name: "forbid/amo crash+stray+stall", Skew: true, Strict: true, Faults: Faults{Crash: 1, Stray: 1, Stall: 1}},
	{Name: "forbid/alo crash+stray+stall", AtLeastOnce: true, Strict: true,
		Faults: Faults{Crash: 1, Stray: 1, Stall: 1}},
	{Name: "forbid/amo R3 crash+stall", Replicas: 3, Skew: true, Strict: true, Faults: Faults{Crash: 1, Stall: 1}},
	{Name: "forbid/amo R3 crash2", Replicas: 3, Skew: true, Strict: true, Faults: Faults{Crash: 2}},
	{Name: "forbid/amo T3 crash+stall", Ticks: 3, Skew: true, Strict: true, Faults: Faults{Crash: 1, Stall: 1}},
	{Name: "forbid/amo T3 crash+loss", Ticks: 3, Strict: true, Faults: Faults{Crash: 1, Loss: 1}},
	{Name: "forbid/amo T4 crash", Ticks: 4, Strict: true, Faults: Faults{Crash: 1}},
	{Name: "forbid/amo unhealthy crash+stray+stall", Healthy: nobody, Faults: Faults{Crash: 1, Stray: 1, Stall: 1}},
	{Name: "forbid/alo R3 crash2+stray+stall+extend", Replicas: 3, Ticks: 1, AtLeastOnce: true, Strict: true,
		Faults: Faults{Crash: 2, Stray: 1, Stall: 1, Extension: 1}},
	{Name: "queue/amo T3 crash+stall", Ticks: 3, Policy: Queue, Strict: true, Faults: Faults{Crash: 1, Stall: 1}},
	{Name: "queue/amo R3 crash", Replicas: 3, Policy: Queue, Strict: true, Faults: Faults{Crash: 1}},
	{Name: "queue/alo T3 crash", Ticks: 3, Policy: Queue, AtLeastOnce: true, Strict: true, Faults: Faults{Crash: 1}},
	{Name: "replace/amo R3 crash+extend", Replicas: 3, Policy: Replace, Strict: true,
		Faults: Faults{Crash: 1, Extension: 1}},
	{Name: "replace/amo T3 stall+extend2", Ticks: 3, Policy: Replace, Strict: true,
		Faults: Faults{Stall: 1, Extension: 2}},
	{Name: "allow/amo T3 crash+stall", Ticks: 3, Policy: Allow, Skew: true, Strict: true,
		Faults: Faults{Crash: 1, Stall: 1}},
	{Name: "handover R3 crash+refusal2", Replicas: 3, Strict: true, Faults: Faults{Crash: 1, Refusal: 2}},
	{Name: "handover stray+stall+refusal", Strict: true, Faults: Faults{Stray: 1, Stall: 1, Refusal: 1}},
}

// Pairs are the worlds in which two faults meet, each policy with each pair among them.
func Pairs() []Scenario {
	var all []Scenario
	for _, c := range policies {
		for _, p := range pairs {
			c := c
			c.Name, c.Faults, c.small = c.Name+" "+p.name, p.faults, p.small || p.smallOnce && !c.AtLeastOnce
			all = append(all, c)
		}
	}
	all = append(all, special...)
	all = append(all, learned...)
	all = append(all, operated...)
	all = append(all, asked...)
	return append(all, mixed()...)
}

// Large are the worlds in which three faults meet, or two with more replicas or ticks.
func Large() []Scenario { return append([]Scenario(nil), threeFaults...) }

// Small are those of Pairs that are searched in full within a second.
func Small() []Scenario {
	return slices.DeleteFunc(Pairs(), func(c Scenario) bool { return !c.small })
}
