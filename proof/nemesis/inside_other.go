//go:build !linux

package nemesis

import (
	"context"
	"errors"
	"net"
)

func dialInside(context.Context, int, string, string) (net.Conn, error) {
	return nil, errors.ErrUnsupported
}
