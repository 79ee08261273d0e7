package main

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/solotick/solotick/internal/redistest"
)

// everySecond is a table with one job that tells what it finds in its environment; %s is the mapping under redis.
const everySecond = `
service: shop
redis: {timeout: 2s%s}
listen: "127.0.0.1:0"
jobs:
  - name: job
    schedule: "@every 1s"
    exec: {command: ["sh", "-c", "echo marker=$MARKER url=$SOLOTICK_REDIS_URL"]}
`

// runsOnce starts a replica, waits for a run and stops it.
func runsOnce(t *testing.T, table string, env []string, args ...string) *replica {
	t.Helper()
	r := launch(t, table, env, args...)
	r.await("finished", "outcome", "succeeded")
	r.stop()
	return r
}

func TestARedisNamedByTheFlagIsUsed(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	// The table's own is nowhere, and so is the variable's.
	runsOnce(t, fmt.Sprintf(everySecond, ", url: redis://127.0.0.1:1/0"), []string{"SOLOTICK_REDIS_URL=redis://127.0.0.1:2/0"},
		"--redis", s.URL())
}

func TestARedisNamedByTheEnvironmentIsUsedAndNotToldToCommands(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t, "--requirepass", "hunter2")
	url := fmt.Sprintf("redis://:hunter2@%s/3", s.Addr())
	r := runsOnce(t, fmt.Sprintf(everySecond, ""), []string{"SOLOTICK_REDIS_URL=" + url, "MARKER=mine"})
	r.await("marker=mine url=")

	c := redis.NewClient(&redis.Options{Addr: s.Addr(), Password: "hunter2", DB: 3})
	defer c.Close()
	if n, err := c.Exists(context.Background(), "solotick:{shop}:job:job").Result(); n != 1 || err != nil {
		t.Errorf("the job's ledger is not in database 3: %d, %v", n, err)
	}
}

func TestAPasswordFileAndAUserAreUsed(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t, "--user", "app", "on", ">hunter2", "~*", "&*", "+@all", "--user", "default", "off")
	file := filepath.Join(t.TempDir(), "password")
	if err := os.WriteFile(file, []byte("hunter2\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	runsOnce(t, fmt.Sprintf(everySecond, fmt.Sprintf(", url: %q, username: app, passwordFile: %q", s.URL(), file)), nil)
}

func TestAUnixSocketIsUsed(t *testing.T) {
	t.Parallel()
	dir, err := os.MkdirTemp("", "sock") // the path of a socket must be short
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(dir)
	socket := filepath.Join(dir, "s")
	s := redistest.Start(t, "--unixsocket", socket)
	runsOnce(t, fmt.Sprintf(everySecond, fmt.Sprintf(`, url: "unix://%s?db=2"`, socket)), nil)

	c := redis.NewClient(&redis.Options{Addr: s.Addr(), DB: 2})
	defer c.Close()
	if n, err := c.Exists(context.Background(), "solotick:{shop}:job:job").Result(); n != 1 || err != nil {
		t.Errorf("the job's ledger is not in database 2: %d, %v", n, err)
	}
}

func TestTLSIsUsedWithACAAndAClientCertificateOfTheTable(t *testing.T) {
	t.Parallel()
	ca := newCA(t)
	_, port, err := net.SplitHostPort(freeAddr(t))
	if err != nil {
		t.Fatal(err)
	}
	serverCert, serverKey := ca.issue("redis.internal")
	clientCert, clientKey := ca.issue("client")
	redistest.Start(t, "--tls-port", port, "--tls-cert-file", serverCert, "--tls-key-file", serverKey,
		"--tls-ca-cert-file", ca.file, "--tls-auth-clients", "yes")
	table := func(tls string) string {
		return fmt.Sprintf(everySecond, fmt.Sprintf(`, url: "rediss://127.0.0.1:%s/0", tls: {%s}`, port, tls))
	}
	whole := fmt.Sprintf("caFile: %q, certFile: %q, keyFile: %q, serverName: redis.internal", ca.file, clientCert, clientKey)
	runsOnce(t, table(whole), nil)

	for name, tls := range map[string]string{
		"without the CA":                 fmt.Sprintf("certFile: %q, keyFile: %q, serverName: redis.internal", clientCert, clientKey),
		"with another name":              fmt.Sprintf("caFile: %q, certFile: %q, keyFile: %q", ca.file, clientCert, clientKey),
		"without the client certificate": fmt.Sprintf("caFile: %q, serverName: redis.internal", ca.file),
	} {
		t.Run(name, func(t *testing.T) {
			r := launch(t, table(tls), nil)
			r.await("Redis does not answer")
			r.stop()
		})
	}
}

// authority signs certificates for a test, as files.
type authority struct {
	t    *testing.T
	dir  string
	file string
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
}

func newCA(t *testing.T) *authority {
	a := &authority{t: t, dir: t.TempDir()}
	a.cert = &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "CA of a test"}, IsCA: true,
		BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour)}
	a.file, _ = a.sign("ca", a.cert)
	return a
}

// issue returns the files of a certificate for a name or an address, and of its key.
func (a *authority) issue(name string) (cert, key string) {
	a.t.Helper()
	c := &x509.Certificate{SerialNumber: big.NewInt(2), Subject: pkix.Name{CommonName: name}, DNSNames: []string{name},
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
		NotBefore:   time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour)}
	if ip := net.ParseIP(name); ip != nil {
		c.DNSNames, c.IPAddresses = nil, []net.IP{ip}
	}
	return a.sign(name, c)
}

func (a *authority) sign(name string, c *x509.Certificate) (certFile, keyFile string) {
	a.t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		a.t.Fatal(err)
	}
	if c == a.cert {
		a.key = key
	}
	der, err := x509.CreateCertificate(rand.Reader, c, a.cert, &key.PublicKey, a.key)
	if err != nil {
		a.t.Fatal(err)
	}
	secret, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		a.t.Fatal(err)
	}
	return a.write(name+".crt", "CERTIFICATE", der), a.write(name+".key", "EC PRIVATE KEY", secret)
}

func (a *authority) write(name, kind string, der []byte) string {
	a.t.Helper()
	path := filepath.Join(a.dir, name)
	if err := os.WriteFile(path, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}), 0o600); err != nil {
		a.t.Fatal(err)
	}
	return path
}
