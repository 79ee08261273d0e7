package docs_test

import (
	"encoding/xml"
	"errors"
	"io"
	"os"
	"regexp"
	"strings"
	"testing"
)

// A picture is shown on a light or a dark page, and to people who hear it: each colour of the light one has another for
// the dark, and the picture has a title and a description.
func TestPicturesAreForLightAndDark(t *testing.T) {
	rule := regexp.MustCompile(`(?m)^ +(\.?[a-z]+) \{ .*?(?:fill|stroke): #`)
	for _, name := range []string{"architecture.svg", "tick.svg"} {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		for d := xml.NewDecoder(strings.NewReader(string(text))); ; {
			if _, err := d.Token(); errors.Is(err, io.EOF) {
				break
			} else if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
		}
		light, dark, ok := strings.Cut(string(text), "@media (prefers-color-scheme: dark) {")
		if !ok {
			t.Fatalf("%s has no colours for a dark page", name)
		}
		rules := rule.FindAllStringSubmatch(light, -1)
		if len(rules) < 7 {
			t.Errorf("%s: only %d rules with a colour", name, len(rules))
		}
		for _, m := range rules {
			if !strings.Contains(dark, m[1]+" {") {
				t.Errorf("%s: %s has no colour on a dark page", name, m[1])
			}
		}
		for _, part := range []string{"<title id=", "<desc id="} {
			if !strings.Contains(light+dark, part) {
				t.Errorf("%s has no %s", name, part)
			}
		}
	}
}
