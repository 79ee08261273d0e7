// Package nemesis attacks real replicas on real Redis servers, and judges from the outside whether the promises held.
//
// The test holds the app that the jobs call and writes down every call. The ticks that should have been are computed
// here, by arithmetic that shares nothing with the product. Three replicas are killed (and restarted in their places,
// in new ones, or in copies), stopped, cut off from Redis by a proxy and by the link of a network namespace (where one
// may be made), are told to end, and lose their app, all but one of them too; Redis is killed and comes back with what
// it wrote down, is stopped and goes on with what it was asked meanwhile, and Sentinel puts another server into its
// place.
//
// The judge asks this of a tick: that it was fired, and not twice; that a run which was cut short was run again under
// at-least-once, and was recorded as interrupted, once, under at-most-once. A tick that was not fired is excused only
// by a run of its job that was under way (from its claim until Redis heard of its end, which may be no later than two
// seconds after it unless something was struck), by an outage (the nemesis' own record says that there was no Redis, or
// no replica that was whole), or by a claimant that was struck before it could start it: under at-most-once there is
// the one interrupted entry then, or it gave the tick back when the next one was due. One that was cut off at that
// moment may leave no entry; what it may have claimed excuses ticks for a lease. Of runs: that none lies beside another
// one of its job unless its replica was stopped for longer than its lease, that tokens grow, that each is settled once,
// that nobody healthy is taken for dead, and that the dead are noticed in time. The allowances are the constants of
// judge.go.
//
// Some jobs have http.async. Their app accepts a run by 202, works only while it may, and ends the run by a report. It
// works from its first heartbeat that is answered with leave until it is done, is told to end, or its time is over, and
// writes that down. Of these jobs the judge asks more:
//
//   - No two apps work at the same time, and none is called while another one could work. Nothing that was struck is an
//     excuse.
//   - No run is over while its app could work.
//   - A heartbeat is answered by the process that called the app, and by no other one.
//   - A report of success that was answered is the tick's fate, if the replica and Redis were whole from then on.
//   - An app has to stop early only if its replica or Redis was struck, or if it stood still itself on a busy machine.
//     It writes down by how much it was woken up late, and such works are counted.
//
// The app may work on without its replica. So a restart in place takes over such a run when its lease is over, and not
// at once. For these jobs a replica is also cut off, and killed before it would tell its app to stop.
//
// Some jobs have claim. The app beside each replica asks for each tick, every second time by a clock that is wrong by
// up to 2.5 s. For one tick of six no app asks. Of the apps that get a tick, some fail, some die at work, and some
// before their first heartbeat. Most ask again when the replica cannot tell. One such job is a lease, for which all apps ask
// all the time. All that is said of http.async holds for these runs, and more:
//
//   - A tick is given to one app at most, and no replica claims one for which its app had not asked.
//   - A tick for which an app asked in time is fired, unless another cause above explains that it was not, or each
//     replica that was asked was struck until there was no time left. One for which no app asked in time is missed.
//   - A question gets a clear answer, and an app that got a tick may begin, unless its replica or Redis was struck.
//   - The run of an app that died is given up when its last heartbeat is over, and within two seconds.
//   - A failure that an app reported is the tick's fate.
//   - An app that died may work on until its last heartbeat is over, by its own clock. Until then nobody else may work.
//   - A lease for which an app asks at a replica that is whole has a holder, within three seconds.
//
// A Redis that was stopped is less of an excuse than one that was killed. A run must not begin for a tick when a newer
// one is due. A tick under missed: all must be fired, however late, unless a run was under way when it came due. A tick
// that one healthy replica could start must start within two seconds. A run that ends while Redis stands still, on a
// replica that drains, must be recorded if its lease outlives that, and the attempts that are left must be made. Each
// cause may excuse a share of a class' ticks, of one to four of a hundred, and an outage two of three of the ticks that
// came in it. The test reports the shares, and fails above that.
//
// Replicas that get no time on a busy machine are late, and so is all that the judge measures. A pulse in each world
// measures how late a process is woken up and answered (pulse.go). If it was late near a tick, the test reports a late
// start or takeover there and does not fail, for one of a hundred ticks at most. If the machine stood still for more
// than a hundredth of the time, a world with any other finding counts as not run, which fails the test only in CI. The
// test always fails for two runs of a tick, tokens that do not grow, and two apps at work.
//
// At the end it is asked of each tick that Redis knew the job for whether Redis keeps one fate of it (fates.go): that
// of its last run, as the app, the history and the strikes tell it, or that of a row of ticks without a run, which were
// missed, or overlapped with a run that was in the way. A row counts its ticks, and the counters are the sums of the
// entries. A tick may lack its fate if it was missed and no newer one came due, and on a Redis that forgets; it may
// have two if its first run had never begun.
//
// A service of its own has timers with schedules. While it is attacked, an operator sets each anew every few seconds,
// with the same definition or another one, or deletes it for a while, by the API of any replica. Of these timers the
// judge asks (series.go):
//
//   - A time is started once; under at-least-once each attempt.
//   - A time that comes after a request was answered is started as that request says, or a newer one.
//   - A time that came before a DELETE is not claimed after its answer, unless something was struck.
//   - A time between two requests is started, or the history has it as missed, overlapped, or the end of its run. Of
//     those that no replica had seen yet when the next request came, nobody tells.
//   - No time has two of these fates, unless it came while a request was under way.
//
// Five services are attacked at the same time: on a Redis that writes each command down before it answers, where all of
// this must hold; on one that does so each second, where a crash may forget a claim, so that what follows from that is
// counted as the limit it is; and on a master with replicas that Sentinels watch, with waitReplicas: 1, where the end
// of a run may be forgotten, and a claim may not. The fourth has replicas with one slot each and more work than that at
// times. There a tick may also be missed because no whole replica had a free slot for two seconds of its time, and no
// replica may have more runs than slots. The fifth has the timers.
//
// It cannot show crashes of a whole machine (a killed Redis has handed its writes to the kernel), clocks that are wrong
// while something is struck, most pairs of faults at the same time, apps that stand still and then work on, anything
// rarer than some minutes' strikes. The seed gives the order of the faults, their victims and lengths; which replica
// wins which tick is up to the machine, so no seed repeats a run exactly.
//
//	go -C proof test ./nemesis -v -run TestNemesis -for 30m -timeout 60m
//	go -C proof test ./nemesis -v -for 10m -timeout 60m -seed 4711 -run 'TestNemesis/worlds/sentinel'
//	go -C proof test ./nemesis -v -for 2m -run 'TestNemesis/worlds/always' -faults 'Redis stopped'
//
// With -calm nothing is struck. One service, on a Redis that forgets nothing, runs more jobs, by every kind of schedule
// that has a tick within minutes. The judge is the same, and may excuse no tick. Each replica must count as many fires
// of a job as the app got from it. The replicas' clocks may be wrong: those that follow their own may begin a run
// before its tick, by half the job's period, and by a second at most.
//
//	go -C proof test ./nemesis -v -run TestNemesis -for 10m -timeout 60m -calm
//	go -C proof test ./nemesis -v -run TestNemesis -for 10m -timeout 60m -calm -skew 0,2.5s,-2.5s -clock local
//
// TestScriptedHour is another proof: of the fates of ticks. Nothing is left to a seed. On one Redis that forgets
// nothing, three replicas go through a script, in this order: a kill, a stall that is longer than a lease, a pause, the
// window of a schedule, full slots, a Redis that stands still, one that is emptied, and a reload by which a job is
// suspended, one gets another schedule, one leaves and one comes. Afterwards each tick that `solotick next` names must
// have one fate in Redis. The script says which, and the app's receipts and the history must agree. The sums of the
// counters are those of the fates. In each chapter `solotick why` must name the cause. Counted apart are ticks that
// were in flight when Redis was emptied, and those beside a change of their schedule. The script has sixty units; by
// default the hour takes a minute.
//
//	go -C proof test ./nemesis -v -run TestScriptedHour -for 60m -timeout 90m
//
// With -artifacts the tables and logs of all replicas are kept.
package nemesis
