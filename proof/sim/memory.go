package sim

import (
	"strings"

	"github.com/alicebob/miniredis/v2/server"
)

// The faults in which Redis runs no commands that add data, and none that change any.
const (
	redisFull      = "redis full"
	redisReadsOnly = "redis reads only"
)

// The answers of such a Redis.
const (
	isFull    = "OOM command not allowed when used memory > 'maxmemory'."
	readsOnly = "READONLY You can't write against a read only replica."
)

// writes are the commands that change data, of those that the product uses; true: they may need memory for that.
var writes = map[string]bool{"SET": true, "HSET": true, "ZADD": true, "XADD": true, "HINCRBY": true, "INCR": true,
	"DEL": false, "HDEL": false, "ZREM": false, "PEXPIRE": false, "EXPIRE": false}

// denied answers a command that Redis does not run in its state, as Redis 7 does: a script is broken off by the first
// write that is denied, except when it has written something before. The store is locked.
func (s *store) denied(p *server.Peer, cmd string) bool {
	adds, isWrite := writes[cmd]
	if !isWrite {
		return false
	}
	if s.script != nil && s.script.wrote {
		return false
	}
	switch {
	case s.state == redisFull && adds:
		p.WriteError(isFull)
	case s.state == redisReadsOnly:
		p.WriteError(readsOnly)
	default:
		if s.script != nil {
			s.script.wrote = true
		}
		s.wrote = s.world.now()
		return false
	}
	s.denials++
	return true
}

// asRedis makes of the error with which miniredis breaks a script off what Redis says.
func asRedis(reply []byte) []byte {
	text := string(reply)
	for _, said := range []string{isFull, readsOnly} {
		if strings.HasPrefix(text, "-") && strings.Contains(text, said) {
			return []byte("-" + said + " script: 0123456789abcdef, on @user_script:1.\r\n")
		}
	}
	return reply
}
