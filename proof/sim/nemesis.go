package sim

import (
	"cmp"
	"slices"
	"time"
)

// event is one step of the world's script.
type event struct {
	at time.Duration
	do func()
}

// script is the plan as steps in the order of their time.
func (w *world) script() []event {
	var es []event
	for i, r := range w.plan.Replicas {
		es = append(es, event{r.Begins, func() { w.begin(i) }})
	}
	for _, f := range w.plan.Faults {
		if f.After == manyTimers {
			continue
		}
		if f.After == wins {
			es = append(es, event{f.At, func() { w.redis.claims.lieInWait(&f) }})
			continue
		}
		es = append(es, event{f.At, func() { w.strike(f) }})
	}
	for _, o := range w.plan.Orders {
		es = append(es, event{o.At, func() { w.order(o) }})
	}
	for i, x := range w.plan.Reloads {
		es = append(es, event{x.At, func() { w.reload(i + 1) }})
	}
	for _, t := range w.plan.Timers {
		es = append(es, event{t.Set, func() { w.operator.setTimer(t) }})
	}
	es = append(es, event{w.plan.Lasts, func() {}})
	slices.SortStableFunc(es, func(a, b event) int { return cmp.Compare(a.at, b.at) })
	return es
}

func (w *world) begin(place int) {
	if err := w.start(place); err != nil {
		w.violated("start", "", "%v", err)
	}
}

// later does something when a fault is over.
func (w *world) later(d time.Duration, f func()) { time.AfterFunc(d, f) }

// strike lets a fault happen.
func (w *world) strike(f Fault) {
	now := w.now()
	if len(f.Kind) > 5 && f.Kind[:5] == "redis" {
		w.note(nil, "FAULT "+f.Kind, "", "", "", " for "+f.For.String()+" by "+f.By.String())
		w.strikeRedis(f, now)
		return
	}
	r := w.victim(f)
	if r == nil {
		return
	}
	w.note(r, "FAULT "+f.Kind, "", "", "", " for "+f.For.String()+" by "+f.By.String())
	over := func(heal func()) {
		w.span(r.place, now, now+f.For+recovery, f.Kind)
		w.later(f.For, func() {
			w.note(r, "is over: "+f.Kind, "", "", "", "")
			heal()
		})
	}
	calm := func(x *weather) { *x = weather{} }
	switch f.Kind {
	case "crash", crashInPlace:
		r.crash()
		w.end(r)
		over(func() { w.begin(r.place) })
	case "stop":
		w.end(r)
		over(func() {
			<-r.done
			w.span(r.place, now, w.now()+recovery, f.Kind)
			if w.now() < w.plan.Lasts { // a run that ignores its end may have held it up until all is over
				w.begin(r.place)
			}
		})
	case "drain":
		r.drain()
		over(func() {
			w.end(r)
			<-r.done
			w.span(r.place, now, w.now()+recovery, f.Kind)
			if w.now() < w.plan.Lasts {
				w.begin(r.place)
			}
		})
	case impostor, impostorStalled, impostorCut:
		w.impose(r, f, now)
	case "stall":
		r.stall.begin(now)
		over(r.stall.end)
	case "cut":
		r.change(func(x *weather) { x.refuse = true })
		w.network.cut(r)
		over(func() { r.change(calm) })
	case "void":
		r.change(func(x *weather) { x.blackhole, x.until = true, now+f.For })
		over(func() { r.change(calm) })
	case "lossy":
		r.change(func(x *weather) { x.loss = 0.2 })
		over(func() { r.change(calm) })
	case "late":
		r.change(func(x *weather) { x.late, x.slow = 0.3, w.slow() })
		over(func() { r.change(calm) })
	case "jump":
		r.mu.Lock()
		r.skew += f.By
		r.mu.Unlock()
		over(func() {})
	}
}

// order lets the operator do something.
func (w *world) order(o Order) {
	w.note(nil, "ORDER "+o.Kind, o.Job, "", "", "for "+o.For.String())
	all := o.At.Milliseconds()%2 == 1 // by the pause of all jobs, in every other order
	switch o.Kind {
	case "trigger":
		w.operator.trigger(o.Job, o.ID)
	case "backfill":
		w.operator.backfill(o.Job, o.ID, w.now(), cmp.Or(o.N, 2))
	case "rerun":
		w.operator.rerun(o.Job, o.ID, w.now())
	case "rerun trigger":
		w.operator.rerunTrigger(o.Job, w.now())
	case "cancel":
		w.operator.cancel(o.Job)
	case "cancel waiting":
		w.operator.cancelWaiting(o.Job)
	case "resume":
		w.operator.resume(o.Job, all)
	case "pause":
		w.operator.pause(o.Job, all, time.Time{})
		w.later(o.For, func() { w.operator.resume(o.Job, all) })
	case "pause until":
		w.operator.pause(o.Job, all, time.Now().Add(w.offsetAt(w.now())+o.For).Truncate(time.Millisecond))
	}
}

// The faults in which Redis loses all data, and in which its clock is set.
const (
	forgets    = "redis forgets"
	flushed    = "redis is flushed" // and no connection ends
	redisSteps = "redis steps"
)

// slow is how long a late message takes at most: longer than a lease.
func (w *world) slow() time.Duration { return 7 * time.Second }

func (w *world) strikeRedis(f Fault, now time.Duration) {
	s := w.redis
	sky := func(x weather) {
		s.mu.Lock()
		s.sky = x
		s.mu.Unlock()
	}
	if f.Kind != failsOver && f.Kind != redisSteps && f.Kind != comesBackOlder {
		w.span(-1, now-time.Second, now+f.For+recovery, f.Kind)
	}
	clear := func() {
		w.note(nil, "is over: "+f.Kind, "", "", "", "")
		sky(weather{})
	}
	back := func() {
		w.note(nil, "GOES BACK", "", "", "", "")
		s.failover()
		sky(weather{refuse: true})
		w.span(-1, w.now()-time.Second, w.now()+f.For+recovery, f.Kind)
		w.later(f.For, clear)
	}
	switch f.Kind {
	case "redis refuses":
		sky(weather{refuse: true})
		w.network.cut(nil)
		w.later(f.For, clear)
	case "redis void":
		sky(weather{blackhole: true, until: now + f.For})
		w.later(f.For, clear)
	case "redis lossy":
		sky(weather{loss: 0.1, late: 0.1, slow: w.slow()})
		w.later(f.For, clear)
	case "redis restarts":
		w.network.cut(nil)
		s.unload()
	case forgets:
		w.network.cut(nil)
		s.unload()
		s.forget()
	case flushed:
		s.forget()
	case redisSteps:
		s.step(f.By)
		w.steps(f, now)
	case redisStalls:
		s.standstill.begin()
		w.later(f.For, func() {
			w.note(nil, "is over: "+f.Kind, "", "", "", "")
			s.standstill.end(w.network)
		})
	case redisFull, redisReadsOnly:
		s.is(f.Kind)
		w.later(f.For, func() {
			w.note(nil, "is over: "+f.Kind, "", "", "", "")
			s.is("")
		})
	case failsOver:
		s.mu.Lock()
		if s.lag == nil { // else another one is still to come
			s.lag = &lag{after: f.After, armed: now, by: f.By, then: back}
		}
		s.mu.Unlock()
	case comesBackOlder:
		s.snapshot(f, back)
	}
}

// is puts Redis in a state in which it denies commands; "" ends it.
func (s *store) is(state string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.state = state
}

// victim is the replica that a fault strikes; nil when there is none that lives.
func (w *world) victim(f Fault) *replica {
	w.mu.Lock()
	defer w.mu.Unlock()
	var r *replica
	if f.Replica < 0 {
		for _, x := range w.runs { // the newest run that is not over
			if x.over == 0 && w.present[x.replica.place] == x.replica {
				r = x.replica
			}
		}
	}
	if r == nil {
		r = w.present[max(f.Replica, 0)]
	}
	if r == nil {
		return nil
	}
	if at, dead := r.stopped(); dead || at != 0 {
		return nil
	}
	return r
}

// untilHealed is how long a message must wait that was sent into a blackhole.
func (w *world) untilHealed(r *replica) time.Duration {
	until := max(r.weather().until, w.redis.weather().until)
	return max(until-w.now(), 0)
}
