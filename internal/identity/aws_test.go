package identity

import (
	"encoding/json"
	"net/url"
	"os"
	"strings"
	"testing"
	"time"
)

// TestTokensOfAWSAreThoseOfItsOwnLibrary compares tokens with those that testdata/aws.py got from botocore. The order of
// a query's parameters is not signed, and botocore leaves it as it is.
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

func sorted(t *testing.T, token string) string {
	t.Helper()
	host, query, found := strings.Cut(token, "/?")
	q, err := url.ParseQuery(query)
	if !found || err != nil || strings.Contains(query, "+") {
		t.Fatal(token, err)
	}
	return host + "/?" + q.Encode()
}
