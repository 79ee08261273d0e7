package lock_test

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
)

// scribe writes down what the client of a replica has Redis do.
type scribe struct {
	*stage
	name string
}

// DialHook changes nothing.
func (c scribe) DialHook(next redis.DialHook) redis.DialHook { return next }

// ProcessPipelineHook changes nothing: a play makes one call after the other, so that looks alone are pipelines.
func (c scribe) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return next
}

// ProcessHook writes down the call of a script, its answer and its effect.
func (c scribe) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		sent := time.Now()
		err := next(ctx, cmd)
		var words []string
		for _, arg := range cmd.Args() {
			words = append(words, fmt.Sprint(arg))
		}
		if words[0] != "evalsha" {
			return err
		}
		keys, _ := strconv.Atoi(words[2])
		script, argv := c.scripts[words[1]], words[3+keys:]
		switch {
		case script == "acquire":
			c.named(argv[0], "run")
		case script == "settle" && argv[0] == "reap":
			c.named(argv[9], "watcher")
		}
		answer := "no answer"
		if err == nil {
			answer = answered(script, cmd.(interface{ Val() any }).Val())
		}
		line := fmt.Sprintf("%-9s%-3s%-9s%s → %s", c.readable(fmt.Sprint(sent.UnixMilli())), c.name, script, asked(script, words[3], argv), answer)
		c.out.WriteString(c.readable(strings.TrimRight(line, " ")) + "\n")
		c.tell(c.changes())
		return err
	}
}

// asked is the part of a question that a reader needs.
func asked(script, key string, argv []string) string {
	arg := func(n int) string { // from 1, as in the scripts
		if n > len(argv) {
			return ""
		}
		return argv[n-1]
	}
	switch script {
	case "register":
		return key[strings.LastIndex(key, ":")+1:] + given(" ", arg(1)) + given(", knew the ledger born ", arg(3)) + given(", claimed up to ", arg(7))
	case "acquire":
		return fmt.Sprintf("%s %s %s until %s", arg(3), arg(1), arg(7), arg(4)) + given(", due member ", arg(13))
	case "settle":
		return arg(1) + " " + arg(2) + given(" ", strings.Join(outcome.FindStringSubmatch(arg(6))[1:], "")) + given(", again ", arg(13))
	case "extend", "release":
		return arg(1)
	case "pause":
		return arg(3)
	case "book":
		return fmt.Sprintf("%s: %s %s", strings.TrimSpace(arg(1)), arg(5), arg(4))
	case "timer":
		return strings.TrimSpace(fmt.Sprintf("%s %s %s", arg(1), arg(2), arg(5)))
	case "spring":
		return fmt.Sprintf("member %s: %s, next %s", arg(2), arg(3), arg(4))
	}
	return strings.Join(argv, " ")
}

var outcome = regexp.MustCompile(`"outcome":"([a-z_]+)"|^$`)

// given is a text with words before it, and nothing if the text says nothing.
func given(before, text string) string {
	if text == "" || text == "0" {
		return ""
	}
	return before + text
}

// answered is the part of an answer that a reader needs.
func answered(script string, reply any) string {
	parts, ok := reply.([]any)
	if !ok {
		return map[any]string{int64(1): "deleted", int64(0): "left alone"}[reply] // release
	}
	part := func(n int) string { return strings.TrimSpace(fmt.Sprint(parts[n])) } // from 0
	switch script {
	case "register":
		return fmt.Sprintf("born %s, since %s, tick %s", part(1), part(2), part(3))
	case "claimed":
		_, by, _ := strings.Cut(part(1), " ")
		return "claimed by " + by
	case "acquire":
		text := part(0)
		switch text {
		case "WON":
			text += ", token " + part(6)
		case "OVERLAP", "HELD":
		case "PAUSED":
			text += " until it is resumed"
		default:
			if part(5) != "" {
				text += fmt.Sprintf(", newest %s by %s", part(2), part(5))
			}
			text += given(", overlap ", part(3)) + given(", paused to ", part(4))
		}
		return text + given(", gaps ", part(7))
	case "settle":
		return part(0) + given(", set free ", part(2)) + given(", overlapped ", part(3))
	case "book":
		return part(0) + map[string]string{"1": ", counted", "0": ", counted before"}[part(2)]
	case "spring":
		return part(2)
	case "timer":
		return part(0) + map[string]string{"SET 1": ", new", "SET 0": ", in place of the other"}[part(0)+" "+part(2)]
	}
	return part(0)
}

// tell writes changes below the call that made them, a few in each line.
func (s *stage) tell(changes []string) {
	width := 0
	for i, change := range changes {
		switch {
		case i == 0:
			s.out.WriteString(strings.Repeat(" ", 12))
		case width+len(change) > 100:
			s.out.WriteString("\n" + strings.Repeat(" ", 12))
			width = 0
		default:
			s.out.WriteString("; ")
		}
		s.out.WriteString(change)
		width += len(change) + 2
	}
	if len(changes) > 0 {
		s.out.WriteString("\n")
	}
}

// changes says what a call has changed in Redis, except in streams and counters of the history.
func (s *stage) changes() (changes []string) {
	after := map[string]string{}
	keep := func(name, value string) { after[s.readable(name)] = s.readable(value) }
	for _, key := range s.Mini.Keys() {
		name := strings.TrimPrefix(key, "solotick:{svc}:")
		switch kind := s.Mini.Type(key); {
		case kind == "zset":
			set, err := s.Mini.SortedSet(key)
			s.Must(err)
			for member, score := range set {
				keep(name+" "+member, fmt.Sprintf("@%.0f", score))
			}
		case kind == "hash" && strings.HasPrefix(name, "job:"):
			fields, err := s.Mini.HKeys(key)
			s.Must(err)
			for _, field := range fields {
				if shownFields.MatchString(field) {
					keep(field, s.Mini.HGet(key, field))
				}
			}
		case kind == "string":
			value, err := s.Mini.Get(key)
			s.Must(err)
			if !strings.HasPrefix(name, "memo:") || strings.Contains(value, " ") { // not those of requests
				keep(name, value)
			}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(after)) {
		if value := after[name]; s.before[name] != value {
			changes = append(changes, name+" "+cmp.Or(strings.Join(strings.Fields(value), " "), "empty"))
		}
	}
	for _, name := range slices.Sorted(maps.Keys(s.before)) {
		if _, there := after[name]; !there {
			changes = append(changes, "no "+name)
		}
	}
	s.before = after
	return changes
}

// shownFields are those of a ledger that are shown.
var shownFields = regexp.MustCompile(`^(tick|open|gaps|overlap|x:.*|paused|pausedTo|fate:.*)$`)

var (
	aUUID     = regexp.MustCompile(`[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}|\b[0-9A-Za-z]{20,22}\b`)
	anInstant = regexp.MustCompile(`\b9466\d{8}\b`)
)

// named is a UUID's name: the first of its kind is 1.
func (s *stage) named(id, kind string) string {
	if s.uuids[id] == "" {
		n := 1
		for _, name := range s.uuids {
			if strings.HasPrefix(name, kind) {
				n++
			}
		}
		s.uuids[id] = kind + strconv.Itoa(n)
	}
	return s.uuids[id]
}

// readable gives instants as minutes and seconds since the play began, and UUIDs as names.
func (s *stage) readable(text string) string {
	text = aUUID.ReplaceAllStringFunc(text, func(id string) string { return s.named(id, "request") })
	return anInstant.ReplaceAllStringFunc(text, func(ms string) string {
		n, _ := strconv.ParseInt(ms, 10, 64)
		d := time.UnixMilli(n).Sub(s.Start)
		short := fmt.Sprintf("%d:%06.3f", int(d.Minutes()), (d % time.Minute).Seconds())
		return strings.TrimSuffix(strings.TrimRight(short, "0"), ".")
	})
}
