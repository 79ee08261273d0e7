package main

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/solotick/solotick/config"
)

func TestAPasswordCommandIsRunAgainAfterTheTablesTimeOrTheDefault(t *testing.T) {
	for refresh, want := range map[time.Duration]time.Duration{0: config.DefaultPasswordRefresh, time.Hour: time.Hour} {
		key, get := passwordSource(config.Redis{PasswordCommand: []string{"echo", "s3cret"}, PasswordRefresh: refresh}, "app")
		password, again, err := get(t.Context())
		if err != nil || key != "passwordCommand" || password != "s3cret" || again != want {
			t.Errorf("passwordRefresh %s: redis.%s gives %q, again after %s, %v; want it again after %s", refresh, key, password, again, err, want)
		}
	}
}

func TestATokenOfAWSIsForTheServiceOfTheTable(t *testing.T) {
	t.Setenv("AWS_ACCESS_KEY_ID", "AKIDEXAMPLE")
	t.Setenv("AWS_SECRET_ACCESS_KEY", "s3cret")
	t.Setenv("AWS_SESSION_TOKEN", "")
	for service, want := range map[config.AWSService]struct {
		scope      string
		serverless bool
	}{
		config.ElastiCache: {"elasticache", false}, config.ElastiCacheServerless: {"elasticache", true}, config.MemoryDB: {"memorydb", false},
	} {
		id := &config.Identity{AWS: &config.AWS{Service: service, Cluster: "billing", Region: "eu-central-1"}}
		_, get := passwordSource(config.Redis{Identity: id}, "app")
		token, _, err := get(context.Background())
		if err != nil || !strings.HasPrefix(token, "billing/?") || !strings.Contains(token, "User=app&") ||
			!strings.Contains(token, "%2Feu-central-1%2F"+want.scope+"%2Faws4_request") ||
			strings.Contains(token, "ResourceType=ServerlessCache") != want.serverless {
			t.Errorf("%s: token %s, %v", service, token, err)
		}
	}
}
