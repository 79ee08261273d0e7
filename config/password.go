package config

import (
	"net/url"
	"regexp"
	"time"

	"go.yaml.in/yaml/v4"

	"github.com/solotick/solotick/config/strict"
)

// DefaultPasswordRefresh is how often redis.passwordCommand is run again if the table does not say. Every token that a
// cloud gives for its Redis lives for longer: the shortest for 15 minutes.
const DefaultPasswordRefresh = 10 * time.Minute

// passwords are the keys of redis that say where the password comes from.
var passwords = []string{"passwordFile", "passwordCommand", "identity"}

func passwordKeys(to *Redis) []strict.Key {
	return []strict.Key{
		{Name: "passwordFile", Type: strict.NonEmpty(&to.PasswordFile),
			Example: "/run/secrets/redis", Form: filledForm, Show: strict.Shown, Also: "password pass auth",
			Doc: "file with the password, empty if Redis asks for none; " +
				"a [new one](redis.md#a-password-that-changes) is sent within seconds"},
		{Name: "passwordCommand", Type: program(&to.PasswordCommand), Example: `["/bin/redis-token", "--user=app"]`,
			Form: programForm, Show: strict.ShownFirst, Also: "credentialsCommand credentialCommand tokenCommand",
			Doc: "program, with arguments and without a shell, that prints the password on its first line within 10s"},
		{Name: "passwordRefresh", Type: strict.Duration(&to.PasswordRefresh, strict.Between(time.Second, 24*time.Hour)),
			Default: "10m", Example: "1m", Form: strict.Form{Needs: "passwordCommand"}, Show: strict.Shown,
			Also: "refresh refreshInterval", Doc: "how often `passwordCommand` runs again; 1s to 24h"},
		{Name: "identity", Type: made(&to.Identity, Identity{}, identityKeys, readIdentity),
			Form: strict.Form{Choice: []string{"aws", "google", "azure"}, Chosen: true},
			Also: "iam managedIdentity credentials",
			Doc:  "a cloud's identity in place of a password: see [redis.md](redis.md#managed-redis)"},
	}
}

func identityKeys(to *Identity) []strict.Key {
	return []strict.Key{
		{Name: "aws", Type: made(&to.AWS, AWS{Service: ElastiCache}, awsKeys, complete("")),
			Doc: "token of IAM for ElastiCache or MemoryDB; needs `username`"},
		{Name: "google", Type: chosen(&to.Google), Example: "{}", Also: "gcp",
			Doc: "token of the service account, from Google's metadata server"},
		{Name: "azure", Type: chosen(&to.Azure), Example: "{}", Also: "entra",
			Doc: "token of Entra ID for the pod's workload identity; needs `username`, the identity's object ID"},
	}
}

// chosen is an empty mapping, which says yes.
func chosen(to *bool) strict.Type {
	return strict.Type{Kind: strict.KindMapping, Decode: func(d *strict.Decoder, e strict.Entry) {
		d.Mapping(e)
		*to = true
	}}
}

func awsKeys(to *AWS) []strict.Key {
	return []strict.Key{
		{Name: "cluster", Type: strict.NonEmpty(&to.Cluster), Default: strict.Required,
			Example: "billing", Form: filledForm, Show: strict.Shown, Also: "cache replicationGroup name",
			Doc: "name of the replication group, serverless cache or MemoryDB cluster"},
		{Name: "service", Type: word(&to.Service), Default: string(ElastiCache), Example: string(MemoryDB),
			Form: strict.Words(ElastiCache, ElastiCacheServerless, MemoryDB), Show: strict.Shown,
			Doc: "`elasticache`, `elasticache-serverless` or `memorydb`"},
		{Name: "region", Type: strict.Checked(strict.Into(&to.Region), "", checkRegion),
			Default: "that of `AWS_REGION`", Example: "eu-central-1",
			Form: strict.Form{Pattern: regions}, Show: strict.Shown, Doc: "region of the cluster"},
	}
}

func readIdentity(d *strict.Decoder, e strict.Entry) {
	if !single(d, e, d.Mapping(e), e.Form.Choice, "is there already") && e.IsMapping() {
		d.Fail(e.At, "give it one of aws, google and azure: {google: {}}", "redis.identity names no cloud")
	}
}

var regionForm = regexp.MustCompile(regions)

func checkRegion(text string) (why, hint string) {
	if !regionForm.MatchString(text) {
		return "not a region of AWS", ""
	}
	return "", ""
}

// checkPassword looks for keys that contradict each other about who connects, and by which password.
func checkPassword(d *strict.Decoder, e strict.Entry, r *Redis, seen map[string]*yaml.Node) {
	single(d, e, seen, passwords, "gives the password already")
	u, err := url.Parse(r.URL)
	if err != nil || r.URL == "" && r.Sentinel == nil && r.Cluster == nil || r.URL == Embedded {
		return // it can be the URL of --redis that names the user
	}
	id := r.Identity
	if id != nil && (id.AWS != nil || id.Azure) && u.User.Username() == "" && !strict.Present(seen["username"]) {
		d.Fail(seen["identity"], "add username to redis: the user that the token is for",
			"redis.identity: redis.username is missing")
	}
}
