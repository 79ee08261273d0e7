package config

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// readDirectory returns the files of a directory as one text.
func readDirectory(dir string) ([]byte, error) {
	names, err := tableFiles(dir)
	if err != nil {
		return nil, err
	}
	all := bytes.NewBufferString(directoryHead)
	for _, name := range names {
		data, err := readRegular(filepath.Join(dir, name))
		if err != nil {
			return nil, err
		}
		fmt.Fprintf(all, tableLine+"\n", name, len(data))
		all.Write(data)
		if all.Len() > 2*maxSize {
			break // Parse refuses it
		}
	}
	return all.Bytes(), nil
}

// tableFiles returns the names of the files of a directory that belong to the table, sorted: those that end in .yaml or .yml.
// Names that begin with a dot are those of editors, and of the directories behind the links of a mounted ConfigMap.
func tableFiles(dir string) ([]string, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	var names []string
	for _, e := range entries {
		name := e.Name()
		if ext := filepath.Ext(name); (ext == ".yaml" || ext == ".yml") && !strings.HasPrefix(name, ".") {
			names = append(names, name)
		}
	}
	return names, nil
}

// readRegular reads a regular file, up to one byte more than Parse accepts.
func readRegular(path string) ([]byte, error) {
	info, err := os.Stat(path)
	if err == nil && !info.Mode().IsRegular() {
		err = &fs.PathError{Op: "read", Path: path, Err: errors.New("it is not a regular file")} // a pipe would wait for its writer
	}
	if err != nil {
		return nil, err
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return io.ReadAll(io.LimitReader(f, maxSize+1))
}
