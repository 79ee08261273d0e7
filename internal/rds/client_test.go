package rds_test

import (
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/solotick/solotick/internal/rds"
)

func TestClientAsksMastersAlone(t *testing.T) {
	o := redis.UniversalOptions{Addrs: []string{"127.0.0.1:1"}, IsClusterMode: true, ReadOnly: true, RouteByLatency: true, RouteRandomly: true}
	cluster := rds.NewClient(o, 0)
	defer cluster.Close()
	if c, ok := cluster.(*redis.ClusterClient); !ok || c.Options().ReadOnly || c.Options().RouteByLatency || c.Options().RouteRandomly {
		t.Error("replicas of a Cluster would be asked")
	}
	o.IsClusterMode, o.MasterName = false, "m"
	sentinel := rds.NewClient(o, 0)
	defer sentinel.Close()
	if _, ok := sentinel.(*redis.Client); !ok {
		t.Errorf("%T would ask replicas of the master too", sentinel)
	}
}
