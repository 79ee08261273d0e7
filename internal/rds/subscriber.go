package rds

import (
	"context"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/auth"
)

// perConnect asks a provider for the credentials of one connection, which is told of no later ones.
func perConnect(from auth.StreamingCredentialsProvider) func(context.Context) (user, password string, err error) {
	return func(context.Context) (string, string, error) {
		now, stop, err := from.Subscribe(&deaf{})
		if err != nil {
			return "", "", err
		}
		user, password := now.BasicAuth()
		return user, password, stop()
	}
}

// deaf hears of no new credentials. Each is another, by its address.
type deaf struct{ _ byte }

func (*deaf) OnNext(auth.Credentials) {}
func (*deaf) OnError(error)           {}

// subscriber returns the client that subscribes in place of a given one: the client itself, unless it has a
// StreamingCredentialsProvider. Then go-redis would keep each connection of a subscription (67 kB) in memory for ever,
// also those that Redis has refused, and would never authenticate them again. So another client, whose connections are
// those of subscriptions, gets the password at each connect. A server that ends such a connection when its password is
// over costs no more than a reconnect: nudges that are missed are looked for.
func subscriber(client redis.UniversalClient) redis.UniversalClient {
	switch c := client.(type) {
	case *redis.Client:
		if o := *c.Options(); o.StreamingCredentialsProvider != nil {
			o.CredentialsProviderContext = perConnect(o.StreamingCredentialsProvider)
			o.StreamingCredentialsProvider = nil
			o.MaxRetries = -1 // the client's options say 0 for it, which would mean 3 here
			return redis.NewClient(&o)
		}
	case *redis.ClusterClient:
		if o := *c.Options(); o.StreamingCredentialsProvider != nil {
			o.CredentialsProviderContext = perConnect(o.StreamingCredentialsProvider)
			o.StreamingCredentialsProvider = nil
			o.MaxRetries = -1
			return redis.NewClusterClient(&o)
		}
	}
	return client
}
