package redisworld

import (
	"context"
	"flag"
	"testing"

	"github.com/redis/go-redis/v9"
	"go.uber.org/goleak"
)

// Main runs the tests of a package, and demands that no goroutine outlives them.
func Main(m *testing.M) {
	redis.SetLogger(quiet{})
	_ = flag.Set("test.parallel", "12") // the cases on a real Redis wait for it; they do not compute
	goleak.VerifyTestMain(m)
}

// quiet drops what the client logs of connections that the cases cut.
type quiet struct{}

// Printf drops a line.
func (quiet) Printf(context.Context, string, ...any) {}
