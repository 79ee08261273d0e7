package config

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"

	"go.yaml.in/yaml/v4"

	"github.com/solotick/solotick/config/strict"
)

// A table can have more files than one: those of a directory, and those of its calendars. All of them are read as one
// text, a bundle, which begins with one of these lines. Then comes each file after a line with its name and its size in
// bytes, so that a copy of the text is as exact as the files, and readable.
const (
	directoryHead = "# solotick: the files of a directory, each below its name and size\n"
	calendarsHead = "# solotick: a table and the files of its calendars, each below its name and size\n"
)

// The lines above a file of a table, and of a calendar. A calendar's file that could not be read has the reason instead.
const (
	tableLine    = "-- %q %d"
	calendarLine = "-- calendar %q %d"
	missingLine  = "-- missing %q %q"
)

const (
	// maxCalendars bounds the files of all calendars together, in bytes. One file is as small as a table.
	maxCalendars = 4 << 20
	// MaxFile bounds how much is read of a file that may be a bundle.
	MaxFile = maxCalendars + 3*maxSize
)

// bundle is a table with its files.
type bundle struct {
	tables    []strict.File // of a directory, or the one
	directory bool
	calendars map[string]calendarFile // by their names in the table
}

// calendarFile is what a calendar's file says.
type calendarFile struct {
	data []byte
	why  string // it cannot be read; "" = it can
}

var errDamaged = errors.New("the copy of the table's files is damaged")

// unbundle returns the files in a bundle; a text that is none is a table by itself. name is that of the table.
func unbundle(name string, data []byte) (*bundle, error) {
	rest, isDirectory := bytes.CutPrefix(data, []byte(directoryHead))
	rest, isOne := bytes.CutPrefix(rest, []byte(calendarsHead))
	if !isDirectory && !isOne {
		return &bundle{tables: []strict.File{{Name: name, Data: data}}}, nil
	}
	b := &bundle{directory: isDirectory, calendars: map[string]calendarFile{}}
	for len(rest) > 0 {
		above, after, _ := bytes.Cut(rest, []byte("\n"))
		line := string(above)
		var file, why string
		var size int
		is := func(form string, to ...any) bool {
			n, err := fmt.Sscanf(line, form, to...)
			return n == 2 && err == nil && size >= 0 && size <= len(after)
		}
		switch {
		case is(tableLine, &file, &size):
			if isDirectory {
				file = filepath.Join(name, file)
			} else {
				file = name
			}
			b.tables = append(b.tables, strict.File{Name: file, Data: after[:size]})
		case is(calendarLine, &file, &size):
			b.calendars[file] = calendarFile{data: after[:size]}
		case is(missingLine, &file, &why):
			b.calendars[file] = calendarFile{why: why}
		default:
			return nil, errDamaged
		}
		rest = after[size:]
	}
	if isOne && len(b.tables) != 1 {
		return nil, errDamaged
	}
	return b, nil
}

// withCalendars adds the files of a table's calendars to its text, if it names any.
func withCalendars(path string, isDirectory bool, data []byte) []byte {
	if !bytes.Contains(data, []byte("calendars")) || !isDirectory && isBundle(data) {
		return data
	}
	names := calendarNames(path, data)
	if len(names) == 0 {
		return data
	}
	all := bytes.NewBuffer(data)
	if !isDirectory {
		all = bytes.NewBufferString(calendarsHead)
		fmt.Fprintf(all, tableLine+"\n", filepath.Base(path), len(data))
		all.Write(data)
		path = filepath.Dir(path)
	}
	size := 0
	for _, name := range names {
		found, err := readRegular(beside(path, name))
		if size += len(found); err == nil && size > maxCalendars {
			err = fmt.Errorf("the files of all calendars together are larger than %d MiB", maxCalendars>>20)
		}
		if err != nil {
			var at *fs.PathError
			if errors.As(err, &at) {
				err = at.Err
			}
			fmt.Fprintf(all, missingLine+"\n", name, err.Error())
			continue
		}
		fmt.Fprintf(all, calendarLine+"\n", name, len(found))
		all.Write(found)
	}
	return all.Bytes()
}

func isBundle(data []byte) bool {
	return bytes.HasPrefix(data, []byte(directoryHead)) || bytes.HasPrefix(data, []byte(calendarsHead))
}

// beside returns the path of a file that a table in a directory names.
func beside(dir, name string) string {
	if filepath.IsAbs(name) {
		return name
	}
	return filepath.Join(dir, name)
}

// calendarNames returns the names of the files that the calendars of a table name, sorted. It finds none in a table that
// is not YAML.
func calendarNames(path string, data []byte) (names []string) {
	d := newTableDecoder(nil, noTime)
	root := d.read(path, data)
	if root == nil || root.Kind != yaml.MappingNode {
		return nil
	}
	for calendar := range valuesOf(valueOf(root, "calendars")) {
		if file := valueOf(calendar, "file"); file != nil && file.Kind == yaml.ScalarNode && file.Value != "" && !slices.Contains(names, file.Value) {
			names = append(names, file.Value)
		}
	}
	slices.Sort(names)
	return names
}

// valueOf returns the value of a key in a mapping; nil if there is none.
func valueOf(n *yaml.Node, key string) *yaml.Node {
	if n == nil || n.Kind != yaml.MappingNode {
		return nil
	}
	for i := 0; i+1 < len(n.Content); i += 2 {
		if n.Content[i].Value == key {
			return strict.Resolved(n.Content[i+1])
		}
	}
	return nil
}

// valuesOf yields the values of a mapping.
func valuesOf(n *yaml.Node) func(yield func(*yaml.Node) bool) {
	return func(yield func(*yaml.Node) bool) {
		if n == nil || n.Kind != yaml.MappingNode {
			return
		}
		for i := 1; i < len(n.Content); i += 2 {
			if !yield(strict.Resolved(n.Content[i])) {
				return
			}
		}
	}
}
