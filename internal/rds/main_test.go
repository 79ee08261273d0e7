package rds_test

import (
	"testing"

	"github.com/solotick/solotick/internal/testing/redisworld"
)

func TestMain(m *testing.M) { redisworld.Main(m) }
