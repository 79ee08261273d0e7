package sim

import (
	"strconv"
	"strings"
	"time"
)

// touched follows the lock keys through what scripts do to them: promise 4, never someone else's lock. It is called
// with the store locked, before the command runs.
func (s *store) touched(cmd string, args []string) {
	if len(args) == 0 || !strings.Contains(args[0], ":lock:") {
		return
	}
	key, run, now := args[0], s.script.run(), s.world.now()+s.offset
	was, held := s.shadow[key]
	if held && was.expires <= now {
		held = false
	}
	foreign := held && was.run != run
	switch cmd {
	case "SET":
		if foreign {
			if !hasWord(args, "NX") {
				s.foreign(key, "overwrites", was.run)
			}
			return
		}
		s.shadow[key] = owner{run: args[1], expires: now + ttlOf(args)}
	case "PEXPIRE":
		if foreign {
			s.foreign(key, "extends", was.run)
		}
		if held {
			ms, _ := strconv.Atoi(args[1])
			was.expires = now + time.Duration(ms)*time.Millisecond
			s.shadow[key] = was
		}
	case "DEL":
		// A claim removes what the last run left behind for the safety delay.
		if foreign && (s.script.name != "acquire" || s.claims.running(was.run)) {
			s.foreign(key, "deletes", was.run)
		}
		delete(s.shadow, key)
	}
}

func (s *store) foreign(key, does, whose string) {
	s.world.violated("4: a foreign lock", "", "%s (%s) of run %s %s %s, which is run %s's",
		s.script.name, first(s.script.args), short(s.script.run()), does, key, short(whose))
}

func hasWord(args []string, word string) bool {
	for _, a := range args {
		if strings.EqualFold(a, word) {
			return true
		}
	}
	return false
}

// ttlOf a SET.
func ttlOf(args []string) time.Duration {
	for i := 2; i+1 < len(args); i++ {
		n, _ := strconv.Atoi(args[i+1])
		switch strings.ToUpper(args[i]) {
		case "EX":
			return time.Duration(n) * time.Second
		case "PX":
			return time.Duration(n) * time.Millisecond
		}
	}
	return 1 << 62
}

func first(s []string) string {
	if len(s) == 0 {
		return ""
	}
	return s[0]
}

func short(run string) string { return run[:min(8, len(run))] }
