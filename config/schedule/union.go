package schedule

// union has the ticks of several series. A tick on which two agree is one tick.
type union []series

func (s union) after(u int64) (tick int64, ok bool) {
	for _, one := range s {
		if t, has := one.after(u); has && (!ok || t < tick) {
			tick, ok = t, true
		}
	}
	return tick, ok
}

func (s union) notAfter(u int64) (tick int64, ok bool) {
	for _, one := range s {
		if t, has := one.notAfter(u); has && (!ok || t > tick) {
			tick, ok = t, true
		}
	}
	return tick, ok
}

// parts returns the series that a series is made of.
func parts(s series) []series {
	if all, ok := s.(union); ok {
		return all
	}
	return []series{s}
}

// base returns the series under the rules.
func base(s series) series {
	if r, ok := s.(*ruled); ok {
		return r.base
	}
	return s
}
