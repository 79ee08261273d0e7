package main

import (
	"crypto/tls"
	"strings"
	"testing"

	"github.com/solotick/solotick/config"
	"github.com/solotick/solotick/internal/diagnosis"
)

func TestFilesThatTheTableNamesAreReadToABound(t *testing.T) {
	t.Parallel()
	const endless, says = "/dev/zero", "open /dev/zero: it is not a regular file"
	p := password(t.Context(), config.Redis{PasswordFile: endless}, "", 0, unlogged)
	_, _, err := p.Subscribe(nil)
	if err == nil || !strings.Contains(err.Error(), says) {
		t.Errorf("a password without end: %v", err)
	}
	if d := diagnosis.Of(err); d.Says != "cannot be used" || !strings.Contains(d.Hint, "redis.passwordFile") {
		t.Errorf("of a Redis whose password is without end it is said: %+v", d)
	}
	for _, c := range []config.TLS{{CAFile: endless}, {CertFile: endless, KeyFile: endless}} {
		if _, err := tlsConfig(&c, &tls.Config{}); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%+v: %v", c, err)
		}
	}
}

func TestATimerWithoutEndIsRefused(t *testing.T) {
	t.Parallel()
	if _, err := new(app).readSource("/dev/zero", "timer"); err == nil || err.Error() != "/dev/zero is larger than 64 KiB" {
		t.Errorf("error %v", err)
	}
}
