package execute

import (
	"log/slog"
	"strings"
	"testing"
	"unicode/utf8"
)

func TestWordsAreMadeSafeToShow(t *testing.T) {
	for in, want := range map[string]string{
		"plain ümläut 日本\n\tx": "plain ümläut 日本\n\tx",
		"\x1b[31mred\x1b[0m":   "␛[31mred␛[0m",
		"a\x00b\rc\x7f\b":      "a␀b␍c␡␈",
		"\xff\xfe\xc3":         "\ufffd\ufffd\ufffd",
		"c1 \u009b31m":         "c1 \ufffd31m",
		"over\u202eride":       "over\ufffdride",
	} {
		if got := printable(in); got != want {
			t.Errorf("%q becomes %q, want %q", in, got, want)
		}
	}
}

func TestTheTailIsTheLastBytesHoweverTheyCome(t *testing.T) {
	text := strings.Repeat("0123456789", 2000)
	for _, step := range []int{1, 7, 4095, 4096, 4097, 8192, 20000} {
		var tl tail
		for i := 0; i < len(text); i += step {
			n, err := tl.Write([]byte(text[i:min(i+step, len(text))]))
			if n != min(step, len(text)-i) || err != nil {
				t.Fatal(n, err)
			}
		}
		if got := tl.String(); got != text[len(text)-tailSize:] {
			t.Errorf("step %d: %d bytes", step, len(got))
		}
		if cap(tl.buf) > 3*tailSize {
			t.Errorf("step %d: holds %d bytes", step, cap(tl.buf))
		}
	}
}

func TestTheTailIsValidAndBoundedWhateverItHolds(t *testing.T) {
	for _, unit := range []string{"é", "日", "😀", "\x1b", "\xff", "\x80", "\u202e", "a\x00"} {
		for shift := range 4 {
			var tl tail
			tl.Write([]byte(strings.Repeat(unit, 5000) + strings.Repeat("z", shift)))
			got := tl.String()
			if !utf8.ValidString(got) || len(got) > tailSize || len(got) < tailSize-8 {
				t.Errorf("%q: %d bytes, valid %t", unit, len(got), utf8.ValidString(got))
			}
			if utf8.ValidString(unit) && unit[0] >= 0xc0 && unit != "\u202e" && strings.ContainsRune(got, utf8.RuneError) {
				t.Errorf("%q: cut in the middle of a character", unit)
			}
		}
	}
}

func TestLinesAreTheSameHoweverTheyCome(t *testing.T) {
	text := "one\n\ntwo\r\n" + strings.Repeat("x", lineSize) + "\n" + strings.Repeat("é", lineSize) + "\nend"
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
			strings.Repeat("é", lineSize/2) + "… (cut: the line is longer than 64 KiB)", "end"}
		if len(log.text) != len(want) {
			t.Fatalf("step %d: %d lines", step, len(log.text))
		}
		for i, w := range want {
			if log.text[i] != "INFO "+w+" stream=s" {
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
