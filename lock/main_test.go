package lock_test

import (
	"testing"

	"github.com/solotick/solotick/internal/testing/redisworld"
)

const (
	job     = redisworld.Job
	lockKey = redisworld.LockKey
	ledger  = redisworld.Ledger
	running = redisworld.Running
	dueSet  = redisworld.DueSet
)

func TestMain(m *testing.M) { redisworld.Main(m) }
