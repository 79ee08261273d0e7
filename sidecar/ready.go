package sidecar

import (
	"context"
	"time"

	"github.com/solotick/solotick/config"
)

// Prober asks the app whether it is ready: nil when it is. The error is one line without secrets.
type Prober interface {
	Probe(context.Context) error
}

// notAsked is why no wake contends before the app was asked for the first time.
const notAsked = "it was not asked yet"

// untilReady is how often the app is asked until it says yes for the first time: each second in which nobody has noticed that it
// is up is one without this replica. From then on it is asked as often as the table says.
const untilReady = 150 * time.Millisecond

// probeApp asks the app whether it is ready, at once and then again and again, until ctx ends.
func (s *Sidecar) probeApp(ctx context.Context) {
	var prober Prober
	var asked *config.Ready
	var was bool // ready, since this gate is asked
	for ctx.Err() == nil {
		gate := s.Table().Ready
		if gate == nil {
			asked = nil
			s.appIs("")
			select {
			case <-s.newTable:
			case <-ctx.Done():
			}
			continue
		}
		if gate != asked {
			prober, asked, was = s.prober(*gate), gate, false
		}
		why := ""
		if err := prober.Probe(ctx); err != nil {
			why = err.Error()
		}
		if ctx.Err() == nil {
			s.appIs(why)
		}
		was = was || why == ""
		wait := gate.Interval
		if !was {
			wait = min(wait, untilReady)
		}
		t := time.NewTimer(wait)
		select {
		case <-t.C:
		case <-s.newTable:
		case <-ctx.Done():
		}
		t.Stop()
	}
}

// appIs takes in whether the app is ready; why is "" then. It says so when that changes.
func (s *Sidecar) appIs(why string) {
	before := s.admission.unreadiness()
	s.admission.setUnready(why)
	s.metrics.appReady.Set(0)
	if why == "" {
		s.metrics.appReady.Set(1)
	}
	if why == "" && before != "" {
		s.watcher.nudge("") // what is due may have waited for this
	}
	switch {
	case why == "" && before != "" && s.Table().Ready != nil:
		s.log.Info("the app is ready")
	case why != "" && (before == "" || before == notAsked):
		s.log.Warn("the app is not ready: leaving ticks to other replicas", "why", why)
	}
}
