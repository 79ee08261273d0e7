package docs_test

import (
	"encoding/xml"
	"errors"
	"image"
	"image/color"
	_ "image/png"
	"io"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

var (
	shown = regexp.MustCompile(`!\[([^\]]*)\]\(([^)\s]+)\)`)
	twins = regexp.MustCompile(`<picture><source media="\(prefers-color-scheme: dark\)" srcset="([^"]+)">` +
		`<img\s+alt="[^"]+" src="([^"]+)"></picture>`)
	images = regexp.MustCompile(`(?:src|srcset)="([^"]+)"`)
)

// A picture is shown on a light or a dark page: it follows the reader's scheme, or has a twin for the dark.
func TestPicturesAreForLightAndDark(t *testing.T) {
	pages, err := filepath.Glob("*.md")
	if err != nil {
		t.Fatal(err)
	}
	var seen []string
	for _, page := range append(pages, "../README.md") {
		text := read(t, page)
		file := func(target string) string {
			return strings.TrimPrefix(filepath.Join(filepath.Dir(page), target), "../docs/")
		}
		for _, m := range shown.FindAllStringSubmatch(text, -1) {
			if m[1] == "" || filepath.Ext(m[2]) != ".svg" {
				t.Errorf("%s: %s has no words, or no twin for dark pages", page, m[0])
				continue
			}
			followsTheScheme(t, file(m[2]))
			seen = append(seen, file(m[2]))
		}
		for _, m := range twins.FindAllStringSubmatch(text, -1) {
			dark, light := photo(t, file(m[1])), photo(t, file(m[2]))
			if dark.size != light.size || dark.light > .3 || light.light < .7 {
				t.Errorf("%s shows %s (%v) in the dark, and %s (%v) in the light", page, m[1], dark, m[2], light)
			}
			seen = append(seen, file(m[1]), file(m[2]))
		}
		for _, m := range images.FindAllStringSubmatch(text, -1) {
			if !slices.Contains(seen, file(m[1])) {
				t.Errorf("%s: %s is not shown as a pair for light and dark", page, m[1])
			}
		}
	}
	for _, kind := range []string{"*.svg", "*.png"} {
		files, err := filepath.Glob(kind)
		if err != nil || len(files) < 2 {
			t.Fatal(files, err)
		}
		for _, name := range files {
			if !slices.Contains(seen, name) {
				t.Errorf("no page shows %s", name)
			}
		}
	}
}

type photograph struct {
	size  image.Point
	light float64 // of its corner, from 0 to 1
}

func photo(t *testing.T, name string) photograph {
	t.Helper()
	f, err := os.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	picture, _, err := image.Decode(f)
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	corner, _ := color.GrayModel.Convert(picture.At(2, 2)).(color.Gray)
	return photograph{picture.Bounds().Size(), float64(corner.Y) / 255}
}

// followsTheScheme checks that a drawing can be read in both schemes: all words and shapes stand out from what is
// behind them. It has a background of its own, because a page may have another scheme than its reader's browser. Its
// words for people who hear it are there.
func followsTheScheme(t *testing.T, name string) {
	t.Helper()
	data, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	text := string(data)
	said := regexp.MustCompile(`role="img" aria-label(?:="[^"]+"|ledby="([^"]+)")`).FindStringSubmatch(text)
	if said == nil {
		t.Fatalf("%s says nothing to people who hear it", name)
	}
	for _, id := range strings.Fields(said[1]) {
		if !regexp.MustCompile(` id="` + id + `">[^<]+<`).MatchString(text) {
			t.Errorf("%s: nothing is in %s", name, id)
		}
	}
	light, dark := styleOf(text)
	if len(dark) == 0 {
		t.Fatalf("%s has no colours for a dark page", name)
	}
	for scheme, style := range map[string][]rule{"light": light, "dark": slices.Concat(light, dark)} {
		page := styled(style, "rect", "page")["fill"]
		if page == "" {
			t.Fatalf("%s has no background", name)
		}
		if lum := luminance(t, page); (lum > .5) != (scheme == "light") {
			t.Errorf("%s: the %s background is %s", name, scheme, page)
		}
		parts := 0
		for _, p := range partsOf(t, name, text) {
			least, colours, on := 4.5, []string{p.colour(style, "fill")}, page
			switch {
			case p.words != "":
				on = p.behind(style, page)
			case slices.ContainsFunc([]string{"line", "box", "ours", "theirs", "redis"}, p.has):
				least, colours = 3, append(colours, p.colour(style, "stroke"))
			default:
				continue
			}
			parts++
			best := 0.
			for _, c := range colours {
				if strings.HasPrefix(c, "#") {
					best = max(best, contrast(t, c, on))
				}
			}
			if best < least {
				t.Errorf("%s, %s: %s %q in %v on %s has a contrast of %.2f, not %.1f",
					name, scheme, p.classes, p.words, colours, on, best, least)
			}
		}
		if parts < 8 {
			t.Errorf("%s: only %d parts with a colour", name, parts)
		}
	}
}

// rule gives values to elements of a name, or with all of some classes.
type rule struct {
	element string
	classes []string
	values  map[string]string
}

// styleOf reads a picture's style, and the style that is added on a dark page.
func styleOf(picture string) (light, dark []rule) {
	_, style, _ := strings.Cut(picture, "<style>")
	style, _, _ = strings.Cut(style, "</style>")
	if at := regexp.MustCompile(`@media ?\(prefers-color-scheme: ?dark\) ?\{`).FindStringIndex(style); at != nil {
		end, depth := at[1], 1
		for ; depth > 0; end++ {
			depth += map[byte]int{'{': 1, '}': -1}[style[end]]
		}
		dark = rulesOf(style[at[1] : end-1])
		style = style[:at[0]] + style[end:]
	}
	return rulesOf(style), dark
}

func rulesOf(style string) (list []rule) {
	for _, m := range regexp.MustCompile(`([^{}]+)\{([^{}]*)\}`).FindAllStringSubmatch(style, -1) {
		element, classes, _ := strings.Cut(strings.TrimSpace(m[1]), ".")
		r := rule{element: element, values: map[string]string{}}
		if classes != "" {
			r.classes = strings.Split(classes, ".")
		}
		for _, value := range strings.Split(m[2], ";") {
			if key, v, ok := strings.Cut(value, ":"); ok {
				r.values[strings.TrimSpace(key)] = strings.TrimSpace(v)
			}
		}
		list = append(list, r)
	}
	return list
}

// styled is what the rules say of an element; a rule for more classes prevails.
func styled(rules []rule, element string, classes ...string) map[string]string {
	all := map[string]string{}
	for n := range 3 {
		for _, r := range rules {
			if len(r.classes) != n || r.element != "" && r.element != element && r.element != ":root" {
				continue
			}
			if !slices.ContainsFunc(r.classes, func(c string) bool { return !slices.Contains(classes, c) }) {
				for key, v := range r.values {
					all[key] = v
				}
			}
		}
	}
	for key, v := range all {
		if of, ok := strings.CutPrefix(v, "var("); ok {
			all[key] = all[strings.TrimSuffix(of, ")")]
		}
	}
	return all
}

// part is an element of a picture, or words in it.
type part struct {
	element, words string
	classes        []string
	x, y           float64
	width, height  float64
	around         *part  // a text around a tspan
	before         []part // the rectangles that were drawn before
}

func (p part) has(class string) bool { return slices.Contains(p.classes, class) }

func (p part) colour(style []rule, kind string) string {
	if c := styled(style, p.element, p.classes...)[kind]; c != "" || p.around == nil {
		return c
	}
	return p.around.colour(style, kind)
}

// behind is the colour of the last rectangle around the beginning of words.
func (p part) behind(style []rule, page string) string {
	for _, r := range slices.Backward(p.before) {
		if r.x <= p.x && p.x <= r.x+r.width && r.y <= p.y && p.y <= r.y+r.height {
			return r.colour(style, "fill")
		}
	}
	return page
}

func partsOf(t *testing.T, name, text string) (list []part) {
	t.Helper()
	var open []part
	var rects []part
	hidden := 0 // in what is not drawn
	for d := xml.NewDecoder(strings.NewReader(text)); ; {
		token, err := d.Token()
		if errors.Is(err, io.EOF) {
			return list
		} else if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		switch e := token.(type) {
		case xml.StartElement:
			p := part{element: e.Name.Local, before: rects}
			for _, a := range e.Attr {
				number, _ := strconv.ParseFloat(a.Value, 64)
				switch a.Name.Local {
				case "class":
					p.classes = strings.Fields(a.Value)
				case "x":
					p.x = number
				case "y":
					p.y = number
				case "width":
					p.width = number
				case "height":
					p.height = number
				}
			}
			if p.element == "tspan" {
				p.around = &open[len(open)-1]
				p.y = p.around.y
			}
			if slices.Contains([]string{"style", "title", "desc", "defs"}, p.element) {
				hidden++
			} else if hidden == 0 {
				list = append(list, p)
			}
			if p.element == "rect" && !p.has("frame") {
				rects = append(rects, p)
			}
			open = append(open, p)
		case xml.CharData:
			if hidden == 0 && strings.TrimSpace(string(e)) != "" {
				p := open[len(open)-1]
				p.words = string(e)
				list = append(list, p)
			}
		case xml.EndElement:
			if slices.Contains([]string{"style", "title", "desc", "defs"}, e.Name.Local) {
				hidden--
			}
			open = open[:len(open)-1]
		}
	}
}

// contrast is that of WCAG 2: words want 4.5 at least, shapes 3.
func contrast(t *testing.T, a, b string) float64 {
	la, lb := luminance(t, a), luminance(t, b)
	return (max(la, lb) + .05) / (min(la, lb) + .05)
}

func luminance(t *testing.T, colour string) (sum float64) {
	t.Helper()
	digits := strings.TrimPrefix(colour, "#")
	if len(digits) == 3 {
		digits = string([]byte{digits[0], digits[0], digits[1], digits[1], digits[2], digits[2]})
	}
	n, err := strconv.ParseUint(digits, 16, 24)
	if err != nil || len(digits) != 6 {
		t.Fatalf("the colour %q", colour)
	}
	for i, weight := range []float64{.0722, .7152, .2126} {
		v := float64(n>>(8*i)&255) / 255
		if v <= .04045 {
			v /= 12.92
		} else {
			v = math.Pow((v+.055)/1.055, 2.4)
		}
		sum += weight * v
	}
	return sum
}

// The life of a tick is told by a picture, a list and the code, in one order.
func TestThePictureOfATickShowsTheStepsOfTheCode(t *testing.T) {
	steps := func(file, pattern string) (names []string) {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range regexp.MustCompile(pattern).FindAllStringSubmatch(string(text), -1) {
			names = append(names, m[1])
		}
		return names
	}
	code := steps("../sidecar/fire.go", `// \d\. ([A-Z][a-z ]+)\.`)
	code = slices.DeleteFunc(code, func(s string) bool { return s == "Trust window" }) // it is drawn beside Execute
	code = append(code, steps("../sidecar/fire.go", `// After the safety delay, (release) the lock`)...)
	if len(code) != 7 {
		t.Fatalf("the code has the steps %q", code)
	}
	code[6] = "Release"
	picture := steps("tick.svg", `class="title" x="46"[^>]*>([^<]+)<`)
	list := steps("how-it-works.md", `(?m)^\d\. \*\*([A-Z][a-z]+)\.\*\*`)
	if !slices.Equal(picture, code) || !slices.Equal(list, code) {
		t.Errorf("the code has the steps\n%q, the picture\n%q, the list\n%q", code, picture, list)
	}
}
