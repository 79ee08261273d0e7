package main

import (
	"crypto/tls"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/solotick/solotick/config"
	"github.com/solotick/solotick/internal/diagnosis"
)

func TestFilesThatTheTableNamesAreReadToABound(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "secret")
	for text, want := range map[string]string{"pa ss\r\n": "pa ss", "": "",
		strings.Repeat("x", maxPassword): strings.Repeat("x", maxPassword)} {
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if got, err := readPassword(file); got != want || err != nil {
			t.Errorf("%d bytes: %d bytes, %v", len(text), len(got), err)
		}
	}
	const endless, says = "/dev/zero", "read /dev/zero: it is larger than "
	if _, err := readPassword(endless); err == nil || !strings.Contains(err.Error(), says+"64 KiB") {
		t.Errorf("a password without end: %v", err)
	}
	_, err := readPassword(endless)
	if d := diagnosis.Of(err); d.Says != "cannot be used" || !strings.Contains(d.Hint, "redis.passwordFile") {
		t.Errorf("of a Redis whose password is without end it is said: %+v", d)
	}
	for _, c := range []config.TLS{{CAFile: endless}, {CertFile: endless, KeyFile: endless}} {
		if _, err := tlsConfig(&c, &tls.Config{}); err == nil || !strings.Contains(err.Error(), says+"4096 KiB") {
			t.Errorf("%+v: %v", c, err)
		}
	}
}
