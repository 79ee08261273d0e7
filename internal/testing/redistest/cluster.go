package redistest

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// slots of a Cluster.
const slots = 16384

// Cluster is a Redis Cluster of masters alone, each with an equal share of the slots.
type Cluster struct{ Masters []*Server }

// StartCluster returns when every node knows all slots to be served. With a certificate among args the nodes have a bus
// of TLS, and tell clients that come by TLS of ports that take it.
func StartCluster(t testing.TB, masters int, args ...string) *Cluster {
	t.Helper()
	c := &Cluster{}
	args = append([]string{"--cluster-enabled", "yes", "--cluster-node-timeout", "2000"}, args...)
	if slices.Contains(args, certArg) {
		args = append(args, "--tls-cluster", "yes")
	}
	for range masters {
		c.Masters = append(c.Masters, Start(t, args...))
	}
	for i, m := range c.Masters {
		m.must(fmt.Sprintf("CLUSTER SET-CONFIG-EPOCH %d", i+1)) // equal ones would first have to be told apart
		m.must("CLUSTER ADDSLOTS" + words(i*slots/masters, (i+1)*slots/masters))
		if i > 0 {
			m.must(fmt.Sprintf("CLUSTER MEET 127.0.0.1 %d", c.Masters[0].peerPort()))
		}
	}
	for _, m := range c.Masters {
		m.await("CLUSTER INFO", "the Cluster", func(info string) bool {
			return Field(info, "cluster_state") == "ok" && Field(info, "cluster_slots_ok") == strconv.Itoa(slots)
		})
	}
	return c
}

// words are the numbers from a up to b, each after a blank.
func words(a, b int) string {
	var w strings.Builder
	for ; a < b; a++ {
		fmt.Fprintf(&w, " %d", a)
	}
	return w.String()
}

// Addrs are those of the nodes.
func (c *Cluster) Addrs() []string {
	var addrs []string
	for _, m := range c.Masters {
		addrs = append(addrs, m.Addr())
	}
	return addrs
}

// Owner is the master of a key's slot.
func (c *Cluster) Owner(key string) *Server {
	m := c.Masters[0]
	m.t.Helper()
	answer, err := m.Ask("CLUSTER KEYSLOT " + key)
	slot, err2 := strconv.Atoi(strings.TrimPrefix(answer, ":"))
	if err != nil || err2 != nil {
		m.t.Fatalf("the slot of %s: %s, %v", key, answer, err)
	}
	for i := range c.Masters {
		if slot < (i+1)*slots/len(c.Masters) {
			return c.Masters[i]
		}
	}
	return nil
}

// Move gives the slot of a key, which must be empty, to another master. The node that loses it answers MOVED from then
// on.
func (c *Cluster) Move(key string, from, to *Server) {
	from.t.Helper()
	ask := func(s *Server, command string) string {
		answer, err := s.Ask(command)
		if err != nil {
			from.t.Fatal(err)
		}
		return answer
	}
	set := "CLUSTER SETSLOT " + strings.TrimPrefix(ask(from, "CLUSTER KEYSLOT "+key), ":")
	giver, taker := ask(from, "CLUSTER MYID"), ask(to, "CLUSTER MYID")
	// only who imports a slot gets an epoch with it that outranks the giver's last heartbeat
	to.must(set + " IMPORTING " + giver)
	to.must(set + " NODE " + taker)
	from.must(set + " NODE " + taker)
}

// Field is the value of a line `name:value` of an INFO.
func Field(info, name string) string {
	for line := range strings.Lines(info) {
		if value, ok := strings.CutPrefix(line, name+":"); ok {
			return strings.TrimRight(value, "\r\n")
		}
	}
	return ""
}
