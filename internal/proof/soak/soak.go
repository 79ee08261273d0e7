package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/solotick/solotick/internal/proof/rig"
)

type options struct {
	clock        string
	skew         []time.Duration // one replica each
	length       time.Duration
	margin, edge time.Duration
	keep         string
}

// errBroken says that a promise was broken, of which all has been said.
var errBroken = errors.New("a promise was broken")

const grace = 30 * time.Second // for a replica to end

// soak sets everything up, waits, and judges.
func soak(ctx context.Context, o options, out io.Writer) (err error) {
	dir := o.keep
	if dir == "" {
		if dir, err = os.MkdirTemp("", "solotick-soak-"); err != nil {
			return err
		}
		defer func() {
			if err == nil {
				_ = os.RemoveAll(dir)
			} else {
				fmt.Fprintf(out, "tables and logs are in %s\n", dir)
			}
		}()
	} else if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	redis, err := rig.StartRedis(dir)
	if err != nil {
		return err
	}
	defer func() { _ = redis.Stop(grace) }()
	app, err := rig.StartApp()
	if err != nil {
		return err
	}
	defer app.Close()

	replicas, err := start(o, dir, redis, app)
	defer func() {
		for _, r := range replicas {
			_ = r.Stop(grace)
		}
	}()
	if err != nil {
		return err
	}
	began := time.Now()
	fmt.Fprintf(out, "%d replicas, %d jobs, clock: %s, clocks off by %v, for %s\n", len(replicas), len(mix), o.clock, o.skew, o.length)
	first, err := look(app, replicas)
	if err != nil {
		return err
	}
	select {
	case <-time.After(time.Until(began.Add(o.length))):
	case <-ctx.Done():
		fmt.Fprintln(out, "stopped early")
	}
	last, err := look(app, replicas)
	if err != nil {
		return err
	}
	ended := time.Now()
	stop := make([]*rig.Process, 0, len(replicas))
	for _, r := range replicas {
		stop = append(stop, r.Process)
	}
	if err := rig.StopAll(grace, stop...); err != nil {
		return err
	}

	v := judge(mix, app.Seen(), began.Add(o.margin), ended.Add(-o.margin), o.edge)
	return report(out, o, v, app, replicas, first, last)
}

// start builds what is needed and brings the replicas up; those that did come up are returned with an error too.
func start(o options, dir string, redis *rig.Redis, app *rig.App) ([]*rig.Replica, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	root, err := rig.Root()
	if err != nil {
		return nil, err
	}
	plain, skewed := filepath.Join(dir, "solotick"), filepath.Join(dir, "solotick-skewed")
	if err := rig.Build(root, rig.Package, plain); err != nil {
		return nil, err
	}
	for _, d := range o.skew {
		if d != 0 {
			if err := rig.BuildSkewed(root, rig.Package, skewed, dir); err != nil {
				return nil, err
			}
			break
		}
	}
	var replicas []*rig.Replica
	for i, d := range o.skew {
		binary := plain
		if d != 0 {
			binary = skewed
		}
		launched := time.Now()
		r, err := rig.StartReplica(rig.ReplicaOptions{Binary: binary, Name: fmt.Sprintf("r%d", i+1), Redis: redis.URL(), Dir: dir, Skew: d},
			func(listen string) string {
				return table(mix, o.clock, listen, self, func(j job) string { return app.URL(j.name, j.take) })
			})
		if err != nil {
			return replicas, err
		}
		replicas = append(replicas, r)
		if err := r.Ready(20 * time.Second); err != nil {
			return replicas, err
		}
		off, err := r.ClockError(launched)
		if err != nil {
			return replicas, err
		}
		if (off - d).Abs() > 2*time.Second {
			return replicas, fmt.Errorf("the clock of %s is off by %s, and should be by %s", r.Name, off, d)
		}
	}
	return replicas, nil
}

// report writes the figures, and on a fault all that is known of it.
func report(out io.Writer, o options, v *verdict, app *rig.App, replicas []*rig.Replica, first, last reading) error {
	seen := app.Seen()
	for _, f := range []struct {
		what  string
		ticks []tickOf
	}{{"double", v.doubles}, {"loss", v.losses}, {"beside another run", v.beside}, {"token did not grow", v.tokens}, {"no tick of the job", v.strangers}} {
		explain(out, f.what, f.ticks, seen, replicas)
	}
	wrong := append(app.Odd(), miscounted(last, mix, replicas)...)
	off := make([]time.Duration, len(replicas))
	slack := func(job) int { return 1 }
	if o.clock == "local" {
		copy(off, o.skew)
		// A fast clock's wakes wait for their tick before they are counted.
		slack = func(j job) int { return 1 + int(maxOf(o.skew)/j.every) }
	}
	list(out, wrong)
	list(out, uncounted(first, last, mix, replicas, off, slack))

	var shares []string
	for _, r := range replicas {
		shares = append(shares, fmt.Sprintf("%s %d", r.Name, v.byReplica[r.Name]))
	}
	fmt.Fprintf(out, "ticks %d: fired %d, overlapped %d (%d at the edge), doubles %d, losses %d; runs beside another %d, tokens that did not grow %d; "+
		"not by the table %d; early %d (by %s at most); tick to arrival p50 %s, p99 %s, max %s; fires: %s; miscounted %d\n",
		v.ticks, v.fired, v.overlapped, v.edge, len(v.doubles), len(v.losses), len(v.beside), len(v.tokens),
		v.late, v.early, v.earliest, quantile(v.delays, .5).Round(10*time.Microsecond), quantile(v.delays, .99).Round(10*time.Microsecond),
		quantile(v.delays, 1).Round(10*time.Microsecond), strings.Join(shares, ", "), len(wrong))
	if !v.fine() || len(wrong) > 0 {
		return errBroken
	}
	return nil
}

// list writes the first few texts.
func list(out io.Writer, texts []string) {
	for i, text := range texts {
		if i == maxExplained {
			fmt.Fprintf(out, "… and %d more\n", len(texts)-i)
			return
		}
		fmt.Fprintln(out, text)
	}
}

func maxOf(d []time.Duration) (m time.Duration) {
	for _, x := range d {
		m = max(m, x.Abs())
	}
	return m
}
