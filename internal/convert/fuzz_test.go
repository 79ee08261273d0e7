package convert

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func seeds(f *testing.F, kind Format) {
	for _, name := range inputs(f) {
		data, err := os.ReadFile(filepath.Join("testdata", name))
		if err != nil {
			f.Fatal(err)
		}
		if guess(data) == kind && name != "bomb.yaml" { // which costs a second each time
			f.Add(data)
		}
	}
}

// fuzz checks what holds for every file: it ends soon and without a panic, in a table that Solotick reads and that has
// exactly what was in the file, or in an error that can be shown.
func fuzz(t *testing.T, data []byte, o Options) {
	began := time.Now()
	r, err := Convert([]Input{{"file", data}}, o)
	if took := time.Since(began); took > 30*time.Second {
		t.Errorf("took %v", took)
	}
	var unreadable *Error
	switch {
	case err == nil:
		carried(t, r, Input{"file", data}, o)
	case !errors.As(err, &unreadable) || strings.Contains(unreadable.Why, "fault of the import"):
		t.Error(err)
	case oneLine(err.Error()) != err.Error():
		t.Errorf("%q would act on a terminal", err)
	case strings.HasPrefix(unreadable.File, "the table") && !strings.Contains(unreadable.Why, "1 MiB"):
		t.Errorf("a table that is not valid: %v", err)
	}
}

func FuzzCrontab(f *testing.F) {
	seeds(f, Crontab)
	f.Fuzz(func(t *testing.T, data []byte) {
		for _, column := range []bool{false, true} {
			fuzz(t, data, Options{From: Crontab, UserColumn: &column})
		}
	})
}

func FuzzKubernetes(f *testing.F) {
	seeds(f, Kubernetes)
	f.Fuzz(func(t *testing.T, data []byte) { fuzz(t, data, Options{From: Kubernetes}) })
}
