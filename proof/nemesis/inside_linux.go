package nemesis

import (
	"context"
	"fmt"
	"net"
	"os"
	"runtime"

	"golang.org/x/sys/unix"
)

// dialInside connects in the network namespace of a process. A socket stays in the namespace of the thread that makes
// it.
func dialInside(ctx context.Context, pid int, network, addr string) (net.Conn, error) {
	its, err := os.Open(fmt.Sprintf("/proc/%d/ns/net", pid))
	if err != nil {
		return nil, err
	}
	defer its.Close()
	runtime.LockOSThread()
	ours, err := os.Open("/proc/thread-self/ns/net")
	if err != nil {
		runtime.UnlockOSThread()
		return nil, err
	}
	defer ours.Close()
	if err := unix.Setns(int(its.Fd()), unix.CLONE_NEWNET); err != nil {
		runtime.UnlockOSThread()
		return nil, fmt.Errorf("entering the network namespace: %w", err)
	}
	var d net.Dialer
	c, err := d.DialContext(ctx, network, addr)
	if back := unix.Setns(int(ours.Fd()), unix.CLONE_NEWNET); back == nil {
		runtime.UnlockOSThread() // else the thread ends with the goroutine
	}
	return c, err
}
