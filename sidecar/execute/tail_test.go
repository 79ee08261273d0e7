package execute

import (
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
		if got := Printable(in); got != want {
			t.Errorf("%q becomes %q, want %q", in, got, want)
		}
	}
}

func TestTheTailIsTheLastBytesHoweverTheyCome(t *testing.T) {
	text := strings.Repeat("0123456789", 2000)
	for _, step := range []int{1, 7, 4095, 4096, 4097, 8192, 20000} {
		var tl Tail
		for i := 0; i < len(text); i += step {
			n, err := tl.Write([]byte(text[i:min(i+step, len(text))]))
			if n != min(step, len(text)-i) || err != nil {
				t.Fatal(n, err)
			}
		}
		if got := tl.String(); got != text[len(text)-MaxOutput:] {
			t.Errorf("step %d: %d bytes", step, len(got))
		}
		if cap(tl.buf) > 3*MaxOutput {
			t.Errorf("step %d: holds %d bytes", step, cap(tl.buf))
		}
	}
}

func TestTheTailIsValidAndBoundedWhateverItHolds(t *testing.T) {
	for _, unit := range []string{"é", "日", "😀", "\x1b", "\xff", "\x80", "\u202e", "a\x00"} {
		for shift := range 4 {
			var tl Tail
			tl.Write([]byte(strings.Repeat(unit, 5000) + strings.Repeat("z", shift)))
			got := tl.String()
			if !utf8.ValidString(got) || len(got) > MaxOutput || len(got) < MaxOutput-8 {
				t.Errorf("%q: %d bytes, valid %t", unit, len(got), utf8.ValidString(got))
			}
			if utf8.ValidString(unit) && unit[0] >= 0xc0 && unit != "\u202e" && strings.ContainsRune(got, utf8.RuneError) {
				t.Errorf("%q: cut in the middle of a character", unit)
			}
		}
	}
}
