package embedded

import (
	"bufio"
	"errors"
	"fmt"
	"net"
	"strings"
	"syscall"
	"time"
)

// A store answers hello with welcome; no other program does. Both are parts of the protocol between versions.
const (
	hello   = "SOLOTICK.EMBEDDED"
	welcome = "OK"
)

const (
	// greetLimit bounds one question. A store on the same machine answers within microseconds; a frozen one never.
	greetLimit = time.Second
	// maxTries bounds the asking: a store that has just begun to listen may not know its commands yet.
	maxTries = 5
	greetGap = 50 * time.Millisecond
)

var (
	errGone     = errors.New("nobody listens there any more")
	errStranger = errors.New("another program uses that port")
	errSilent   = fmt.Errorf("the program that uses that port does not answer within %s", greetLimit)
)

// greet asks whether the program that listens at addr is a store.
func greet(addr string) error {
	for try := 0; ; try++ {
		err := ask(addr)
		if err == nil || !errors.Is(err, errStranger) || try == maxTries {
			return err
		}
		time.Sleep(greetGap)
	}
}

func ask(addr string) error {
	conn, err := net.DialTimeout("tcp", addr, greetLimit)
	if errors.Is(err, syscall.ECONNREFUSED) {
		return errGone
	}
	if err != nil {
		return fmt.Errorf("%w: %w", errSilent, err)
	}
	defer conn.Close()
	if err := conn.SetDeadline(time.Now().Add(greetLimit)); err != nil {
		return err
	}
	if _, err := fmt.Fprintf(conn, "*1\r\n$%d\r\n%s\r\n", len(hello), hello); err != nil {
		return fmt.Errorf("%w: %w", errStranger, err)
	}
	answer, err := bufio.NewReaderSize(conn, 64).ReadSlice('\n')
	var slow net.Error
	switch {
	case errors.As(err, &slow) && slow.Timeout():
		return errSilent
	case err != nil, strings.TrimRight(string(answer), "\r\n") != "+"+welcome:
		return errStranger
	}
	return nil
}
