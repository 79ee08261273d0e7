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

// Identity says which cloud vouches for this process, in place of a password. Exactly one field is set.
type Identity struct {
	AWS    *AWS
	Google bool
	Azure  bool
}

// AWS names a Redis of AWS that checks tokens of IAM.
type AWS struct {
	Service AWSService
	Cluster string // the replication group, the cluster of MemoryDB, or the serverless cache
	Region  string // "" = that of the environment
}

// AWSService is a service of AWS that runs a Redis.
type AWSService string

// The services of AWS whose tokens differ.
const (
	ElastiCache           AWSService = "elasticache"
	ElastiCacheServerless AWSService = "elasticache-serverless"
	MemoryDB              AWSService = "memorydb"
)

// passwords are the keys of redis that say where the password comes from.
var passwords = []string{"passwordFile", "passwordCommand", "identity"}

func (d *decoder) passwordKeys() []strict.Key {
	return []strict.Key{
		{Name: "passwordFile", Kind: strict.KindText, Default: strict.None, Example: "/run/secrets/redis", Form: filledForm,
			Show: strict.Shown, Also: []string{"password", "pass", "auth"},
			Decode: func(e strict.Entry) { d.NonEmpty(e, &d.table.Redis.PasswordFile) },
			Doc:    "file with the password, empty if Redis asks for none; read at every connect, and a changed one is sent on open connections too, within seconds"},
		{Name: "passwordCommand", Kind: strict.KindTextList, Default: strict.None, Example: `["/bin/redis-token", "--user=app"]`, Form: programForm,
			Show: strict.ShownFirst, Also: []string{"credentialsCommand", "credentialCommand", "tokenCommand"},
			Decode: func(e strict.Entry) { d.program(e, &d.table.Redis.PasswordCommand) },
			Doc:    "program with its arguments that prints the password on its first line, within 10s; there is no shell unless you write one"},
		{Name: "passwordRefresh", Kind: strict.KindDuration, Default: "10m", Example: "1m", Form: strict.Form{Needs: "passwordCommand"},
			Show: strict.Shown, Also: []string{"refresh", "refreshInterval"},
			Decode: func(e strict.Entry) {
				if d.Duration(e, &d.table.Redis.PasswordRefresh, strict.Between(time.Second, 24*time.Hour)); d.table.Redis.PasswordRefresh == DefaultPasswordRefresh {
					d.table.Redis.PasswordRefresh = 0 // so that saying it makes no other table
				}
			},
			Doc: "how often `passwordCommand` is run again, besides at once when Redis refuses the password; from 1s to 24h"},
		{Name: "identity", Kind: strict.KindMapping, Default: strict.None, Keys: d.identityKeys(), Also: []string{"iam", "managedIdentity", "credentials"},
			Form: strict.Form{Choice: []string{"aws", "google", "azure"}, Chosen: true}, Decode: d.identity,
			Doc: "the identity that a cloud gives this process, in place of a password; see [redis.md](redis.md#managed-redis)"},
	}
}

func (d *decoder) identityKeys() []strict.Key {
	return []strict.Key{
		{Name: "aws", Kind: strict.KindMapping, Default: strict.None, Keys: d.awsKeys(), Decode: d.aws,
			Doc: "a token of IAM for ElastiCache or MemoryDB; needs `username`"},
		{Name: "google", Kind: strict.KindMapping, Default: strict.None, Example: "{}", Also: []string{"gcp"},
			Decode: func(e strict.Entry) { d.Mapping(e); d.table.Redis.Identity.Google = true },
			Doc:    "the token of the service account, from Google's metadata server"},
		{Name: "azure", Kind: strict.KindMapping, Default: strict.None, Example: "{}", Also: []string{"entra"},
			Decode: func(e strict.Entry) { d.Mapping(e); d.table.Redis.Identity.Azure = true },
			Doc:    "a token of Microsoft Entra ID, for the workload identity of the pod; needs `username`, the object ID of the identity"},
	}
}

func (d *decoder) awsKeys() []strict.Key {
	aws := func() *AWS { return d.table.Redis.Identity.AWS }
	return []strict.Key{
		{Name: "cluster", Kind: strict.KindText, Default: strict.Required, Example: "billing", Form: filledForm,
			Show: strict.Shown, Also: []string{"cache", "replicationGroup", "name"},
			Decode: func(e strict.Entry) { d.NonEmpty(e, &aws().Cluster) },
			Doc:    "name of the replication group, the serverless cache or the MemoryDB cluster"},
		{Name: "service", Kind: strict.KindText, Default: string(ElastiCache), Example: string(MemoryDB),
			Show: strict.Shown, Form: strict.Words(ElastiCache, ElastiCacheServerless, MemoryDB),
			Decode: func(e strict.Entry) { oneOf(d, e, &aws().Service) },
			Doc:    "`elasticache`, `elasticache-serverless` or `memorydb`"},
		{Name: "region", Kind: strict.KindText, Default: "that of `AWS_REGION`", Example: "eu-central-1", Form: strict.Form{Pattern: regions},
			Show: strict.Shown, Decode: d.region,
			Doc: "region of the cluster"},
	}
}

func (d *decoder) identity(e strict.Entry) {
	d.table.Redis.Identity = &Identity{}
	seen := d.Mapping(e)
	named := ""
	for _, k := range e.Form.Choice {
		switch {
		case seen[k] == nil:
		case named == "":
			named = k
		default:
			d.Fail(seen[k], "keep one of aws, google and azure", "redis.identity.%s: redis.identity.%s is there already", k, named)
		}
	}
	if named == "" && (e.IsNull() || e.Value.Kind == yaml.MappingNode) {
		d.Fail(e.At, "give it one of aws, google and azure: {google: {}}", "redis.identity names no cloud")
	}
}

func (d *decoder) aws(e strict.Entry) {
	d.table.Redis.Identity.AWS = &AWS{Service: ElastiCache}
	d.complete(e, "cluster")
}

var regionForm = regexp.MustCompile(regions)

func (d *decoder) region(e strict.Entry) {
	if t := d.Text(e); t.OK() && !regionForm.MatchString(t.Value) {
		d.Bad(t, "", "not a region of AWS")
	} else {
		d.table.Redis.Identity.AWS.Region = t.Value
	}
}

// checkPassword looks for keys that contradict each other about who connects, and by which password.
func (d *decoder) checkPassword(seen map[string]*yaml.Node) {
	r := d.table.Redis
	named := ""
	for _, k := range passwords {
		switch {
		case !strict.Present(seen[k]):
		case named == "":
			named = k
		default:
			d.Fail(seen[k], "keep one of passwordFile, passwordCommand and identity", "redis.%s: redis.%s gives the password already", k, named)
		}
	}
	if seen["passwordRefresh"] != nil && seen["passwordCommand"] == nil {
		d.Fail(seen["passwordRefresh"], "", "redis.passwordRefresh needs passwordCommand")
	}
	u, err := url.Parse(r.URL)
	if err != nil || r.URL == "" && r.Sentinel == nil && r.Cluster == nil || r.URL == Embedded {
		return // it can be the URL of --redis that names the user
	}
	id := r.Identity
	if id != nil && (id.AWS != nil || id.Azure) && u.User.Username() == "" && !strict.Present(seen["username"]) {
		d.Fail(seen["identity"], "add username to redis: the user that the token is for", "redis.identity: redis.username is missing")
	}
}
