package rds_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/solotick/solotick/internal/resp"
	"github.com/solotick/solotick/internal/testing/redisworld"
	"github.com/solotick/solotick/lock"
	"github.com/solotick/solotick/sidecar/service"
)

// attacks are what a client without a guard dies of, one way or another. The first ends the process at once.
var attacks = []string{
	"*2\r\n$9223372036854775805\r\n", "*500000000\r\n", "%500000000\r\n", "+" + strings.Repeat("x", 1<<17), "|1\r\n+a\r\n+b\r\n",
}

// hostile listens, and answers to all commands but one what a Redis would, as far as a client needs it.
func hostile(t *testing.T, attack, to string, struck chan struct{}) (addr string) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	addr = l.Addr().String()
	host, port, _ := net.SplitHostPort(addr)
	answers := map[string]string{
		"SENTINEL GET-MASTER-ADDR-BY-NAME": fmt.Sprintf("*2\r\n$%d\r\n%s\r\n$%d\r\n%s\r\n", len(host), host, len(port), port),
		"SENTINEL SENTINELS":               "*0\r\n",
		"CLUSTER SLOTS":                    fmt.Sprintf("*1\r\n*3\r\n:0\r\n:16383\r\n*2\r\n$%d\r\n%s\r\n:%s\r\n", len(host), host, port),
		"TIME":                             "*2\r\n$10\r\n1700000000\r\n$1\r\n0\r\n",
		"HMGET":                            "*1\r\n$-1\r\n",
		"ZRANGE":                           "*0\r\n",
	}
	var once sync.Once
	timer := lock.Due{Tick: time.UnixMilli(1), Job: "timer:a", Kind: "timer", Nonce: "n"}.Member()
	answer := func(words []string) string {
		said := strings.ToUpper(strings.Join(words, " "))
		if strings.HasPrefix(said, to) {
			once.Do(func() { close(struck) })
			return attack
		}
		if strings.HasPrefix(said, "ZRANGE") && !strings.Contains(said, "WITHSCORES") {
			return fmt.Sprintf("*1\r\n$%d\r\n%s\r\n", len(timer), timer)
		}
		for of, answer := range answers {
			if strings.HasPrefix(said, of) {
				return answer
			}
		}
		return "-ERR unknown command\r\n"
	}
	var all sync.WaitGroup
	all.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			all.Go(func() {
				defer c.Close()
				for in := bufio.NewReader(c); ; {
					words, err := request(in)
					if err != nil {
						return
					}
					if _, err := io.WriteString(c, answer(words)); err != nil {
						return
					}
				}
			})
		}
	})
	t.Cleanup(func() {
		l.Close()
		all.Wait()
	})
	return addr
}

// patience is for an answer on a busy machine.
const patience = time.Minute

// endSoonAfter lets a client have a moment with the attack.
func endSoonAfter(struck <-chan struct{}, end func()) {
	go func() {
		<-struck
		time.AfterFunc(300*time.Millisecond, end)
	}()
}

func awaitStrike(t *testing.T, struck <-chan struct{}, attack string) {
	t.Helper()
	select {
	case <-struck:
	case <-time.After(patience):
		t.Errorf("%.30q was not asked for", attack)
	}
}

// request reads a command.
func request(in *bufio.Reader) (words []string, err error) {
	line, err := in.ReadString('\n')
	if err != nil {
		return nil, err
	}
	n, err := strconv.Atoi(strings.TrimSpace(line[1:]))
	for ; err == nil && n > 0; n-- {
		if _, err = in.ReadString('\n'); err != nil {
			break
		}
		line, err = in.ReadString('\n')
		words = append(words, strings.TrimSpace(line))
	}
	return words, err
}

func TestEveryConnectionIsGuardedAgainstAHostileRedis(t *testing.T) {
	for name, c := range map[string]struct {
		to      string
		options redis.UniversalOptions
		ask     func(context.Context, *service.Store) error
	}{
		"a single server":            {to: "TIME", ask: askTime},
		"its greeting":               {to: "HELLO", ask: askTime},
		"a script":                   {to: "EVALSHA", ask: register},
		"a Sentinel":                 {to: "SENTINEL GET", options: redis.UniversalOptions{MasterName: "m"}, ask: askTime},
		"what a Sentinel tells":      {to: "SUBSCRIBE", options: redis.UniversalOptions{MasterName: "m"}, ask: askTime},
		"the master of a Sentinel":   {to: "TIME", options: redis.UniversalOptions{MasterName: "m"}, ask: askTime},
		"the slots of a Cluster":     {to: "CLUSTER SLOTS", options: redis.UniversalOptions{IsClusterMode: true}, ask: askTime},
		"a master of a Cluster":      {to: "TIME", options: redis.UniversalOptions{IsClusterMode: true}, ask: askTime},
		"the nudges":                 {to: "SUBSCRIBE", ask: listen},
		"the nudges of a Sentinel's": {to: "SUBSCRIBE", options: redis.UniversalOptions{MasterName: "m"}, ask: listen},
		"the nudges of a Cluster":    {to: "SUBSCRIBE", options: redis.UniversalOptions{IsClusterMode: true}, ask: listen},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for _, attack := range attacks {
				struck := make(chan struct{})
				o := c.options
				o.Addrs = []string{hostile(t, attack, c.to, struck)}
				client := lock.NewClient(o, patience)
				s, err := service.New(client, redisworld.Service, lock.Options{Timeout: patience})
				if err != nil {
					t.Fatal(err)
				}
				ctx, cancel := context.WithTimeout(context.Background(), patience)
				if c.to == "SUBSCRIBE" {
					endSoonAfter(struck, cancel)
				}
				err = c.ask(ctx, s)
				var refused *resp.Error
				if err != nil && !errors.As(err, &refused) {
					t.Errorf("%.30q: %v", attack, err)
				}
				if err == nil && c.to != "SUBSCRIBE" {
					t.Errorf("%.30q was taken for an answer", attack)
				}
				awaitStrike(t, struck, attack)
				cancel()
				_ = client.Close()
			}
		})
	}
}

// Answers that are within all bounds, and of another form than go-redis or this package took for granted: each of them
// ended the process.
func TestNoFormOfAnAnswerEndsTheProcess(t *testing.T) {
	for name, c := range map[string]struct {
		to      string
		options redis.UniversalOptions
		ask     func(context.Context, *service.Store) error
		attacks []string
	}{
		"the time": {to: "TIME", ask: askTime, attacks: []string{"-NOSCRIPT no\r\n"}},
		"a look": {to: "HMGET", ask: look,
			attacks: []string{":-1\r\n", ":9000000000000\r\n", "+9000000000000\r\n", "*0\r\n", ":1\r\n"}},
		"standings": {to: "HMGET", ask: standings,
			attacks: []string{":-1\r\n", "*0\r\n", "*1\r\n$1\r\n1\r\n", "+9000000000000\r\n", "*22\r\n" + strings.Repeat(":-1\r\n", 22)}},
		"a drop":           {to: "EVALSHA", ask: drop, attacks: []string{"*2\r\n$2\r\nOK\r\n:1\r\n", "*0\r\n", ":-1\r\n"}},
		"a timer":          {to: "GET", ask: timer, attacks: []string{"*1\r\n$1\r\na\r\n", ":1\r\n", "$0\r\n\r\n"}},
		"a list of timers": {to: "MGET", ask: list, attacks: []string{"*3\r\n$1\r\na\r\n$1\r\nb\r\n$1\r\nc\r\n"}},
		"a group of timers": {to: "ZSCAN", ask: group,
			attacks: []string{"*0\r\n", ":1\r\n", "*2\r\n$1\r\n0\r\n:5\r\n", "*2\r\n$1\r\n0\r\n*-1\r\n", "*2\r\n$1\r\n0\r\n*1\r\n:1\r\n", "*2\r\n*0\r\n*0\r\n"}},
		"nudges": {to: "SUBSCRIBE", ask: listen,
			attacks: []string{"*1\r\n:1\r\n", "*0\r\n", "*3\r\n$7\r\nmessage\r\n:1\r\n:1\r\n"}},
		"a Sentinel's": {to: "SUBSCRIBE", options: redis.UniversalOptions{MasterName: "m"}, ask: askTime,
			attacks: []string{"*1\r\n:1\r\n"}},
		"nudges that come too early": {to: "HELLO", ask: listen, attacks: []string{"-ERR\r\n*1\r\n:1\r\n"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for _, attack := range c.attacks {
				struck := make(chan struct{})
				o := c.options
				o.Addrs = []string{hostile(t, attack, c.to, struck)}
				client := lock.NewClient(o, patience)
				t.Cleanup(func() { _ = client.Close() })
				s, err := service.New(client, redisworld.Service, lock.Options{Timeout: patience})
				if err != nil {
					t.Fatal(err)
				}
				ctx, cancel := context.WithTimeout(context.Background(), patience)
				endSoonAfter(struck, cancel)
				_ = c.ask(ctx, s) // an error, or none
				awaitStrike(t, struck, attack)
				cancel()
			}
		})
	}
}

func look(ctx context.Context, s *service.Store) error {
	_, err := s.Look(ctx, 1)
	return err
}

func standings(ctx context.Context, s *service.Store) error {
	_, err := s.Standings(ctx, []string{redisworld.Job})
	return err
}

func drop(ctx context.Context, s *service.Store) error {
	_, _, err := s.Locks.Drop(ctx, lock.Due{Tick: time.UnixMilli(1), Job: redisworld.Job, Kind: "manual", Nonce: "n"}, "")
	return err
}

func timer(ctx context.Context, s *service.Store) error {
	_, _, err := s.Timer(ctx, "a")
	return err
}

func list(ctx context.Context, s *service.Store) error {
	_, err := s.Timers(ctx, 10)
	return err
}

func group(ctx context.Context, s *service.Store) error {
	_, err := s.GroupTimers(ctx, "a", 10)
	return err
}

func register(ctx context.Context, s *service.Store) error {
	_, err := s.Locks.Register(ctx, redisworld.Job, "")
	return err
}

// listen hears what there is.
func listen(ctx context.Context, s *service.Store) error {
	s.Listen(ctx, func(string) {}, func(lock.Heard) {})
	return nil
}

func askTime(ctx context.Context, s *service.Store) error { return s.Sync(ctx) }
