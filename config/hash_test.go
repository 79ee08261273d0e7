package config

import (
	"os"
	"strings"
	"testing"
)

// TestEveryValueCountsInTheHash changes the values of a table one by one.
func TestEveryValueCountsInTheHash(t *testing.T) {
	data, err := os.ReadFile("testdata/good/full.yaml")
	if err != nil {
		t.Fatal(err)
	}
	table := parsed(t, string(data))
	seen := map[string]string{table.Hash: "the table itself"}
	if !table.Equal(parsed(t, "# a comment\n"+string(data))) {
		t.Error("a comment makes a difference")
	}
	for _, change := range [][2]string{
		{"service: billing", "service: other"}, {"6380/3", "6380/4"}, {"/run/secrets/redis", "/run/secrets/other"},
		{"ca.pem", "roots.pem"}, {"tls.crt", "cert.pem"}, {"tls.key", "key.pem"}, {"serverName: redis", "serverName: r"},
		{"750ms", "800ms"}, {":9000", ":9001"}, {"clock: local", "clock: redis"}, {"shutdownGrace: 1m", "shutdownGrace: 2m"},
		{"Europe/Berlin", "Europe/Paris"}, {"timeout: 2m", "timeout: 3m"}, {"concurrencyPolicy: Forbid", "concurrencyPolicy: Queue"}, {"30m", "40m"},
		{"missed: skip", "missed: latest"}, {"missed: all", "missed: skip"},
		{"concurrencyPolicy: Forbid", "concurrencyPolicy: Allow\n    concurrency: 4"},
		{"reserved: true", "reserved: true\n    priority: 4"},
		{"startRetries: 8", "startRetries: 9"}, {"startRetries: 0", "startRetries: 1"},
		{"limit: 2", "limit: 1"}, {"backoff: 2s", "backoff: 3s"}, {"maxBackoff: 20s", "maxBackoff: 30s"}, {"limit: 4", "limit: 5"},
		{"safetyDelay: 0s", "safetyDelay: 1s"}, {"ttl: 20s", "ttl: 21s"}, {"jitter: 10s", "jitter: 11s"},
		{"suspend: true", "suspend: false"},
		{"send-invoices", "send-bills"}, {"0 9 *", "1 9 *"}, {"America/New_York", "America/Chicago"}, {"PUT", "POST"},
		{"dry=1", "dry=2"}, {"Bearer", "Basic"}, {"X-Price", "X-Cost"}, {`{"dry"`, `{"wet"`}, {"200-204", "200-205"}, {"idempotencyKey: uuid", "idempotencyKey: text"},
		{"allowRemote: true", "allowRemote: false"}, {":-10m", ":-11m"}, {"guarantee: at-most-once", "guarantee: every-replica"},
		{"ttl: 30s", "ttl: 31s"}, {"jitter: 30s", "jitter: 31s"}, {"2026-12-01", "2026-12-02"}, {"2027-12-01", "2027-12-02"},
		{"@every 90s", "@every 91s"}, {"--fast", "--slow"}, {`LEVEL: "5"`, `LEVEL: "6"`}, {"dir: /data", "dir: /tmp"},
		{"${TOKEN}", "x"}, {"[::1]:9001", "localhost:9001"}, {"maxRunning: 7", "maxRunning: 8"}, {"/ready?x=1", "/ready?x=2"},
		{"interval: 3s", "interval: 4s"}, {"timeout: 400ms", "timeout: 500ms"}, {"reserved: true", "reserved: false"},
		{"hc.example.com/1", "hc.example.com/2"}, {"ping/${TOKEN}", "ping/x"},
		{"before ten", "before noon"}, {"team-invoices", "team-bills"}, {"owner: team-billing", "owner: team-money"},
		{"#failed", "#late"}, {"http://wiki.example.com/", "http://wiki.example.com/billing"}, {"tier: silver", "tier: bronze"},
		{"cost_centre", "cost_center"}, {"area: money", "area: cash"},
		{"/run/tokens", "/run/other"}, {"Token ", "Key "}, {"X-App", "X-Application"}, {"app/roots", "app/ca"}, {"app/crt", "app/cert"},
		{"app/private", "app/key"}, {"serverName: app", "serverName: it"}, {"/run/secrets/whsec", "/run/secrets/hmac"},
	} {
		changed := strings.Replace(string(data), change[0], change[1], 1)
		if changed == string(data) {
			t.Fatalf("%s is not in the table", change[0])
		}
		other := parsed(t, changed)
		if table.Equal(other) {
			t.Errorf("%s → %s makes no difference", change[0], change[1])
		}
		hash := other.Hash
		if strings.Contains(change[0], ":900") { // where it listens
			if hash != table.Hash {
				t.Errorf("%s → %s makes another table of it", change[0], change[1])
			}
			continue
		}
		if same := seen[hash]; same != "" {
			t.Errorf("%s → %s has the hash of %s", change[0], change[1], same)
		}
		seen[hash] = change[0] + " → " + change[1]
	}
}

// TestSecretsFillOnlySixteenBitsOfTheHash is what keeps a guess at a secret from being confirmed by the hash.
func TestSecretsFillOnlySixteenBitsOfTheHash(t *testing.T) {
	before := parsed(t, secretive).Hash
	after := parsed(t, strings.ReplaceAll(secretive, canary, "another")).Hash
	if before == after || before[:8] != after[:8] {
		t.Errorf("%s became %s", before, after)
	}
}

// TestFingerprintChangesWithTheTicksAlone changes what belongs to the series of ticks, and what does not.
func TestFingerprintChangesWithTheTicksAlone(t *testing.T) {
	const text = `
service: s
jobs:
  - name: a
    schedule: "0 9 * * *"
    timeZone: Europe/Berlin
    start: 2026-12-01T00:00:00Z
    end: 2027-12-01T00:00:00Z
    jitter: 1m
    suspend: false
    timeout: 5m
    exec: {command: [a]}
`
	want := parsed(t, text).Jobs[0].Fingerprint
	for _, c := range []struct {
		old, new string
		same     bool
	}{
		{"0 9 *", "1 9 *", false},
		{"Berlin", "Paris", false},
		{"2026-12-01", "2026-12-02", false},
		{"2027-12-01", "2027-12-02", false},
		{"1m", "2m", false},
		{"suspend: false", "suspend: true", false},
		{"1m", "60s", true},
		{"2026-12-01T00:00:00Z", "2026-12-01T01:00:00+01:00", true},
		{"timeout: 5m", "timeout: 6m", true},
		{"timeout: 5m", "startRetries: 6", true},
		{"timeout: 5m", "description: a\n    owner: b\n    runbook: https://c/\n    labels: {d: e}", true},
		{"[a]", "[b]", true},
		{"service: s", "service: t", true},
		{"- name", "- lock: {ttl: 20s}\n    name", true},
	} {
		if got := parsed(t, strings.Replace(text, c.old, c.new, 1)).Jobs[0].Fingerprint; (got == want) != c.same {
			t.Errorf("%s → %s: the same is %t, want %t", c.old, c.new, got == want, c.same)
		}
	}
}

// TestATableWithoutTheNewKeysKeepsItsHash is what keeps replicas of two versions from telling one table apart, as they
// do while a new version is rolled out.
func TestATableWithoutTheNewKeysKeepsItsHash(t *testing.T) {
	table := good(t, "small")
	if table.Hash != "1c3230dbaf17" || table.Jobs[0].Fingerprint != "bd0687c2841d3e45" {
		t.Errorf("hash %s, fingerprint %s", table.Hash, table.Jobs[0].Fingerprint)
	}
}
