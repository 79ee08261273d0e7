package model

import "slices"

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
	{small: true, Name: "forbid/alo/T1 crash+stall", Ticks: 1, AtLeastOnce: true, Strict: true, Faults: Faults{Crash: 1, Stall: 1}},
	{Name: "forbid/alo/R3 stall", Replicas: 3, AtLeastOnce: true, Strict: true, Faults: Faults{Stall: 1}},
	{Name: "queue/amo/T3 crash", Ticks: 3, Policy: Queue, Strict: true, Faults: Faults{Crash: 1}},
	{Name: "queue/alo/T3 stall", Ticks: 3, Policy: Queue, AtLeastOnce: true, Strict: true, Faults: Faults{Stall: 1}},
	{Name: "replace/amo/T3 crash+extend", Ticks: 3, Policy: Replace, Strict: true, Faults: Faults{Crash: 1, Extension: 1}},

	{small: true, Name: "handover/alone", Replicas: 1, Strict: true, Faults: Faults{Loss: 1, Stray: 1, Refusal: 2}},
	{small: true, Name: "handover/alone stray2", Replicas: 1, Strict: true, Faults: Faults{Stray: 2, Refusal: 2}},
	{Name: "handover/1other", Strict: true, Faults: Faults{Stray: 1, Refusal: 2}},
	{Name: "handover/1other crash", Strict: true, Faults: Faults{Crash: 1, Refusal: 2}},
	{Name: "handover/2others", Replicas: 3, Ticks: 1, Strict: true, Faults: Faults{Crash: 1, Stray: 1, Refusal: 2}},
	{Name: "handover/2others T2", Replicas: 3, Strict: true, Faults: Faults{Refusal: 2}},
	{Name: "handover/2 cannot", Replicas: 3, Ticks: 1, Strict: true, CannotStart: [maxReplicas]bool{1: true, 2: true}, Faults: Faults{Stray: 1}},

	{Name: "all/amo crash", Ticks: 3, Begin: 2, MissedAll: true, Faults: Faults{Crash: 1}},
	{Name: "all/amo late crash+loss", Begin: 2, MissedAll: true, Faults: Faults{Crash: 1, Loss: 1}},
	{small: true, Name: "all/amo/R1 T3 refusal", Replicas: 1, Ticks: 3, Begin: 1, MissedAll: true, Faults: Faults{Refusal: 1}},
	{Name: "all/alo crash+stall", Begin: 2, MissedAll: true, AtLeastOnce: true, Faults: Faults{Crash: 1, Stall: 1}},

	{small: true, Name: "early/forbid/amo crash+stray", Tolerance: true, Strict: true, Faults: Faults{Crash: 1, Stray: 1}},
	{Name: "early/forbid/alo crash+stall", Tolerance: true, AtLeastOnce: true, Strict: true, Faults: Faults{Crash: 1, Stall: 1}},
	{small: true, Name: "early/queue/amo crash+loss", Tolerance: true, Policy: Queue, Strict: true, Faults: Faults{Crash: 1, Loss: 1}},
	{small: true, Name: "early/replace/amo crash+extend", Tolerance: true, Policy: Replace, Strict: true, Faults: Faults{Crash: 1, Extension: 1}},
	{small: true, Name: "early/flush/amo", Tolerance: true, Healthy: nobody, Only: FiredTwice, RedisFault: Flush, Faults: Faults{Loss: 1, Redis: 1}},

	{small: true, Name: "theft/forbid/amo crash", Strict: true, Faults: Faults{Crash: 1, Theft: 1}},
	{small: true, Name: "theft/forbid/amo stray", Strict: true, Faults: Faults{Stray: 1, Theft: 1}},
	{small: true, Name: "theft/forbid/alo extend2", AtLeastOnce: true, Strict: true, Faults: Faults{Extension: 2, Theft: 1}},
	{small: true, Name: "theft/allow/amo crash", Policy: Allow, Strict: true, Faults: Faults{Crash: 1, Theft: 1}},
	{small: true, Name: "theft/queue/amo crash+extend", Policy: Queue, Strict: true, Faults: Faults{Crash: 1, Extension: 1, Theft: 1}},
	{small: true, Name: "theft/replace/amo extend", Policy: Replace, Strict: true, Faults: Faults{Extension: 1, Theft: 1}},

	{small: true, Name: "failover/nowait (known limit)", Ticks: 1, Healthy: nobody, Only: FiredTwice, Faults: Faults{Loss: 1, Redis: 1}, IsLimit: true},
	{Name: "failover/wait", Healthy: nobody, Only: FiredTwice, WaitReplicas: true, Faults: Faults{Stall: 1, Redis: 1}},
	{Name: "failover/wait T1 crash", Ticks: 1, Healthy: nobody, Only: FiredTwice, WaitReplicas: true,
		Faults: Faults{Crash: 1, Restart: 1, Loss: 1, Stall: 1, Redis: 2}},
	{small: true, Name: "flush/amo", Healthy: nobody, Only: FiredTwice, RedisFault: Flush, Faults: Faults{Loss: 1, Redis: 1}},
	{small: true, Name: "clockjump/amo", Strict: true, RedisFault: ClockJump, Faults: Faults{Extension: 1, Redis: 1}},
	{small: true, Name: "clockjump/alo", AtLeastOnce: true, Strict: true, RedisFault: ClockJump, Faults: Faults{Extension: 1, Redis: 1}},
	{Name: "clockjump/alo T1", Ticks: 1, AtLeastOnce: true, Strict: true, RedisFault: ClockJump,
		Faults: Faults{Crash: 1, Loss: 1, Stall: 1, Extension: 1, Redis: 1}},
}

// threeFaults combine three faults, or two with more replicas or ticks.
var threeFaults = []Scenario{
	{Name: "forbid/amo crash+restart+stall", Skew: true, Strict: true, Faults: Faults{Crash: 1, Restart: 1, Stall: 1}},
	{Name: "forbid/amo crash+stray+stall", Skew: true, Strict: true, Faults: Faults{Crash: 1, Stray: 1, Stall: 1}},
	{Name: "forbid/alo crash+stray+stall", AtLeastOnce: true, Strict: true, Faults: Faults{Crash: 1, Stray: 1, Stall: 1}},
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
	{Name: "replace/amo R3 crash+extend", Replicas: 3, Policy: Replace, Strict: true, Faults: Faults{Crash: 1, Extension: 1}},
	{Name: "replace/amo T3 stall+extend2", Ticks: 3, Policy: Replace, Strict: true, Faults: Faults{Stall: 1, Extension: 2}},
	{Name: "allow/amo T3 crash+stall", Ticks: 3, Policy: Allow, Skew: true, Strict: true, Faults: Faults{Crash: 1, Stall: 1}},
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
	return append(all, special...)
}

// Large are the worlds in which three faults meet, or two with more replicas or ticks.
func Large() []Scenario { return append([]Scenario(nil), threeFaults...) }

// Small are those of Pairs that are searched in full within a second.
func Small() []Scenario {
	return slices.DeleteFunc(Pairs(), func(c Scenario) bool { return !c.small })
}
