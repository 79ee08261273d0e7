package config

import (
	"reflect"
	"strings"
	"testing"

	"github.com/solotick/solotick/config/strict"
)

// withRedis is a table with that mapping under redis.
func withRedis(mapping string) string {
	return "service: s\nredis: {" + mapping + "}\njobs: []\n"
}

func TestSentinelAndClusterEndUpInTheirPlace(t *testing.T) {
	sentinel := "sentinel: {master: m, addrs: [a:26379, '[::1]:26380'], username: u, passwordFile: /p}, tls: {}, waitReplicas: 2"
	want := Redis{Sentinel: &Sentinel{Master: "m", Addrs: []string{"a:26379", "[::1]:26380"}, Username: "u", PasswordFile: "/p"},
		TLS: &TLS{}, WaitReplicas: 2, Timeout: 500_000_000}
	if got := parsed(t, withRedis(sentinel)).Redis; !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v", got)
	}
	want = Redis{Cluster: &Cluster{Addrs: []string{"a:6379", "b:6379"}}, Username: "u", PasswordFile: "/p", Timeout: 500_000_000}
	if got := parsed(t, withRedis("cluster: {addrs: [a:6379, b:6379]}, username: u, passwordFile: /p")).Redis; !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v", got)
	}
	hash := parsed(t, withRedis(sentinel)).Hash
	for _, change := range []string{"master: m→master: n", "a:26379→b:26379", "username: u→username: v", "/p→/q", "waitReplicas: 2→waitReplicas: 3", ", tls: {}→"} {
		from, to, _ := strings.Cut(change, "→")
		if parsed(t, withRedis(strings.Replace(sentinel, from, to, 1))).Hash == hash {
			t.Errorf("%s does not count in the hash", change)
		}
	}
}

func TestExamplesOfSentinelAndClusterMakeATable(t *testing.T) {
	for name, keys := range map[string][]strict.Key{"sentinel": keysOf("redis", "sentinel"), "cluster": keysOf("redis", "cluster")} {
		var b strings.Builder
		for _, k := range keys {
			b.WriteString("    " + k.Name + ": " + k.Example + "\n")
		}
		parsed(t, "service: s\nredis:\n  "+name+":\n"+b.String()+"jobs: []\n")
	}
}
