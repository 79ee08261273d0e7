// Package series is an explicit-state model of timers with a schedule: a small world in which everything that can happen
// next is tried, in every order, and every state that comes of it is checked. Package model does the same for a run.
//
// # What is modelled
//
// One timer, up to four times of its schedule, two replicas, two callers of the API, and Redis. The scripts are timer
// and spring as in package service, each in one step, and what claims and ends of runs do to a time of the schedule.
// Callers set the timer with a schedule, with another one, with the same one, or without one, and delete it. A caller
// asks again when a reply is lost, gives up, and may have sent a copy that arrives when its window is closed. DELETE asks
// twice: for the timer, and for the newest of its times. A replica sees the due member, later reads the entry, and later
// asks for the next time by what it has read. Such a request has no window: it may arrive at any later time, also from a
// replica that is dead. A replica claims a time, cannot start it and hands it on, or dies before the start or after it;
// then the run is taken over. Redis loses all its data.
//
// Time is no number, as in package model: the clock counts the times that have come, and windows and leases close at any
// moment.
//
// Checked in every state:
//
//   - No time is started twice; under at-least-once, no attempt of it.
//   - Once a newer request is answered, no older one's definition is in force. A deleted timer does not come back.
//   - A timer with a schedule has one due member, and it is the entry's. So a replica will move it on.
//   - The timer does not wait for a time behind the next one of its schedule, and does not end before its schedule.
//   - A time has one fate: it is started, missed or overlapped, once. A time up to the newest that was moved on has a
//     fate, or is due, claimed or handed on, unless a request took it back, or it was lost with its data, or its claimant
//     died before the start.
//   - Once a DELETE is answered, no time is due that was made due before, unless it was claimed.
//   - Two times are not dealt with at once, and a run has the request with which its time was made due.
//   - The sum of bytes is that of the entries.
//
// Where nothing more happens unless something fails, each time that came while the timer was there has its fate.
//
// # What is not modelled
//
//   - Timers without a schedule come due behind the last time: what becomes of them then is in package model.
//   - Requests of a run: package model shows that a claim, a handover and an end have their effect once.
//   - Limits of timers, wrong clocks, failovers to older data, a member that is lost although its entry is not, and marks
//     that end: of DELETE, and of the end of a schedule, after a day.
//   - The history itself, which Redis refuses when its memory is full. A time that was passed over may have another fate
//     when a request sets the timer for it anew that was sent before it came.
//
// # Known limits
//
// A timer without a schedule does not know what the schedule before it has made due. If a timer with a schedule is set
// without one, its time that is due is not taken back by DELETE. If it is then set with a schedule again, a time may run
// beside one of the first schedule, and a request that was under way all the while may start a time again. Worlds show
// each. So does one in which all data is lost while a request is under way: it may set a time that was started.
//
// # Rules
//
// A [Rule] is one thought of the scripts and of their callers that can be left out. The search then finds a
// counterexample, a shortest one: package model says how to read it. X and Y are callers, A and B replicas.
//
//	go test ./internal/model/series -v -run TestEachRuleOfTimersLeftOutIsFound
package series
