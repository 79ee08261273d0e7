package sim

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/redis/go-redis/v9"

	"github.com/solotick/solotick/config"
	"github.com/solotick/solotick/internal/instance"
	"github.com/solotick/solotick/lock"
	"github.com/solotick/solotick/sidecar"
	"github.com/solotick/solotick/sidecar/callback"
	"github.com/solotick/solotick/sidecar/execute"
	"github.com/solotick/solotick/sidecar/service"
)

// replica is one process: the real sidecar, with a network and clocks of its own. One that is started again is another
// process, and may have the same name.
type replica struct {
	world    *world
	place    int    // which of the plan's replicas
	process  string // "r1.2": the second process at the first place
	name     string
	key      uint64 // of dice
	dice     dice
	registry *prometheus.Registry
	client   redis.UniversalClient
	stall    stall
	connects atomic.Uint64
	messages messages
	began    time.Duration
	cancel   context.CancelFunc
	done     chan struct{}
	ended    chan struct{} // closed when it is dead: its runs vanish with it

	uuid     string             // of the process; "" = it holds no instance
	before   []string           // nodes of processes that it knows to be dead
	instance *instance.Instance // nil = it does not hold it

	callbacks *callback.Runs // on which apps report

	sidecar *sidecar.Sidecar
	version int             // of the table that it began with
	left    map[string]bool // jobs that its table lacked at some time

	mu       sync.Mutex
	skew     time.Duration
	sky      weather
	dead     bool
	died     time.Duration
	stopping time.Duration // when it was told to end; 0 = it was not
	draining time.Duration // when it was told to drain; 0 = it was not
	busy     int           // runs that the app is at
}

// start begins one more process at a place.
func (w *world) start(place int) error { return w.startAt(place, "") }

// startAt begins it where an impostor is, which has the place's name and not its directory; "" = in the place.
func (w *world) startAt(place int, where string) error {
	w.mu.Lock()
	w.processes[place]++
	n, v := w.processes[place], w.files[place]
	w.mu.Unlock()
	p := w.plan.Replicas[place]
	r := &replica{world: w, place: place, process: fmt.Sprintf("r%d.%d", place+1, n), name: fmt.Sprintf("r%d", place+1),
		registry: prometheus.NewRegistry(), skew: p.Skew, began: w.now(), done: make(chan struct{}),
		ended: make(chan struct{}), dice: w.dice, left: map[string]bool{}}
	for _, t := range w.tables {
		for _, j := range t.Jobs {
			if row(w.tables[v], j.Name) == nil {
				r.left[j.Name] = true
			}
		}
	}
	r.key, r.version, r.callbacks = text(r.process), v, callback.New(r.name+":9748")
	r.client = lock.NewClient(redis.UniversalOptions{Addrs: []string{"redis:6379"}, Dialer: w.network.dialer(r)}, 0)
	store, err := service.New(r.client, serviceName, lock.Options{History: keepAll, WaitReplicas: w.plan.Confirms,
		Boottime: func() time.Duration { return r.stall.now(w.now()) }})
	if err != nil {
		return err
	}
	if err := r.hold(where); err != nil {
		return err
	}
	s, err := sidecar.New(sidecar.Options{
		Table: w.tables[v], Store: store, Replica: r.name, Version: "sim", Process: r.uuid, Died: r.before,
		Registerer: r.registry,
		Log:        slog.New(&journal{replica: r}),
		Executor:   func(j config.Job) execute.Executor { return &executor{replica: r, job: w.plan.job(j.Name)} },
		Prober:     func(config.Ready) sidecar.Prober { return prober{r} },
		Notify:     crier{r},
		Wall:       r.wall,
		Nap: func(d time.Duration) {
			time.Sleep(d)
			r.stall.wait()
		},
	})
	if err != nil {
		return err
	}
	r.sidecar = s
	ctx, cancel := context.WithCancel(context.Background())
	r.cancel = cancel
	w.mu.Lock()
	w.replicas = append(w.replicas, r)
	w.present[place] = r
	w.mu.Unlock()
	w.note(r, "starts", "", "", "", "")
	go func() {
		defer close(r.done)
		defer r.leave((*instance.Instance).Leave)
		if err := s.Run(ctx); err != nil {
			w.violated("run", "", "%s: %v", r.process, err)
		}
	}()
	return nil
}

func (r *replica) wall() time.Time {
	r.mu.Lock()
	skew := r.skew
	r.mu.Unlock()
	return r.world.began.Add(r.stall.now(r.world.now()) + skew)
}

func (r *replica) weather() weather {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.sky
}

// change lets the network around the replica change.
func (r *replica) change(f func(*weather)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	f(&r.sky)
}

func (r *replica) isDead() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.dead
}

// crash ends the process without a goodbye: no byte of it reaches Redis any more but those on their way, and its runs
// are gone. Its goroutines that are left in the bubble reach no one.
func (r *replica) crash() {
	r.mu.Lock()
	r.dead, r.died = true, r.world.now()
	r.mu.Unlock()
	close(r.ended)
	r.leave((*instance.Instance).Close)
	r.stall.free()
	r.world.network.cut(r)
}

// stop asks the process to end, as SIGTERM does; what is left of a dead one ends then too.
func (r *replica) stop() {
	r.mu.Lock()
	if r.stopping == 0 && !r.dead {
		r.stopping = r.world.now()
	}
	r.mu.Unlock()
	r.cancel()
}

func (r *replica) diedAt() time.Duration {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.died
}

func (r *replica) stopped() (at time.Duration, dead bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.stopping, r.dead
}

// drain asks the replica to take nothing new, as an operator does; the process goes on.
func (r *replica) drain() {
	r.mu.Lock()
	r.draining = r.world.now()
	r.mu.Unlock()
	go func() { _ = r.sidecar.Drain(context.Background()) }()
}

// drains reports whether the replica was told to drain, or to end.
func (r *replica) drains() bool { return r.endsAt() != 0 }

// endsAt is from when on the replica takes nothing new; 0: always.
func (r *replica) endsAt() time.Duration {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.draining != 0 && (r.stopping == 0 || r.draining < r.stopping) {
		return r.draining
	}
	return r.stopping
}
