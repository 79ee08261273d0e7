package sidecar

import (
	"context"
	"log/slog"
	"time"

	"github.com/solotick/solotick/config"
	"github.com/solotick/solotick/internal/beat"
)

// Prober asks the app whether it is ready: nil when it is. The error is one line without secrets.
type Prober interface {
	Probe(context.Context) error
}

// notAsked is why no wake contends before the app was asked for the first time.
const notAsked = "it was not asked yet"

// probeUntilReady is how often the app is asked until its first yes. Until the replica knows that the app is up, it
// takes no ticks. From then on the table's interval counts.
const probeUntilReady = 150 * time.Millisecond

// probe asks the app whether it is ready. It is immutable.
type probe struct {
	prober   func(config.Ready) Prober
	table    func() *config.Table // in force
	newTable <-chan struct{}      // another one is
	slots    *slots
	told     chan<- struct{} // that this may have changed
	metrics  *metrics
	log      *slog.Logger
}

// run asks the app whether it is ready, at once and then again and again, until ctx ends.
func (p *probe) run(ctx context.Context) {
	var prober Prober
	var asked *config.Ready
	var wasReady bool // ready, since this gate is asked
	for ctx.Err() == nil {
		gate := p.table().Ready
		if gate == nil {
			asked = nil
			p.report("", time.Now())
			select {
			case <-p.newTable:
			case <-ctx.Done():
			}
			continue
		}
		if gate != asked {
			prober, asked, wasReady = p.prober(*gate), gate, false
		}
		why, began := "", time.Now()
		if err := prober.Probe(ctx); err != nil {
			why = err.Error()
		}
		if ctx.Err() == nil {
			p.report(why, began)
		}
		wasReady = wasReady || why == ""
		wait := gate.Interval
		if !wasReady {
			wait = min(wait, probeUntilReady)
		}
		select {
		case <-time.After(wait):
		case <-p.newTable:
		case <-ctx.Done():
		}
	}
}

// report records whether the app is ready, in which case why is "". It logs a change.
func (p *probe) report(why string, asked time.Time) {
	before := p.slots.setUnready(why, asked)
	show(p.metrics.appReady, why == "" && p.table().MaxRunning >= 0) // it has no app without a table
	beat.Kick(p.told)
	switch {
	case why == "" && before != "" && p.table().Ready != nil:
		p.log.Info("the app is ready")
	case why != "" && (before == "" || before == notAsked):
		p.log.Warn("the app is not ready: leaving ticks to other replicas", "why", why)
	}
}
