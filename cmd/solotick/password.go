package main

import (
	"cmp"
	"context"
	"log/slog"
	"os"
	"time"

	"github.com/solotick/solotick/config"
	"github.com/solotick/solotick/internal/credentials"
	"github.com/solotick/solotick/internal/identity"
	"github.com/solotick/solotick/internal/rds"
	"github.com/solotick/solotick/sidecar/execute/command"
)

// password returns the password of a user as the table says where to get it, and nil if the table does not say. A
// command that runs for it ends with ctx, and is waited for as long as patience says.
func password(ctx context.Context, c config.Redis, user string, patience time.Duration,
	log *slog.Logger) *rds.Password {
	failed := func(err error) { log.Warn("cannot get the password of Redis", "err", err) }
	if c.PasswordFile != "" {
		file := credentials.Password(c.PasswordFile, failed)
		return rds.PasswordOfFile(user, func() (string, error) {
			// A password that is half written need not be waited for: Redis refuses it, and the file is read again.
			text, err := file.Now()
			return text, passwordError("passwordFile", err)
		}, failed)
	}
	key, get := passwordSource(c, user)
	if get == nil {
		return nil
	}
	return rds.NewPassword(ctx, user, func(ctx context.Context) (string, time.Duration, error) {
		text, again, err := get(ctx)
		return text, again, passwordError(key, err)
	}, patience, failed)
}

func passwordError(key string, err error) error {
	if err == nil {
		return nil
	}
	return &rds.PasswordError{Key: key, Err: err}
}

// passwordSource returns what gets the password, and the table's key for it; nil if neither a command nor a cloud does.
func passwordSource(c config.Redis, user string) (key string, get rds.PasswordSource) {
	id, token := c.Identity, identity.Azure
	switch {
	case len(c.PasswordCommand) > 0:
		again := cmp.Or(c.PasswordRefresh, config.DefaultPasswordRefresh)
		return "passwordCommand", func(ctx context.Context) (string, time.Duration, error) {
			line, err := command.FirstLine(ctx, c.PasswordCommand, os.Environ())
			return line, again, err
		}
	case id == nil:
		return "", nil
	case id.AWS != nil:
		aws := identity.AWS{Service: "elasticache", Cluster: id.AWS.Cluster, Region: id.AWS.Region, User: user,
			Serverless: id.AWS.Service == config.ElastiCacheServerless}
		if id.AWS.Service == config.MemoryDB {
			aws.Service = "memorydb"
		}
		token = aws.Token
	case id.Google:
		token = identity.Google
	}
	return "identity", func(ctx context.Context) (string, time.Duration, error) { return token(ctx, os.Getenv) }
}
