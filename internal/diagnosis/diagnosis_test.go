package diagnosis

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strings"
	"syscall"
	"testing"

	"github.com/solotick/solotick/internal/rds"
	"github.com/solotick/solotick/internal/resp"
)

// answer is an error of Redis itself, as the client makes one.
type answer string

func (a answer) Error() string { return string(a) }
func (answer) RedisError()     {}

func TestWhatIsWrongWithRedis(t *testing.T) {
	handshake := func(err error) error {
		return &net.OpError{Op: "dial", Net: "tcp", Err: fmt.Errorf("%w with redis:6379: %w", resp.ErrHandshake, err)}
	}
	_, missing := os.Open("/nowhere/password")
	for _, c := range []struct {
		err        error
		says, hint string // the hint has that part
	}{
		{answer("NOAUTH Authentication required."), "asks for a password", "redis.passwordFile"},
		{fmt.Errorf("failed to authenticate: %w", answer("WRONGPASS invalid")), "refuses the user or the password", "redis.username"},
		{answer("NOPERM User x has no permissions"), "forbids its user a command or a key", "docs/redis.md"},
		{answer("ERR Error running script (call to f_1): @user_script:2: @user_script: 2: The user executing the script can't run this command or subcommand"),
			"forbids its user a command or a key", "docs/redis.md"}, // 6.2
		{answer("ERR The user executing the script can't run this command or subcommand script: 1, on @user_script:2."),
			"forbids its user a command or a key", "docs/redis.md"}, // 7.0
		{answer("ERR ACL failure in script: User x has no permissions to run the 'zrem' command script: 1, on @user_script:2."),
			"forbids its user a command or a key", "docs/redis.md"}, // since 7.2, and Valkey
		{answer("ERR DB index is out of range"), "has no database with that number", "/0"},
		{answer("LOADING Redis is loading"), "is still loading its data", ""},
		{answer("MOVED 1 b:2"), "is one node of a Cluster", "redis.cluster.addrs"},
		{answer("READONLY You can't write"), "is a replica, which takes no claims", "redis.sentinel"},
		{answer("BUSY Redis is busy"), "answers with an error", ""},
		{&resp.Error{Said: "ERR max number of clients reached"}, "has reached its limit of clients", "maxclients"},
		{&resp.Error{Addr: "a:1", What: "an alert of TLS", TLS: true}, "ends the connection", "rediss://"},
		{&resp.Error{Addr: "a:1", What: "an array of 5 elements"}, "sends answers that no Redis sends", "another program"},
		{fmt.Errorf("failed to load: %w", missing), "cannot be used", "redis.tls"},
		{&net.OpError{Op: "dial", Err: &rds.PasswordError{Key: "passwordFile", Err: missing}}, "cannot be used", "redis.passwordFile"},
		{&net.OpError{Op: "dial", Err: &rds.PasswordError{Key: "passwordCommand", Err: context.DeadlineExceeded}}, "cannot be used", "redis.passwordCommand"},
		{handshake(tls.RecordHeaderError{Msg: "first record"}), "and this process do not agree on TLS", "redis:// in place"},
		{handshake(context.DeadlineExceeded), "and this process do not agree on TLS", "redis:// in place"},
		{handshake(x509.UnknownAuthorityError{}), "and this process do not agree on TLS", "redis.tls.caFile"},
		{handshake(x509.HostnameError{Certificate: &x509.Certificate{}, Host: "h"}), "and this process do not agree on TLS", "serverName"},
		{errors.New("remote error: tls: certificate required"), "and this process do not agree on TLS", "redis.tls.certFile"},
		{&net.OpError{Op: "dial", Err: &net.DNSError{IsNotFound: true}}, "does not answer", "name of the host"},
		{&net.OpError{Op: "dial", Err: os.NewSyscallError("connect", syscall.ECONNREFUSED)}, "does not answer", "whether Redis runs"},
		{&net.OpError{Op: "dial", Err: os.NewSyscallError("connect", syscall.EACCES)}, "does not answer", "may not open that socket"},
		{&net.OpError{Op: "read", Err: os.ErrDeadlineExceeded}, "does not answer", "redis.timeout"},
		{context.DeadlineExceeded, "does not answer", "redis.timeout"},
		{io.EOF, "does not answer", ""},
	} {
		d := Of(fmt.Errorf("asking: %w", c.err))
		if d.Says != c.says || !strings.Contains(d.Hint, c.hint) || c.hint == "" && d.Hint != "" || d.Reason == "" {
			t.Errorf("%v: %+v, want %q, hint with %q", c.err, d, c.says, c.hint)
		}
	}
}

func TestTheReasonIsOneShortLine(t *testing.T) {
	for _, err := range []error{answer("ERR \x1b[2J\r\nhint: " + strings.Repeat("ä", 5000)), errors.New(strings.Repeat("x\n", 5000))} {
		r := Of(err).Reason
		if n := len([]rune(r)); n != maxReason || strings.ContainsAny(r, "\x1b\r\n") {
			t.Errorf("%d characters: %q", n, r)
		}
	}
}
