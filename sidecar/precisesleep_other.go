//go:build !linux

package sidecar

import "time"

func preciseSleep(d time.Duration) { time.Sleep(d) }
