package identity

import (
	"bytes"
	"cmp"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"time"
)

// AWS names a Redis that checks tokens of IAM.
type AWS struct {
	Service    string // elasticache or memorydb
	Serverless bool
	Cluster    string
	Region     string // "" = AWS_REGION
	User       string
}

const (
	// awsLife is how long AWS takes a token for a new connection, in seconds.
	awsLife = "900"
	// awsAgain is when a token is made anew. AWS ends a connection after 12 hours unless it authenticates again.
	awsAgain = 10 * time.Minute
)

// Token signs a token with the credentials that AWS gives this process.
func (a AWS) Token(ctx context.Context, env Environment) (token string, again time.Duration, err error) {
	if a.Region = cmp.Or(a.Region, env("AWS_REGION"), env("AWS_DEFAULT_REGION")); a.Region == "" {
		return "", 0, errors.New("the variable AWS_REGION is not set")
	}
	keys, err := a.keys(ctx, env)
	if err != nil {
		return "", 0, err
	}
	return a.sign(keys, time.Now()), awsAgain, nil
}

// awsKeys sign requests. An endpoint for containers answers with them in JSON.
type awsKeys struct {
	ID      string `json:"AccessKeyId"`
	Secret  string `json:"SecretAccessKey"`
	Session string `json:"Token"`
}

// keys looks for credentials where the SDKs of AWS look, in the same order: in the environment, behind the token of a
// service account (IRSA), and at the endpoint for containers (EKS Pod Identity, ECS).
func (a AWS) keys(ctx context.Context, env Environment) (k awsKeys, err error) {
	full, relative := env("AWS_CONTAINER_CREDENTIALS_FULL_URI"), env("AWS_CONTAINER_CREDENTIALS_RELATIVE_URI")
	switch {
	case env("AWS_ACCESS_KEY_ID") != "":
		k = awsKeys{env("AWS_ACCESS_KEY_ID"), env("AWS_SECRET_ACCESS_KEY"), env("AWS_SESSION_TOKEN")}
	case env("AWS_WEB_IDENTITY_TOKEN_FILE") != "":
		k, err = a.assume(ctx, env)
	case relative != "":
		k, err = ofContainer(ctx, env, "http://169.254.170.2"+relative)
	case full != "":
		k, err = ofContainer(ctx, env, full)
	default:
		return k, errors.New("AWS gives this process no credentials: it has none of the variables " +
			"AWS_WEB_IDENTITY_TOKEN_FILE, AWS_CONTAINER_CREDENTIALS_FULL_URI and AWS_ACCESS_KEY_ID")
	}
	if err == nil && (k.ID == "" || k.Secret == "") {
		err = errors.New("the credentials that AWS gives this process lack a key")
	}
	return k, err
}

// assume exchanges the pod's token for keys of a role.
func (a AWS) assume(ctx context.Context, env Environment) (k awsKeys, err error) {
	given, err := env.need("AWS_WEB_IDENTITY_TOKEN_FILE", "AWS_ROLE_ARN")
	if err != nil {
		return k, err
	}
	token, err := readToken(given[0])
	if err != nil {
		return k, err
	}
	domain := ".amazonaws.com"
	if strings.HasPrefix(a.Region, "cn-") {
		domain += ".cn"
	}
	body, err := post(ctx, cmp.Or(env("AWS_ENDPOINT_URL_STS"), "https://sts."+a.Region+domain)+"/", url.Values{
		"Action":           {"AssumeRoleWithWebIdentity"},
		"Version":          {"2011-06-15"},
		"RoleArn":          {given[1]},
		"RoleSessionName":  {cmp.Or(env("AWS_ROLE_SESSION_NAME"), "solotick")},
		"WebIdentityToken": {token},
	})
	return awsKeys{element(body, "AccessKeyId"), element(body, "SecretAccessKey"), element(body, "SessionToken")}, err
}

// element returns the text of an element in an answer of STS. The texts that are looked for have no character that XML
// would escape.
func element(body []byte, name string) string {
	_, rest, _ := bytes.Cut(body, []byte("<"+name+">"))
	text, _, _ := bytes.Cut(rest, []byte("</"+name+">"))
	return string(text)
}

func ofContainer(ctx context.Context, env Environment, at string) (k awsKeys, err error) {
	authorization := env("AWS_CONTAINER_AUTHORIZATION_TOKEN")
	if file := env("AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE"); file != "" {
		if authorization, err = readToken(file); err != nil {
			return k, err
		}
	}
	body, err := get(ctx, at, "Authorization", authorization)
	if err == nil && json.Unmarshal(body, &k) != nil {
		err = errors.New("the endpoint for containers does not answer with credentials")
	}
	return k, err
}

// sign makes a token: a request to connect, presigned with version 4 of AWS' signatures, without its scheme.
func (a AWS) sign(k awsKeys, now time.Time) string {
	moment := now.UTC().Format("20060102T150405Z")
	day := moment[:8]
	scope := day + "/" + a.Region + "/" + a.Service + "/aws4_request"
	q := url.Values{
		"Action":              {"connect"},
		"User":                {a.User},
		"X-Amz-Algorithm":     {"AWS4-HMAC-SHA256"},
		"X-Amz-Credential":    {k.ID + "/" + scope},
		"X-Amz-Date":          {moment},
		"X-Amz-Expires":       {awsLife},
		"X-Amz-SignedHeaders": {"host"},
	}
	if a.Serverless {
		q.Set("ResourceType", "ServerlessCache")
	}
	if k.Session != "" {
		q.Set("X-Amz-Security-Token", k.Session)
	}
	host := strings.ToLower(a.Cluster)                  // AWS keeps names in this form
	query := strings.ReplaceAll(q.Encode(), "+", "%20") // sorted
	request := strings.Join([]string{"GET", "/", query, "host:" + host, "", "host", digest("")}, "\n")
	toSign := strings.Join([]string{"AWS4-HMAC-SHA256", moment, scope, digest(request)}, "\n")
	key := []byte("AWS4" + k.Secret)
	for _, part := range []string{day, a.Region, a.Service, "aws4_request"} {
		key = mac(key, part)
	}
	return host + "/?" + query + "&X-Amz-Signature=" + hex.EncodeToString(mac(key, toSign))
}

func digest(text string) string { return fmt.Sprintf("%x", sha256.Sum256([]byte(text))) }

func mac(key []byte, text string) []byte {
	h := hmac.New(sha256.New, key)
	h.Write([]byte(text))
	return h.Sum(nil)
}
