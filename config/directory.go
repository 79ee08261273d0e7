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

	"github.com/solotick/solotick/config/strict"
)

// The files of a table in a directory are read as one text, which begins with directoryHead. Then comes each file after
// a line with its name and its size in bytes, so that a copy of the text is as exact as the files, and readable.
const (
	directoryHead = "# solotick: the files of a directory, each below its name and size\n"
	fileLine      = "-- %q %d"

	// MaxFile bounds how much is read of a file that may be such a copy.
	MaxFile = 3 * maxSize
)

// maxSize bounds a table, in bytes: a thousand jobs need a quarter of it.
const maxSize = 1 << 20

// filesOf returns the files in the text of a table; a text that is not of a directory is the one file.
func filesOf(path string, data []byte) (files []strict.File, isDirectory bool, err error) {
	rest, isDirectory := bytes.CutPrefix(data, []byte(directoryHead))
	if !isDirectory {
		return []strict.File{{Name: path, Data: data}}, false, nil
	}
	for len(rest) > 0 {
		above, after, _ := bytes.Cut(rest, []byte("\n"))
		var name string
		var size int
		n, err := fmt.Sscanf(string(above), fileLine, &name, &size)
		if n != 2 || err != nil || size < 0 || size > len(after) {
			return nil, true, errors.New("the copy of the table's files is damaged")
		}
		files = append(files, strict.File{Name: filepath.Join(path, name), Data: after[:size]})
		rest = after[size:]
	}
	return files, true, nil
}

// readDirectory returns the files of a directory that belong to the table as one text: those that end in .yaml or .yml.
// Names that begin with a dot are those of editors, and of the directories behind the links of a mounted ConfigMap.
func readDirectory(dir string) ([]byte, error) {
	entries, err := os.ReadDir(dir) // sorted
	if err != nil {
		return nil, err
	}
	all := bytes.NewBufferString(directoryHead)
	for _, e := range entries {
		name := e.Name()
		if ext := filepath.Ext(name); ext != ".yaml" && ext != ".yml" || strings.HasPrefix(name, ".") {
			continue
		}
		data, err := readRegular(filepath.Join(dir, name))
		if err != nil {
			return nil, err
		}
		fmt.Fprintf(all, fileLine+"\n", name, len(data))
		all.Write(data)
		if all.Len() > 2*maxSize {
			break // Parse refuses it
		}
	}
	return all.Bytes(), nil
}

// readRegular reads a regular file, up to one byte more than Parse accepts.
func readRegular(path string) ([]byte, error) {
	info, err := os.Stat(path)
	if err == nil && !info.Mode().IsRegular() {
		err = &fs.PathError{Op: "read", Path: path, Err: errors.New("it is not a regular file")} // a pipe would wait
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
