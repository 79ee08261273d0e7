package main

import (
	"fmt"
	"io"
	"io/fs"
	"os"
)

const (
	maxPassword    = 64 << 10 // bytes of a file that holds a password
	maxCertificate = 4 << 20  // bytes of a file with certificates or a key; the bundle of all that a system trusts has a quarter of it
)

// readBounded reads a file that the table names, at most so many bytes: a wrong name or a device must not fill the
// memory. The error repeats none of the file's bytes.
func readBounded(file string, limit int64) ([]byte, error) {
	f, err := os.Open(file)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, limit+1))
	if err == nil && int64(len(data)) > limit {
		return nil, &fs.PathError{Op: "read", Path: file, Err: fmt.Errorf("it is larger than %d KiB", limit>>10)}
	}
	return data, err
}
