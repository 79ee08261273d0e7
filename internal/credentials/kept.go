// Package credentials reads the files with which Solotick proves itself to others: tokens, certificates, keys and
// secrets. It reads a file for each use, so one that is replaced needs no restart.
//
// A file may be read while somebody writes it. So a change counts only when it is a second old, and damaged contents
// never replace good ones. The limit: a writer that stops for longer than a second in the middle of a token is not
// noticed.
package credentials

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/solotick/solotick/internal/beat"
	"github.com/solotick/solotick/internal/file"
)

const (
	// settle is how long a file must be unchanged before its contents count. Tools that write a file in several steps
	// take milliseconds.
	settle = time.Second

	// fresh is how long what was read counts as good while a changed file settles. People who replace one let
	// both work for longer than that. After it, waiting is safer: the credential before may have expired hours ago.
	fresh = time.Minute
)

// Kept is a value made of the contents of files. It is safe for concurrent use.
type Kept[T any] struct{ kept }

// kept is a Kept of any type, so that the binary has its code once.
type kept struct {
	paths []string
	limit int64 // bytes of each file
	parse func(contents [][]byte) (any, error)
	warn  func(error)

	mu       sync.Mutex
	contents [][]byte // that value is made of; nil = nothing was read yet
	value    any
	read     time.Time // when the files last had these contents
	damaged  bool      // the files have contents that warn was told of
}

// Keep returns the value that parse makes of the contents of files, each of at most limit bytes. The errors of parse
// repeat none of the contents. warn hears, once, that damaged files do not replace what they held before; nil = nobody
// does.
func Keep[T any](limit int64, parse func(contents [][]byte) (T, error), warn func(error), paths ...string) *Kept[T] {
	anyOf := func(contents [][]byte) (any, error) { return parse(contents) }
	return &Kept[T]{kept{paths: paths, limit: limit, parse: anyOf, warn: warn}}
}

// Get reads the files and returns their value. If they are damaged, it returns the value before. It fails if a file
// cannot be read, or if they are damaged and there is no value before. It may wait for a second, or until the end of
// ctx.
func (k *Kept[T]) Get(ctx context.Context) (T, error) {
	got, err := k.get(ctx)
	value, _ := got.(T) // with an error there is none
	return value, err
}

// Now is Get for a receiver that refuses a value of a file that is half written: it does not wait for changes to
// settle.
func (k *Kept[T]) Now() (T, error) {
	got, _, err := k.look(false)
	value, _ := got.(T)
	return value, err
}

func (k *kept) get(ctx context.Context) (any, error) {
	value, wait, err := k.look(true)
	if wait == 0 {
		return value, err
	}
	if !beat.Sleep(ctx, wait) {
		return nil, context.Cause(ctx)
	}
	value, _, err = k.look(false)
	return value, err
}

// look returns the value, or how long to wait until it can be trusted. Without patience it never waits.
func (k *kept) look(patient bool) (value any, wait time.Duration, err error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	contents, changed, err := k.readAll()
	if err != nil {
		return nil, 0, err
	}
	now, known := time.Now(), k.contents != nil
	if known && slices.EqualFunc(contents, k.contents, bytes.Equal) {
		k.read, k.damaged = now, false
		return k.value, 0, nil
	}
	age := now.Sub(changed)
	settled := age < 0 || age >= settle
	if patient && !settled {
		if known && now.Sub(k.read) < fresh {
			return k.value, 0, nil
		}
		return nil, settle - age, nil
	}
	value, err = k.parse(contents)
	if err == nil {
		k.contents, k.value, k.read, k.damaged = contents, value, now, false
		return value, 0, nil
	}
	err = fmt.Errorf("%s: %w", strings.Join(k.paths, " and "), err)
	if !known {
		return nil, 0, err
	}
	if settled && !k.damaged {
		k.damaged = true
		if k.warn != nil {
			k.warn(err)
		}
	}
	return k.value, 0, nil
}

// readAll returns the contents of the files, and when the last of them was changed.
func (k *kept) readAll() (contents [][]byte, changed time.Time, err error) {
	for _, path := range k.paths {
		data, at, err := file.Read(path, k.limit)
		if err != nil {
			return nil, changed, err
		}
		contents = append(contents, data)
		if at.After(changed) {
			changed = at
		}
	}
	return contents, changed, nil
}
