package main

import (
	"fmt"
	"os"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/solotick/solotick/internal/testing/rig"
)

const manyJobs = 10_000

// size measures the released binary, what a sidecar with a hundred jobs at rest holds of memory and takes of a core,
// what a table of ten thousand jobs takes to start, and what one nightly job costs while it does not run.
func (b *bench) size() (part, error) {
	file, err := os.Stat(b.ours)
	if err != nil {
		return part{}, err
	}
	nightly, err := b.nightly() // alone on the machine
	if err != nil {
		return part{}, err
	}
	rest, err := b.sidecar(plainTable(100))
	if err != nil {
		return part{}, err
	}
	defer rest.close()
	began := time.Now()
	started, err := cpu(rest.Pid())
	if err != nil {
		return part{}, err
	}
	many, err := b.manyJobs()
	if err != nil {
		return part{}, err
	}
	idle := 60 * time.Second
	if b.quick {
		idle = 5 * time.Second
	}
	if err := b.sleep(began.Add(idle)); err != nil {
		return part{}, err
	}
	rested, err := cpu(rest.Pid())
	if err != nil {
		return part{}, err
	}
	resident, err := memory(rest.Pid(), "VmRSS")
	if err != nil {
		return part{}, err
	}
	took := time.Since(began)
	if _, err := rest.Metrics(); err != nil {
		return part{}, err
	}
	scraped, err := memory(rest.Pid(), "VmRSS")
	if err != nil {
		return part{}, err
	}
	return part{Rows: slices.Concat([]row{
		{What: "binary", Unit: "MB", Ours: one(float64(file.Size()) / 1e6), Targets: []target{oursAtMost(18)}},
		{What: "100 jobs: resident, after a minute at rest", Unit: "MiB", Ours: one(resident),
			Targets: []target{oursAtMost(18)}},
		{What: "100 jobs: resident, after a scrape", Unit: "MiB", Ours: one(scraped)},
		{What: "100 jobs: CPU at rest, of one core", Unit: "%",
			Ours: one(100 * (rested - started).Seconds() / took.Seconds())},
	}, many, nightly)}, nil
}

// nightly measures one replica at rest, whose table has one nightly job, and then replicas with a hundred jobs each
// minute. The sides take turns.
func (b *bench) nightly() ([]row, error) {
	seconds := 60
	if b.quick {
		seconds = 10
	}
	table := func(app *rig.App) []job {
		return []job{{Name: "nightly", Schedule: "0 3 * * *", URL: app.URL("nightly", take)}}
	}
	s := sides{about: "1 nightly job at rest"}
	if err := s.turn(b, setting{replicas: 1, jobs: table, warm: 15 * time.Second}, seconds, 1); err != nil {
		return nil, err
	}
	minutely := sides{about: fmt.Sprintf("100 jobs each minute, %d replicas", replicas)}
	if err := minutely.turn(b, setting{replicas: replicas, jobs: herd(100, 60), warm: 15 * time.Second}, seconds, 1); err != nil {
		return nil, err
	}
	return []row{
		minutely.row("CPU of a replica per minute", "ms", func(r sideRound) float64 { return 60 * r.replicaRate() }, ratioAtMost(2)),
		s.row("CPU per minute", "ms", func(r sideRound) float64 { return 60 * r.replicaRate() }, oursAtMost(40)),
		s.row("context switches per second", "",
			func(r sideRound) float64 { return r.spent.switches / r.watched.Seconds() }, oursAtMost(10)),
		s.row("Redis commands per second", "", sideRound.commandRate, oursAtMost(0.5)),
	}, nil
}

func (b *bench) manyJobs() ([]row, error) {
	var starts, resident, peak []float64
	for range min(b.rounds, 2) {
		s, err := b.sidecar(variedTable)
		if err != nil {
			return nil, err
		}
		used, err := cpu(s.Pid())
		if err == nil {
			starts = append(starts, used.Seconds())
			err = b.sleep(time.Now().Add(8 * time.Second)) // it returns memory two seconds after its start
		}
		if err != nil {
			s.close()
			return nil, err
		}
		now, err := memory(s.Pid(), "VmRSS")
		if err == nil {
			var most float64
			most, err = memory(s.Pid(), "VmHWM")
			resident, peak = append(resident, now), append(peak, most)
		}
		s.close()
		if err != nil {
			return nil, err
		}
	}
	about := fmt.Sprintf("%d jobs: ", manyJobs)
	return []row{
		{What: about + "CPU to start", Unit: "s", Ours: of(starts), Targets: []target{oursAtMost(3)},
			Note: "until ready"},
		{What: about + "resident", Unit: "MiB", Ours: of(resident), Targets: []target{oursAtMost(64)},
			Note: "8 s after the start"},
		{What: about + "peak", Unit: "MiB", Ours: of(peak), Targets: []target{oursAtMost(150)}},
	}, nil
}

// lonely is one replica with a Redis of its own.
type lonely struct {
	*rig.Replica
	redis *rig.Redis
}

func (l *lonely) close() {
	_ = l.Stop(grace)
	_ = l.redis.Stop(grace)
}

// sidecar starts one replica and waits until it is ready.
func (b *bench) sidecar(table func(listen, admin string) string) (*lonely, error) {
	dir, err := os.MkdirTemp(b.dir, "size-")
	if err != nil {
		return nil, err
	}
	redis, err := rig.StartRedis(dir)
	if err != nil {
		return nil, err
	}
	admin, err := rig.FreePort()
	if err != nil {
		_ = redis.Stop(grace)
		return nil, err
	}
	r, err := rig.StartReplica(rig.ReplicaOptions{Binary: b.ours, Name: "r0", Redis: redis.URL(), Dir: dir},
		func(listen string) string {
			return table(listen, fmt.Sprintf("127.0.0.1:%d", admin))
		})
	if err != nil {
		_ = redis.Stop(grace)
		return nil, err
	}
	l := &lonely{r, redis}
	if err := r.Ready(time.Minute); err != nil {
		l.close()
		return nil, err
	}
	return l, nil
}

// plainTable has jobs without a tick in the next time, and the admin listener that a table has by default.
func plainTable(jobs int) func(listen, admin string) string {
	return func(listen, admin string) string {
		return tableOf(listen, admin, jobs, func(int) string { return `schedule: "0 0 1 1 *"` })
	}
}

// variedTable is as large tables are: jobs once a day at many different minutes, half of them by the clock of a city.
func variedTable(listen, admin string) string {
	return tableOf(listen, admin, manyJobs, func(i int) string {
		words := fmt.Sprintf(`schedule: "%d %d * * *"`, i%60, i/60%24)
		if i%2 == 1 {
			words += ", timeZone: Europe/Berlin"
		}
		return words
	})
}

func tableOf(listen, admin string, jobs int, when func(i int) string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "service: bench\nlisten: %q\nadmin: %q\njobs:\n", listen, admin)
	for i := range jobs {
		fmt.Fprintf(&b, "  - {name: job-%d, %s, http: {url: \"http://127.0.0.1:1/job-%[1]d\"}}\n", i, when(i))
	}
	return b.String()
}

func cores() int { return runtime.NumCPU() }
