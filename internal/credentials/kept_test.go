package credentials

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/solotick/solotick/config"
)

// written writes a file, which then is as old as age says.
func written(t *testing.T, path, text string, age time.Duration) {
	t.Helper()
	at := time.Now().Add(-age)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Chtimes(path, at, at); err != nil {
		t.Fatal(err)
	}
}

// wanted gets a value, and tells how long that took.
func wanted(t *testing.T, k *Kept[string], want string) time.Duration {
	t.Helper()
	began := time.Now()
	if got, err := k.Get(t.Context()); got != want || err != nil {
		t.Errorf("got %q, %v, want %q", got, err, want)
	}
	return time.Since(began)
}

func TestAReplacedFileCountsWhenItHasSettled(t *testing.T) {
	file := filepath.Join(t.TempDir(), "token")
	synctest.Test(t, func(t *testing.T) {
		token := Header(config.HeaderFile{File: file, Prefix: "Bearer "}, func(err error) { t.Error(err) })
		written(t, file, "one\n", time.Hour)
		if wait := wanted(t, token, "Bearer one"); wait != 0 {
			t.Errorf("an old file is waited for: %s", wait)
		}

		written(t, file, "tw", 0) // the writer stops here
		if wait := wanted(t, token, "Bearer one"); wait != 0 {
			t.Errorf("the value before is there, and waited for: %s", wait)
		}
		time.Sleep(settle / 2)
		written(t, file, "two\r\n", 0)
		wanted(t, token, "Bearer one")
		time.Sleep(settle)
		if wait := wanted(t, token, "Bearer two"); wait != 0 {
			t.Errorf("a settled file is waited for: %s", wait)
		}

		// It is the time of the last use that tells whether the value before may have expired.
		for range 3 {
			time.Sleep(fresh - time.Second)
			wanted(t, token, "Bearer two")
		}
		written(t, file, "rotated", 0)
		if wait := wanted(t, token, "Bearer two"); wait != 0 {
			t.Errorf("a token that was rotated delays a run by %s", wait)
		}

		// A minute is too long.
		time.Sleep(settle)
		wanted(t, token, "Bearer rotated")
		time.Sleep(fresh)
		written(t, file, "again", 0)
		if wait := wanted(t, token, "Bearer again"); wait != settle {
			t.Errorf("waited for %s", wait)
		}

		// A credential that was read an hour ago may have expired since.
		time.Sleep(time.Hour)
		written(t, file, "three", settle/4)
		if wait := wanted(t, token, "Bearer three"); wait != settle*3/4 {
			t.Errorf("waited for %s", wait)
		}
		// A clock that is wrong costs no wait.
		written(t, file, "four", -time.Hour)
		if wait := wanted(t, token, "Bearer four"); wait != 0 {
			t.Errorf("waited for %s", wait)
		}
	})
}

func TestTheWaitForAFileEndsWithItsContext(t *testing.T) {
	file := filepath.Join(t.TempDir(), "token")
	synctest.Test(t, func(t *testing.T) {
		written(t, file, "half", 0)
		lost := errors.New("lost")
		ctx, cancel := context.WithCancelCause(t.Context())
		time.AfterFunc(settle/2, func() { cancel(lost) })
		if _, err := Header(config.HeaderFile{File: file}, nil).Get(ctx); err != lost {
			t.Errorf("got %v", err)
		}
	})
}

func TestDamagedContentsDoNotReplaceGoodOnes(t *testing.T) {
	file := filepath.Join(t.TempDir(), "token")
	synctest.Test(t, func(t *testing.T) {
		var warned []string
		token := Header(config.HeaderFile{File: file}, func(err error) { warned = append(warned, err.Error()) })
		written(t, file, "", time.Hour)
		if _, err := token.Get(t.Context()); err == nil || err.Error() != file+": it is empty" || len(warned) != 0 {
			t.Errorf("nothing before it: %v, %q", err, warned)
		}
		written(t, file, "good", time.Hour)
		wanted(t, token, "good")
		for _, bad := range []string{"", "\n", "s3cret\n\n", "s3cret\nX-Other: 1", "s3cret\x00", "s3cret\xff"} {
			written(t, file, bad, time.Hour)
			wanted(t, token, "good")
			wanted(t, token, "good")
		}
		if len(warned) != 1 || warned[0] != file+": it is empty" {
			t.Errorf("warned of %q", warned)
		}
		written(t, file, "good", time.Hour) // mended, and damaged again
		wanted(t, token, "good")
		written(t, file, "", time.Hour)
		wanted(t, token, "good")
		if len(warned) != 2 {
			t.Errorf("warned of %q", warned)
		}
		written(t, file, "better", time.Hour)
		wanted(t, token, "better")
		written(t, file, "s3cret\nX-Other: 1", time.Hour)
		wanted(t, token, "better")
		if len(warned) != 3 || strings.Contains(warned[2], "s3cret") {
			t.Errorf("warned of %q", warned)
		}
	})
}

func TestAPasswordCountsAtOnceExceptAnEmptyOne(t *testing.T) {
	file := filepath.Join(t.TempDir(), "password")
	synctest.Test(t, func(t *testing.T) {
		var warned []string
		password := Password(file, func(err error) { warned = append(warned, err.Error()) })
		now := func(want string) {
			t.Helper()
			began := time.Now()
			if got, err := password.Now(); got != want || err != nil || time.Since(began) != 0 {
				t.Errorf("got %q, %v after %s, want %q", got, err, time.Since(began), want)
			}
		}
		written(t, file, "\r\n", time.Hour)
		now("")
		written(t, file, "", time.Hour) // there still is none
		now("")
		written(t, file, " pa ss \r\n", 0)
		now(" pa ss ")
		written(t, file, "", 0) // the writer has only begun
		now(" pa ss ")
		written(t, file, "two\n", 0)
		now("two")
		if len(warned) > 0 {
			t.Errorf("warned of a file that is being written: %q", warned)
		}
		written(t, file, "", settle)
		now("two")
		now("two")
		if len(warned) != 1 || warned[0] != file+": it is empty" {
			t.Errorf("warned of %q", warned)
		}
	})
}

func TestAFileThatCannotBeReadHasNoValue(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "token")
	token := Header(config.HeaderFile{File: file}, func(err error) { t.Error(err) })
	written(t, file, "good", time.Hour)
	wanted(t, token, "good")
	if err := os.Remove(file); err != nil {
		t.Fatal(err)
	}
	if got, err := token.Get(t.Context()); got != "" || !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("of a missing file: %q, %v", got, err)
	}
	written(t, file, strings.Repeat("x", maxText+1), time.Hour)
	if got, err := token.Get(t.Context()); got != "" || err == nil || !strings.HasSuffix(err.Error(), "it is larger than 64 KiB") {
		t.Errorf("of a file that is too large: %.9q, %v", got, err)
	}
	if _, err := Header(config.HeaderFile{File: dir}, nil).Get(t.Context()); err == nil {
		t.Error("a directory has a value")
	}
	pipe := filepath.Join(dir, "pipe")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Header(config.HeaderFile{File: pipe}, nil).Get(t.Context()); err == nil || !strings.Contains(err.Error(), "it is not a regular file") {
		t.Errorf("of a pipe: %v", err)
	}
	written(t, file, "good", time.Hour)
	wanted(t, token, "good")
}

func TestOfSeveralFilesTheNewestHasToSettle(t *testing.T) {
	dir := t.TempDir()
	one, two := filepath.Join(dir, "one"), filepath.Join(dir, "two")
	synctest.Test(t, func(t *testing.T) {
		for _, ages := range [][2]time.Duration{{0, time.Hour}, {time.Hour, 0}} {
			written(t, one, "1", ages[0])
			written(t, two, "2", ages[1])
			both := Keep(9, func(contents [][]byte) (string, error) { return string(contents[0]) + string(contents[1]), nil }, nil, one, two)
			if wait := wanted(t, both, "12"); wait != settle {
				t.Errorf("files of %s: waited for %s", ages, wait)
			}
		}
	})
}
