//go:build !linux

package sidecar

import "time"

func nap(d time.Duration) { time.Sleep(d) }
