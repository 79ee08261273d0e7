// Package instance tells a process which earlier processes in its place are dead.
//
// An instance is a place where a replica runs: a directory. At most one process at a time holds it, by a lock of the
// kernel on a file in the directory, which the kernel frees when the process ends, and not before. The processes that
// held the lock write their ids into the file. So whoever holds the lock knows that they are dead, if the same kernel
// gave it to them, and on this very file. So the file begins with the kernel's boot id, and with its own device and
// inode, which no other file gets while a process that it names has it open. If the machine has started anew, another
// one shares the directory, or the file is a copy, nothing is known of them.
//
// The package does not notice a machine that is copied while it runs: a process then goes on in both copies, under one
// id. Nor does it notice a file system that grants the lock twice to processes of one kernel.
package instance

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
)

// Process is one that held the instance.
type Process struct {
	ID      string // one word
	Session int    // of its process group, and of those that it started
}

// Instance is held by this process for as long as it lives, or until Close.
type Instance struct {
	Dead []Process // that held it before, the newest last
	file *os.File
}

var (
	// ErrHeld says that another process, which lives, holds the instance.
	ErrHeld = errors.New("another process has it")
	// ErrUnsupported says that this system does not tell what it takes.
	ErrUnsupported = errors.New("this system does not tell which processes are dead")
)

// name is that of the file. The lock is on the file and not on its name: it counts while the file has the name.
const name = "instance"

// remembered bounds the processes in the file. A run of an older one has long been taken over.
const remembered = 100

// read returns the processes that the text of a file names, if it was written as this file, which origin stands for. A
// text that was cut off names those that it has in full.
func read(text []byte, origin string) (all []Process) {
	text, own := bytes.CutPrefix(text, []byte(origin+"\n"))
	if !own {
		return nil
	}
	for line := range bytes.Lines(text) {
		word, whole := strings.CutSuffix(string(line), "\n")
		id, session, _ := strings.Cut(word, " ")
		n, err := strconv.Atoi(session)
		if !whole || id == "" || err != nil {
			return all
		}
		all = append(all, Process{ID: id, Session: n})
	}
	return all
}

// write replaces the text of a file. It empties the file first: ids must never stand under another origin than theirs,
// wherever this process is cut off.
func write(f *os.File, origin string, all []Process) error {
	all = all[max(len(all)-remembered, 0):]
	text := []byte(origin + "\n")
	for _, p := range all {
		text = fmt.Appendf(text, "%s %d\n", p.ID, p.Session)
	}
	if err := f.Truncate(0); err != nil {
		return err
	}
	_, err := f.WriteAt(text, 0)
	return err
}

// Close gives the instance up as a crash does: the next one to hold it takes this process for dead. A nil Instance is
// held by nobody.
func (i *Instance) Close() error {
	if i == nil {
		return nil
	}
	return i.file.Close()
}

// Leave gives the instance up at an orderly end. It removes the file, since this process has left nothing that the next
// one would have to know.
func (i *Instance) Leave() error {
	if i == nil {
		return nil
	}
	var err error
	if hasName(i.file) {
		err = os.Remove(i.file.Name())
	}
	return errors.Join(err, i.file.Close())
}

// hasName reports whether a file that is open still has its name.
func hasName(f *os.File) bool {
	named, err := os.Stat(f.Name())
	open, err2 := f.Stat()
	return err == nil && err2 == nil && os.SameFile(named, open)
}
