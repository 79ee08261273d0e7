package command

import (
	"log/slog"
	"strings"
	"testing"
	"unicode/utf8"
)

func TestLinesAreTheSameHoweverTheyCome(t *testing.T) {
	text := "one\n\ntwo\r\n" + strings.Repeat("x", lineSize) + "\n" + strings.Repeat("é", lineSize) +
		"\n\rof 100: 1\rof 100: 99\r\n" + strings.Repeat("y", lineSize) + "\rcut\r\rfatal: no space left\nend"
	for _, step := range []int{1, 2, 3, 1000, lineSize, 1 << 20} {
		var log records
		l := &lines{out: &output{log: slog.New(&log), rate: new(rate)}, stream: "s"}
		for i := 0; i < len(text); i += step {
			l.Write([]byte(text[i:min(i+step, len(text))]))
			if cap(l.buf) > 2*lineSize {
				t.Fatalf("step %d: %d bytes held", step, cap(l.buf))
			}
		}
		l.close()
		l.close()
		want := []string{"one", "", "two", strings.Repeat("x", lineSize),
			strings.Repeat("é", lineSize/2) + "… (cut: the line is longer than 64 KiB)", "of 100: 99", "fatal: no space left", "end"}
		if len(log.text) != len(want) {
			t.Fatalf("step %d: %d lines", step, len(log.text))
		}
		for i, w := range want {
			if log.text[i] != "INFO output line="+w+" stream=s" {
				t.Errorf("step %d, line %d: %.60q", step, i, log.text[i])
			}
		}
	}
}

func TestALineIsNotCutInTheMiddleOfACharacter(t *testing.T) {
	var log records
	l := &lines{out: &output{log: slog.New(&log), rate: new(rate)}, stream: "s"}
	l.Write([]byte("x" + strings.Repeat("é", lineSize) + "\n"))
	if strings.ContainsRune(log.text[0], utf8.RuneError) {
		t.Errorf("it ends in %q", log.text[0][lineSize-10:])
	}
}
