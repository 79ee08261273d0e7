package credentials

import (
	"encoding/base64"
	"strings"
	"testing"
)

// The secret and the signature are those of the reference test of Standard Webhooks; other is one more secret.
const (
	whsec = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
	other = "whsec_c29tZSBvdGhlciBzZWNyZXQgb2YgMjQgYg=="
)

func TestASignatureIsThatOfStandardWebhooks(t *testing.T) {
	const want = "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="
	sign := func(secrets string) (string, error) {
		s, err := ParseSecrets(secrets)
		return s.Sign("msg_p5jXN8AQM9LWM0D4loKWxJek", "1614265330", `{"test": 2432232314}`), err
	}
	if got, err := sign(whsec); got != want || err != nil {
		t.Errorf("%s, %v, want %s", got, err, want)
	}
	if got, err := sign(whsec + "\n" + other + "\n"); !strings.HasPrefix(got, want+" v1,") || err != nil {
		t.Errorf("with two secrets: %s, %v", got, err)
	}
	for _, bad := range []string{"", "\n", "MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw", "whsec_s3cret", "whsec_c2hvcnQ=", whsec + " s3cret",
		"whsec_" + strings.Repeat("AAAA", 22)} {
		if got, err := sign(bad); err == nil || got != "" || strings.Contains(err.Error(), "s3cret") {
			t.Errorf("%q: %s, %v", bad, got, err)
		}
	}
}

func TestASecretHas24To64Bytes(t *testing.T) {
	for size, good := range map[int]bool{23: false, 24: true, 64: true, 65: false} {
		key := strings.Repeat("k", size)
		got, err := ParseSecrets("whsec_" + base64.StdEncoding.EncodeToString([]byte(key)))
		if (err == nil) != good || good && string(got[0]) != key {
			t.Errorf("%d bytes: %q, %v", size, got, err)
		}
	}
}
