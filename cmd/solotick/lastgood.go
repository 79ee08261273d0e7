package main

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"time"

	"github.com/solotick/solotick/config"
	"github.com/solotick/solotick/internal/file"
	"github.com/solotick/solotick/sidecar"
)

// stateVariable stands in for --state-dir.
const stateVariable = "SOLOTICK_STATE_DIR"

// lastGood names the file in the state directory that holds the table that was last in force, with its variables not
// replaced.
const lastGood = "last-good-table.yaml"

const notKept = "the last good table is not kept: with a broken table, a restart would fail"

// stateDir is the directory where a replica keeps its last good table for a restart. "" keeps nothing: no directory was
// given, or another process holds it.
type stateDir string

func (d stateDir) file() string { return filepath.Join(string(d), lastGood) }

// keep writes down the table that is in force. Only a restart needs the copy, so a failure is logged and nothing more.
func (d stateDir) keep(table []byte, log *slog.Logger) {
	if before, err := file.ReadOwn(d.file(), config.MaxFile); d == "" || err == nil && bytes.Equal(before, table) {
		return
	}
	if err := d.write(table); err != nil {
		log.Error(notKept, "err", err)
	}
}

// write replaces the file as a whole: a crash of the process or the machine never leaves half a table.
func (d stateDir) write(table []byte) error {
	if err := os.MkdirAll(string(d), 0o700); err != nil {
		return err
	}
	f, err := os.CreateTemp(string(d), lastGood+".*") // for this user alone: the table may hold secrets
	if err != nil {
		return err
	}
	_, err = f.Write(table)
	if err = errors.Join(err, f.Sync(), f.Close()); err == nil {
		err = os.Rename(f.Name(), d.file())
	}
	if err != nil {
		err = errors.Join(err, os.Remove(f.Name()))
	}
	return err
}

// last reads the table that was last in force in place of a broken one. It returns nil without an error if none was
// kept, and an error if the one that was kept is of another service.
func (d stateDir) last(broken string) (*config.Table, error) {
	if d == "" {
		return nil, nil
	}
	source, err := file.ReadOwn(d.file(), config.MaxFile)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	} else if err != nil {
		return nil, err
	}
	t, err := config.Parse(d.file(), source, os.LookupEnv)
	own, _ := config.Read(broken, os.LookupEnv)
	if err == nil && own != nil && own.Service != "" && own.Service != t.Service {
		return nil, fmt.Errorf("it is of the service %q", t.Service)
	}
	return t, err
}

// load reads the table and also returns its source.
func (a *app) load() (t *config.Table, source []byte, err error) {
	source, err = config.ReadFile(a.config)
	if err == nil {
		t, err = config.Parse(a.config, source, os.LookupEnv)
		a.addresses.replace(t)
	}
	return t, source, err
}

// tableToRun returns the table, or else the last good one; broken then says what is wrong with the table. A restart has
// reasons of its own: a table that was broken since must not keep the replica from coming back. A new
// place has no last good table: a replica is refused there, or starts without jobs if it is to start anyway.
func (a *app) tableToRun(log *slog.Logger) (t *config.Table, source []byte, broken, err error) {
	t, source, broken = a.load()
	if broken == nil {
		return t, source, nil, nil
	}
	t, err = a.state.last(a.config)
	a.addresses.replace(t)
	if err != nil {
		log.Error("the last good table cannot be used either", "file", a.state.file(), "err", err)
	}
	switch {
	case t != nil:
		return t, nil, broken, nil
	case !a.anyway:
		return nil, nil, nil, a.refused(broken)
	}
	t, err = a.awaitTable(broken, log)
	return t, nil, broken, err
}

// withoutJobs returns a table with what a replica needs to be seen, and no jobs. It returns nil if the file does not
// tell the service and its Redis.
func (a *app) withoutJobs() *config.Table {
	rest, _ := config.Read(a.config, os.LookupEnv)
	if rest == nil {
		return nil
	}
	if key, _ := a.unknown(rest); key != "" {
		return nil
	}
	t, _ := config.NoTable(rest.Service) // a name that is known is good
	t.Redis, t.Listen, t.Admin, t.Clock, t.MaxRunning = rest.Redis, rest.Listen, rest.Admin, rest.Clock, -1
	a.addresses.replace(t)
	return t
}

// awaitTable returns a table without jobs. Until the file tells the service and its Redis, it serves metrics and health
// by itself, so that the app gets into its Service.
func (a *app) awaitTable(broken error, log *slog.Logger) (*config.Table, error) {
	t := a.withoutJobs()
	if t != nil {
		return t, nil
	}
	l, err := listen(cmp.Or(a.addresses.listen, ":9747"), "listen", servesHealth)
	if err != nil {
		return nil, err
	}
	mux := http.NewServeMux()
	for path, said := range map[string]string{"/": "ok\n" + sidecar.NoTable + ", and no Redis is asked",
		"/metrics": "solotick_table_last_reload_successful 0"} {
		mux.HandleFunc(path, func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintln(w, said) })
	}
	server := &http.Server{Handler: mux, ReadHeaderTimeout: time.Second}
	defer server.Close() // the replica listens there next
	go func() { _ = server.Serve(l) }()
	for ; t == nil; t = a.withoutJobs() {
		log.Error(sidecar.NoTable, "file", a.config, "err", broken)
		time.Sleep(complainEvery)
	}
	return t, nil
}

// tellLastGood logs that the replica goes on with the last good table.
func (a *app) tellLastGood(t *config.Table, log *slog.Logger) {
	since := "unknown"
	if kept, err := os.Stat(a.state.file()); err == nil {
		since = kept.ModTime().UTC().Format("2006-01-02T15:04:05Z")
	}
	log.Error("the table cannot be used: going on with the last good one",
		"file", a.config, "lastGood", a.state.file(), "kept", since, "table", t.Hash)
}
