package redisworld

import (
	"context"
	"net"
	"strconv"
	"sync/atomic"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/solotick/solotick/internal/testing/lossy"
	"github.com/solotick/solotick/internal/testing/redistest"
)

// Pair is a World of a master and its copy (a replica in Redis' own sense) behind one address, which is turned to the
// other by hand: as a name or a service that follows the master does.
type Pair struct {
	*World
	Master, Copy *redistest.Server

	present atomic.Pointer[redistest.Server]
}

// NewPair starts both, and waits until they are in step.
func NewPair(t *testing.T) *Pair {
	master := redistest.Start(t, "--repl-diskless-sync-delay", "0")
	p := &Pair{World: OnServer(t, master), Master: master}
	p.Copy = redistest.Start(t, "--replicaof", "127.0.0.1", strconv.Itoa(master.Port()))
	p.Copy.AwaitCopy(master)
	p.TurnTo(master)
	p.Dial = func(ctx context.Context) (net.Conn, error) { return DialTCP(ctx, p.present.Load().Addr()) }
	return p
}

// TurnTo has the address lead to another server.
func (p *Pair) TurnTo(s *redistest.Server) { p.present.Store(s) }

// Contender has a proxy of its own, and believes a claim when so many replicas of Redis have it.
func (p *Pair) Contender(name string, wait int) *Replica { return p.ContenderAt(name, wait, p.Dial) }

// ContenderAt is a Contender with an address of its own.
func (p *Pair) ContenderAt(name string, wait int, dial func(context.Context) (net.Conn, error)) *Replica {
	proxy := lossy.New(dial)
	r := p.ReplicaOf(name, redis.UniversalOptions{Addrs: []string{"127.0.0.1:1"}, Dialer: proxy.Dial}, wait)
	r.Proxy = proxy
	p.Cleanup(proxy.Close)
	return r
}

// Cut takes the copy away from its master, which it then does not find again, and waits until the master knows.
func (p *Pair) Cut() {
	p.Helper()
	p.Ask(p.Copy, "REPLICAOF 127.0.0.1 1")
	for {
		info, err := p.Master.Ask("INFO replication")
		p.Must(err)
		if redistest.Field(info, "connected_slaves") == "0" {
			return
		}
		p.Must(p.Context().Err())
	}
}
