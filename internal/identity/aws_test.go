package identity

import (
	"encoding/json"
	"net/url"
	"os"
	"strings"
	"testing"
	"time"
)

// TestTokensOfAWSAreThoseOfItsOwnLibrary compares tokens with those that testdata/aws.py got from botocore. The order
// of a query's parameters is not signed, and botocore leaves it as it is.
func TestTokensOfAWSAreThoseOfItsOwnLibrary(t *testing.T) {
	data, err := os.ReadFile("testdata/aws.json")
	if err != nil {
		t.Fatal(err)
	}
	var file struct {
		Vectors []struct {
			Key    struct{ ID, Secret, Session string }
			Cache  AWS
			Moment time.Time
			Token  string
		}
	}
	if err := json.Unmarshal(data, &file); err != nil || len(file.Vectors) < 18 {
		t.Fatal(len(file.Vectors), err)
	}
	for _, v := range file.Vectors {
		got := v.Cache.sign(awsKeys{v.Key.ID, v.Key.Secret, v.Key.Session}, v.Moment)
		if sorted(t, got) != sorted(t, v.Token) {
			t.Errorf("%+v\n got %s\nwant %s", v.Cache, got, v.Token)
		}
	}
}

// AWS keeps the names of caches in small letters, and checks the signature of the host.
func TestTheNameOfACacheIsSignedInSmallLetters(t *testing.T) {
	keys, now := awsKeys{ID: "AKIDEXAMPLE", Secret: canary}, time.Date(2026, 11, 23, 10, 0, 0, 0, time.UTC)
	token := func(cluster string) string {
		return AWS{Service: "elasticache", Cluster: cluster, Region: "eu-central-1", User: "solotick"}.sign(keys, now)
	}
	if got, want := token("Billing-EU"), token("billing-eu"); got != want || !strings.HasPrefix(got, "billing-eu/?") {
		t.Errorf("got %s\nwant %s", got, want)
	}
}

// Keys come from where the variables say, with all that they have.
func TestTheKeysOfAWSAreThoseOfItsVariables(t *testing.T) {
	e := fake(t)
	none := "/no/such/file"
	for what, c := range map[string]struct {
		variables  map[string]string
		body       string
		asked      string // "" = nothing
		token, err string // what they hold; "" = there is none
	}{
		"with a session": {map[string]string{"AWS_ACCESS_KEY_ID": "AKIDEXAMPLE", "AWS_SECRET_ACCESS_KEY": canary, "AWS_SESSION_TOKEN": "session"}, "", "",
			"&X-Amz-Security-Token=session&", ""},
		"of a container with a token": {map[string]string{"AWS_CONTAINER_CREDENTIALS_FULL_URI": e.URL + "/keys", "AWS_CONTAINER_AUTHORIZATION_TOKEN": "Basic x"},
			`{"AccessKeyId": "AKIDOTHER", "SecretAccessKey": "s"}`, "GET /keys Basic x ", "&X-Amz-Credential=AKIDOTHER%2F", ""},
		"of a container whose file is not there": {map[string]string{"AWS_CONTAINER_CREDENTIALS_FULL_URI": e.URL + "/keys",
			"AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE": none}, "", "", "", none},
		"without an id": {map[string]string{"AWS_CONTAINER_CREDENTIALS_FULL_URI": e.URL + "/keys"},
			`{"SecretAccessKey": "` + canary + `"}`, "GET /keys  ", "", "lack a key"},
		"of a role, by a name": {map[string]string{"AWS_ENDPOINT_URL_STS": e.URL, "AWS_WEB_IDENTITY_TOKEN_FILE": tokenFile(t, "web"), "AWS_ROLE_ARN": "arn",
			"AWS_ROLE_SESSION_NAME": "billing"}, "<AccessKeyId>AKIDROLE</AccessKeyId><SecretAccessKey>s</SecretAccessKey>",
			"POST /  Action=AssumeRoleWithWebIdentity&RoleArn=arn&RoleSessionName=billing&Version=2011-06-15&WebIdentityToken=web",
			"&X-Amz-Credential=AKIDROLE%2F", ""},
	} {
		e.asked, e.body = "", c.body
		token, _, err := AWS{Service: "elasticache", Cluster: "billing", Region: "eu-central-1"}.Token(t.Context(), given(c.variables))
		if (token == "") != (c.token == "") || !strings.Contains(token, c.token) || (err == nil) != (c.err == "") || err != nil && !strings.Contains(err.Error(), c.err) {
			t.Errorf("%s: %q, %v", what, token, err)
		}
		if e.asked != c.asked {
			t.Errorf("%s: asked %q, want %q", what, e.asked, c.asked)
		}
	}
}

func sorted(t *testing.T, token string) string {
	t.Helper()
	host, query, found := strings.Cut(token, "/?")
	q, err := url.ParseQuery(query)
	if !found || err != nil || strings.Contains(query, "+") {
		t.Fatal(token, err)
	}
	return host + "/?" + q.Encode()
}
