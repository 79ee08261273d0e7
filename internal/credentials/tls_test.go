package credentials

import (
	"crypto/tls"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/solotick/solotick/config"
	"github.com/solotick/solotick/internal/testing/redistest"
)

func contentsOf(t *testing.T, path string) string {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// A certificate and its key are two files, and one of them is always replaced first.
func TestACertificateIsReplacedTogetherWithItsKey(t *testing.T) {
	ca, dir := redistest.NewCA(t), t.TempDir()
	certFile, keyFile := filepath.Join(dir, "crt"), filepath.Join(dir, "key")
	oldCert, oldKey := ca.Issue("old")
	newCert, newKey := ca.Issue("new")
	warned := 0
	client := NewTLS(config.TLS{CertFile: certFile, KeyFile: keyFile}, func(err error) {
		if warned++; !strings.HasPrefix(err.Error(), certFile+" and "+keyFile+": ") {
			t.Error(err)
		}
	})
	shows := func(want string) {
		t.Helper()
		c, err := client.Config(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		pair, err := c.GetClientCertificate(&tls.CertificateRequestInfo{})
		if err != nil || pair.Leaf.Subject.CommonName != want {
			t.Errorf("shows %v, %v, want %s", pair.Leaf, err, want)
		}
	}
	if _, err := client.Config(t.Context()); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("without the files: %v", err)
	}
	written(t, certFile, contentsOf(t, oldCert), time.Hour)
	written(t, keyFile, contentsOf(t, oldKey), time.Hour)
	shows("old")
	written(t, certFile, contentsOf(t, newCert), time.Hour)
	shows("old")
	shows("old")
	written(t, keyFile, contentsOf(t, newKey), time.Hour)
	shows("new")
	if warned != 1 {
		t.Errorf("%d warnings", warned)
	}
}

func TestABundleThatEndsWithinACertificateIsNotTrusted(t *testing.T) {
	file := filepath.Join(t.TempDir(), "ca")
	one, two := contentsOf(t, redistest.NewCA(t).File), contentsOf(t, redistest.NewCA(t).File)
	warned := 0
	client := NewTLS(config.TLS{CAFile: file}, func(error) { warned++ })
	written(t, file, one, time.Hour)
	first, err := client.Config(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, half := range []string{two + one[:len(one)/2], two[:len(two)-9], "no certificate", ""} {
		written(t, file, half, time.Hour)
		if c, err := client.Config(t.Context()); err != nil || !c.RootCAs.Equal(first.RootCAs) {
			t.Errorf("%d bytes: %v", len(half), err)
		}
	}
	if warned != 1 {
		t.Errorf("%d warnings", warned)
	}
	written(t, file, "# roots\n"+one+two+"\n# end\n", time.Hour)
	if c, err := client.Config(t.Context()); err != nil || c.RootCAs.Equal(first.RootCAs) {
		t.Errorf("of two certificates: %v", err)
	}
}

func TestTheServersNameIsThatOfTheTable(t *testing.T) {
	for _, name := range []string{"", "redis.internal"} {
		c, err := NewTLS(config.TLS{ServerName: name}, nil).Config(t.Context())
		if err != nil || c.ServerName != name || c.MinVersion != tls.VersionTLS12 || c.RootCAs != nil || c.GetClientCertificate != nil {
			t.Errorf("name %q: %+v, %v", name, c, err)
		}
	}
}
