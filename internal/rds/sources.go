package rds

import "sync"

// sources knows of which scripts a call sends the source now, and how often that was done. The zero value is ready.
type sources struct {
	mu  sync.Mutex
	all map[*Script]*sourceState
}

type sourceState struct {
	times   int           // the source was sent
	sending chan struct{} // closed when the call that sends it has ended; nil = none does
}

func (s *sources) of(sc *Script) *sourceState {
	if s.all == nil {
		s.all = map[*Script]*sourceState{}
	}
	if s.all[sc] == nil {
		s.all[sc] = &sourceState{}
	}
	return s.all[sc]
}

// sent is how often the source was sent.
func (s *sources) sent(sc *Script) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.of(sc).times
}

// begin gets how often the source had been sent before Redis was asked that does not know the script. It reports
// whether the caller has to send the source, and to call end then. If not, the caller waits for the channel, unless
// that is nil, and asks Redis again.
func (s *sources) begin(sc *Script, before int) (send bool, wait <-chan struct{}) {
	s.mu.Lock()
	defer s.mu.Unlock()
	state := s.of(sc)
	if state.sending == nil && state.times == before {
		state.sending = make(chan struct{})
		return true, nil
	}
	return false, state.sending
}

// end ends what begin began.
func (s *sources) end(sc *Script) {
	s.mu.Lock()
	defer s.mu.Unlock()
	state := s.of(sc)
	state.times++
	close(state.sending)
	state.sending = nil
}
