// Package diagnosis says in plain words why a request to Redis failed, and what to do about it. A Redis that asks for a
// password does answer, and a user who reads "Redis does not answer" looks for the fault in the network.
package diagnosis

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"io/fs"
	"net"
	"slices"
	"strings"
	"syscall"

	"github.com/redis/go-redis/v9"

	"github.com/solotick/solotick/internal/rds"
	"github.com/solotick/solotick/internal/resp"
	"github.com/solotick/solotick/internal/text"
)

// Diagnosis is what is wrong with Redis.
type Diagnosis struct {
	Says   string // the end of a sentence that begins with Redis: "does not answer"
	Reason string // the error itself: one printable line of at most maxReason characters
	Hint   string // what to do; "" = nothing that is known
}

// maxReason bounds how much of an error is repeated: Redis, or a program that pretends to be one, may send 64 KiB.
const maxReason = 300

type refusal struct{ begins, says, hint string }

// refusals are the errors that Redis answers, by their beginning. The last one is any other.
var refusals = []refusal{
	{"NOAUTH", "asks for a password", "set redis.passwordFile in the table, and redis.username unless it is default"},
	{"WRONGPASS", "refuses the user or the password",
		"check redis.username, and in the table redis.passwordFile, passwordCommand or identity, or the URL"},
	{"NOPERM", "forbids its user a command or a key", "give the user the rights that docs/redis.md lists"},
	{"DENIED", "is in protected mode", "set requirepass in redis.conf, and redis.passwordFile in the table"},
	{"ERR DB index", "has no database with that number", "end the URL in /0, or raise databases in redis.conf"},
	{"ERR invalid DB index", "has no database with that number", "end the URL in /0, or raise databases in redis.conf"},
	{"ERR SELECT is not allowed", "is a Cluster, which only has database 0", "name its nodes in redis.cluster.addrs"},
	{"ERR max number of clients", "has reached its limit of clients", "raise maxclients in redis.conf"},
	{"ERR unknown command 'sentinel'", "is not a Sentinel", "name Sentinels in redis.sentinel.addrs: often port 26379"},
	{"ERR This instance has cluster support", "is not a Cluster", "name it in redis.url in place of redis.cluster"},
	{"MOVED", "is one node of a Cluster", "name its nodes in redis.cluster.addrs"},
	{"CLUSTERDOWN", "is a Cluster that is down", "redis-cli --cluster check HOST:PORT shows why"},
	{"LOADING", "is still loading its data", ""},
	{"READONLY", "is a replica, which takes no claims", "name the master, or its Sentinels in redis.sentinel"},
	{"MISCONF", "refuses writes, since it could not save its data", "see its log: mostly a full or read-only disk"},
	{"OOM", "refuses writes, since its memory is full", "raise maxmemory, or give Solotick a Redis of its own"},
	{"NOREPLICAS", "refuses writes, since too few replicas have its data", "mend them, or lower min-replicas-to-write"},
	{"OLDKEYS", "holds keys of a version before 0.1.0", "delete the service's keys, or give it another name"},
	{"MASTERDOWN", "is a replica without its master", "name the master, or its Sentinels in redis.sentinel"},
	{"", "answers with an error", ""},
}

// passwordHints has what to do when there is no password, by the key that says where to get it.
var passwordHints = map[string]string{
	"passwordFile":    "redis.passwordFile must name a file with the password, which this process may read",
	"passwordCommand": "run the command of redis.passwordCommand by hand, as the user of this process",
	"identity":        "docs/redis.md lists what the cloud must give to this process",
}

// Of says what an error of a request to Redis means.
func Of(err error) Diagnosis {
	var (
		said   redis.Error
		broken *resp.Error
		file   *fs.PathError
		secret *rds.PasswordError
	)
	switch {
	case errors.As(err, &said):
		return Refused(said.Error())
	case errors.As(err, &broken) && broken.Said != "":
		return Refused(broken.Said)
	case errors.As(err, &broken) && broken.TLS:
		return diagnosis("ends the connection", broken,
			"if that port takes TLS, write rediss:// in place of redis://; a proxy must answer HELLO")
	case errors.As(err, &broken):
		return diagnosis("sends answers that no Redis sends", broken,
			"check host and port: another program may listen there")
	case errors.As(err, &secret):
		return diagnosis("cannot be used", secret, passwordHints[secret.Key])
	case errors.As(err, &file):
		return diagnosis("cannot be used", file,
			"certFile and keyFile in redis.tls must name files that this process may read")
	case errors.Is(err, resp.ErrHandshake) || strings.Contains(err.Error(), "remote error: tls: "):
		return diagnosis("and this process do not agree on TLS", innermost(err), handshakeHint(err))
	}
	return diagnosis("does not answer", innermost(err), silenceHint(err))
}

func diagnosis(says string, reason error, hint string) Diagnosis {
	return Diagnosis{Says: says, Reason: oneLine(reason.Error()), Hint: hint}
}

// Refused says what an error that Redis answered means.
func Refused(said string) Diagnosis {
	begin := said
	if Forbidden(said) {
		begin = "NOPERM"
	}
	r := refusals[slices.IndexFunc(refusals, func(r refusal) bool { return strings.HasPrefix(begin, r.begins) })]
	return Diagnosis{Says: r.says, Reason: oneLine(said), Hint: r.hint}
}

// Forbidden reports whether an error that Redis answered says that its user may not do this. Of a command in a script,
// Redis up to 7.0 says it in other words than Redis since 7.2 and Valkey.
func Forbidden(said string) bool {
	return strings.HasPrefix(said, "NOPERM") || strings.Contains(said, "The user executing the script") ||
		strings.Contains(said, "ACL failure in script")
}

// innermost is the error of the network, if there is one: the error around it repeats the request.
func innermost(err error) error {
	if op, ok := errors.AsType[*net.OpError](err); ok {
		return op
	}
	return err
}

// handshakeHint is the hint for a TLS handshake that failed, and for a server that breaks the agreed protocol.
func handshakeHint(err error) string {
	var (
		record  tls.RecordHeaderError
		unknown x509.UnknownAuthorityError
		name    x509.HostnameError
	)
	switch {
	case errors.As(err, &record), errors.Is(err, context.DeadlineExceeded), errors.Is(err, io.EOF):
		return "if that port takes no TLS, write redis:// in place of rediss://"
	case errors.As(err, &unknown):
		return "name the certificate of Redis' CA in redis.tls.caFile"
	case errors.As(err, &name):
		return "set redis.tls.serverName to a name that is in Redis' certificate"
	case strings.Contains(err.Error(), "certificate"):
		return "Redis requires a client certificate: set redis.tls.certFile and keyFile"
	}
	return ""
}

func silenceHint(err error) string {
	var (
		unknown *net.DNSError
		late    net.Error
	)
	switch {
	case errors.As(err, &unknown) && unknown.IsNotFound:
		return "check the name of the host"
	case errors.Is(err, syscall.ECONNREFUSED), errors.Is(err, syscall.ENOENT):
		return "nothing listens there: check host and port, and whether Redis runs"
	case errors.Is(err, fs.ErrPermission):
		return "the user of this process may not open that socket"
	case errors.As(err, &late) && late.Timeout(), errors.Is(err, context.DeadlineExceeded):
		return "check the network, firewalls and NetworkPolicies included; if it is slow, raise redis.timeout"
	}
	return ""
}

// oneLine makes a printable line of a text from Redis, so that it cannot move a terminal's cursor or add lines to the
// output.
func oneLine(said string) string { return text.Cut(text.OneLine(said), maxReason) }
