package results

import (
	"strings"
	"testing"
)

func TestARunIsReadAsItWasWritten(t *testing.T) {
	dir := t.TempDir()
	t.Setenv(Variable, dir)
	if r, err := Read(dir, "Proof"); r != nil || err != nil {
		t.Fatalf("before the first run: %+v, %v", r, err)
	}
	r := Begin("Proof", "make it")
	r.Add(7, "seeds")
	if err := r.End(true); err != nil {
		t.Fatal(err)
	}
	got, err := Read(dir, "Proof")
	if err != nil {
		t.Fatal(err)
	}
	if !got.Began.Equal(r.Began) || got.Commit == "" || got.Again != "make it" || !got.Failed || len(got.Figures) != 1 || got.Figures[0] != (Figure{7, "seeds"}) {
		t.Errorf("%+v, and %+v was written", got, r)
	}
}

func TestATestEndsItsRecordAfterItsSubtests(t *testing.T) {
	dir := t.TempDir()
	t.Setenv(Variable, dir)
	t.Run("test", func(t *testing.T) {
		r := Of(t, "")
		t.Run("subtest", func(t *testing.T) { t.Cleanup(func() { r.Add(1, "subtest") }) })
	})
	t.Run("skipped", func(t *testing.T) {
		Of(t, "")
		t.Skip("it has nothing to tell")
	})
	if r, err := Read(dir, "TestATestEndsItsRecordAfterItsSubtests/test"); err != nil || r == nil || r.Failed || len(r.Figures) != 1 {
		t.Errorf("the test: %+v, %v", r, err)
	}
	if r, err := Read(dir, "TestATestEndsItsRecordAfterItsSubtests/skipped"); err != nil || r != nil {
		t.Errorf("the test that was skipped: %+v, %v", r, err)
	}
}

func TestWithoutADirectoryNothingIsWritten(t *testing.T) {
	t.Setenv(Variable, "")
	if err := Begin("Proof", "").End(false); err != nil {
		t.Error(err)
	}
	t.Setenv(Variable, "results") // is another directory for each package
	if err := Begin("Proof", "").End(false); err == nil || !strings.Contains(err.Error(), "absolute") {
		t.Errorf("a relative path: %v", err)
	}
}
