package file

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

func TestOnlyRegularFilesAreReadAndNoneIsWaitedFor(t *testing.T) {
	dir := t.TempDir()
	good, link, pipe, wide := filepath.Join(dir, "good"), filepath.Join(dir, "link"), filepath.Join(dir, "pipe"), filepath.Join(dir, "wide")
	group := filepath.Join(dir, "group") // as Kubernetes' fsGroup makes it
	for _, err := range []error{os.WriteFile(good, []byte("12345"), 0o600), os.Symlink(good, link), syscall.Mkfifo(pipe, 0o600),
		os.WriteFile(wide, nil, 0o600), os.Chmod(wide, 0o606), os.WriteFile(group, nil, 0o600), os.Chmod(group, 0o660)} {
		if err != nil {
			t.Fatal(err)
		}
	}
	const kind, whose = "it is not a regular file", "another user owns it, or may write to it"
	for path, says := range map[string][2]string{ // to read any file, and one of the replica's own
		good: {}, group: {}, link: {"", "too many levels of symbolic links"}, pipe: {kind, kind}, dir: {kind, kind}, "/dev/zero": {kind, kind},
		"/dev/tty": {" ", " "}, wide: {"", whose}, filepath.Join(dir, "none"): {"no such file", "no such file"},
	} {
		_, _, err := Read(path, 5)
		_, own := ReadOwn(path, 5)
		for i, err := range []error{err, own} {
			if (err == nil) != (says[i] == "") || err != nil && !strings.Contains(err.Error(), says[i]) {
				t.Errorf("%s: %v, want %q", path, err, says[i])
			}
		}
	}
	if _, _, err := Read(good, 4); err == nil || !strings.HasSuffix(err.Error(), "good: it is larger than 0 KiB") {
		t.Errorf("of a large file: %v", err)
	}
}

func TestAFileOfAnotherUserIsNotTheReplicasOwn(t *testing.T) {
	path := filepath.Join(t.TempDir(), "planted")
	if err := os.WriteFile(path, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	for uid, own := range map[uint32]bool{0: true, uint32(os.Geteuid()): true, 4321: false} {
		if got := isOwn(owned{info, uid}); got != own {
			t.Errorf("a file of user %d: %t", uid, got)
		}
	}
}

// owned is a file as if of another user.
type owned struct {
	fs.FileInfo
	uid uint32
}

func (o owned) Sys() any { return &syscall.Stat_t{Uid: o.uid} }
