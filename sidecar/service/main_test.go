package service_test

import (
	"testing"

	"github.com/solotick/solotick/internal/testing/redisworld"
)

const (
	job         = redisworld.Job
	ledger      = redisworld.Ledger
	running     = redisworld.Running
	dueSet      = redisworld.DueSet
	dueTimers   = redisworld.DueTimers
	timerKey    = redisworld.TimerKey
	timerLedger = redisworld.TimerLedger
)

func TestMain(m *testing.M) { redisworld.Main(m) }
