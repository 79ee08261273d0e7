package main

import (
	"fmt"
	"io"
	"io/fs"
	"os"
)

const (
	mostPassword    = 64 << 10 // bytes of a file that holds a password
	mostCertificate = 4 << 20  // bytes of a file that holds certificates, or a key; all that a system trusts is a quarter of it
)

// readBounded reads a file that the table names, and no more of it than such a file has: a slip, or a device, must not fill the
// memory. Of its bytes nothing is in the error.
func readBounded(file string, most int64) ([]byte, error) {
	f, err := os.Open(file)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, most+1))
	if err == nil && int64(len(data)) > most {
		return nil, &fs.PathError{Op: "read", Path: file, Err: fmt.Errorf("it is larger than %d KiB", most>>10)}
	}
	return data, err
}
