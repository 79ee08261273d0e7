package config

import (
	"reflect"
	"testing"
	"time"
)

func TestThePasswordOfRedisCanComeFromACommandOrACloud(t *testing.T) {
	const at = "url: rediss://h:6379, username: u, "
	for keys, want := range map[string]Redis{
		"passwordFile: /p":                                               {PasswordFile: "/p"},
		"passwordCommand: [/bin/token, --user=u]":                        {PasswordCommand: []string{"/bin/token", "--user=u"}},
		"passwordCommand: [t], passwordRefresh: 1m":                      {PasswordCommand: []string{"t"}, PasswordRefresh: time.Minute},
		"passwordCommand: [t], passwordRefresh: 10m":                     {PasswordCommand: []string{"t"}},
		"identity: {aws: {cluster: c}}":                                  {Identity: &Identity{AWS: &AWS{Service: ElastiCache, Cluster: "c"}}},
		"identity: {aws: {cluster: c, service: elasticache-serverless}}": {Identity: &Identity{AWS: &AWS{Service: ElastiCacheServerless, Cluster: "c"}}},
		"identity: {aws: {cluster: c, service: memorydb, region: us-gov-west-1}}": {Identity: &Identity{
			AWS: &AWS{Service: MemoryDB, Cluster: "c", Region: "us-gov-west-1"}}},
		"identity: {google: {}}": {Identity: &Identity{Google: true}},
		"identity: {azure: }":    {Identity: &Identity{Azure: true}},
	} {
		want.URL, want.Username, want.Timeout = "rediss://h:6379", "u", 500*time.Millisecond
		if got := parsed(t, withRedis(at+keys)).Redis; !reflect.DeepEqual(got, want) {
			t.Errorf("%s: got %+v", keys, got)
		}
	}
	parsed(t, withRedis("identity: {aws: {cluster: c}}"))                         // --redis may name the user
	parsed(t, withRedis("url: rediss://u@h:6379, identity: {aws: {cluster: c}}")) // so may the URL
	parsed(t, withRedis("url: rediss://h:6379, identity: {google: {}}"))          // and Google needs none
	parsed(t, withRedis("cluster: {addrs: [a:1]}, tls: {}, identity: {google: {}}"))
}

func TestWhereThePasswordComesFromCountsInTheHash(t *testing.T) {
	const at = "url: rediss://h:6379, username: u, "
	plain := parsed(t, withRedis("url: rediss://h:6379, username: u")).Hash
	seen := map[string]string{plain: "none"}
	for _, keys := range []string{"passwordFile: /p", "passwordCommand: [t]", "passwordCommand: [t, u]", "passwordCommand: [t], passwordRefresh: 1m",
		"identity: {aws: {cluster: c}}", "identity: {aws: {cluster: d}}", "identity: {aws: {cluster: c, service: memorydb}}",
		"identity: {aws: {cluster: c, region: us-east-1}}", "identity: {google: {}}", "identity: {azure: {}}"} {
		hash := parsed(t, withRedis(at+keys)).Hash
		if other, there := seen[hash]; there {
			t.Errorf("%s has the hash of %s", keys, other)
		}
		seen[hash] = keys
	}
}
