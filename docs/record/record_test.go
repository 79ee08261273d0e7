//go:build linux

package main

import (
	"encoding/xml"
	"errors"
	"io"
	"math"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
	"unicode/utf8"
)

// picture is what a test reads of a picture.
type picture struct {
	lines []string // of the terminal
	style string
}

// read reads a picture strictly, and refuses what GitHub would not show or what would leave it.
func read(t *testing.T, data []byte) picture {
	t.Helper()
	may := []string{"svg", "title", "style", "rect", "path", "circle", "text", "tspan", "g"}
	var p picture
	var open []string
	for in := xml.NewDecoder(strings.NewReader(string(data))); ; {
		token, err := in.Token()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		switch e := token.(type) {
		case xml.StartElement:
			open = append(open, e.Name.Local)
			if !slices.Contains(may, e.Name.Local) {
				t.Errorf("an element %s", e.Name.Local)
			}
			for _, a := range e.Attr {
				if name := a.Name.Local; strings.HasPrefix(name, "on") || name == "href" || name == "src" || strings.Contains(a.Value, "url(") {
					t.Errorf("an attribute %s=%q", name, a.Value)
				}
			}
			switch e.Name.Local {
			case "text":
				p.lines = append(p.lines, "")
			case "tspan":
				x, _ := strconv.ParseFloat(e.Attr[0].Value, 64)
				l := &p.lines[len(p.lines)-1]
				*l += strings.Repeat(" ", max(0, int(math.Round((x-margin)/cellWidth))-utf8.RuneCountInString(*l)))
			}
		case xml.EndElement:
			open = open[:len(open)-1]
		case xml.CharData:
			switch {
			case len(open) == 0:
			case open[len(open)-1] == "tspan":
				p.lines[len(p.lines)-1] += string(e)
			case open[len(open)-1] == "style":
				p.style += string(e)
			}
		case xml.ProcInst, xml.Directive:
			t.Errorf("it has %v", e)
		}
	}
	for _, way := range []string{"@import", "url(", "http", "expression", "\\"} {
		if strings.Contains(p.style, way) {
			t.Errorf("the style has %s", way)
		}
	}
	return p
}

// number returns a number of the summary.
func (p picture) number(t *testing.T, what string) int {
	t.Helper()
	for _, l := range p.lines {
		if m := regexp.MustCompile(`^  ` + what + ` +(\d+)( |$)`).FindStringSubmatch(l); m != nil {
			n, _ := strconv.Atoi(m[1])
			return n
		}
	}
	t.Fatalf("the summary does not count %q", what)
	return 0
}

func (p picture) count(pattern string) int {
	re, n := regexp.MustCompile(pattern), 0
	for _, l := range p.lines {
		if re.MatchString(l) {
			n++
		}
	}
	return n
}

// The picture in the README is of a real run: what its lines show is what its summary counts.
func TestTheRecordingInTheDocsIsOfARealRun(t *testing.T) {
	data, err := os.ReadFile("../demo.svg")
	if err != nil {
		t.Fatal(err)
	}
	if len(data) > 150_000 {
		t.Errorf("it has %d bytes", len(data))
	}
	p := read(t, data)
	if !strings.Contains(p.style, "@media(prefers-color-scheme:dark)") || !strings.Contains(p.style, "@media(prefers-reduced-motion:reduce)") {
		t.Error("it knows no dark pages, or no readers who want no motion")
	}
	if p.count(`^\$ go run ./examples/demo --for 30s$`) != 1 {
		t.Error("it does not show the command")
	}
	for _, zero := range []string{"doubles", "lost"} {
		if n := p.number(t, zero); n != 0 {
			t.Errorf("%s: %d", zero, n)
		}
	}
	if shown, counted := p.count(`✗ killed with SIGKILL while it ran send-report$`), p.number(t, "replicas killed"); shown != counted || shown == 0 {
		t.Errorf("it shows %d kills and counts %d", shown, counted)
	}
	if shown, counted := p.count(`↻ took over [0-9:]+ from (two|three), runs it again$`), p.number(t, "runs taken over"); shown < counted || counted == 0 {
		t.Errorf("it shows %d takeovers and counts %d", shown, counted)
	}
	due, once, skipped := p.number(t, "ticks due"), p.number(t, "fired once"), p.number(t, "skipped on purpose")
	if shown := p.count(`● fired`); due != once+skipped || shown < once {
		t.Errorf("%d ticks were due, %d fired once, %d skipped; it shows %d that were fired", due, once, skipped, shown)
	}
	if beats := p.count(`  heartbeat +(one|two|three) +● fired`); beats < 20 {
		t.Errorf("%d heartbeats in thirty seconds", beats)
	}
}

func TestThePictureMovesAsTheLinesCame(t *testing.T) {
	start := time.Now()
	s := screen{start: start}
	for i, output := range []string{"a\r\n", "\x1b[1m\x1b[31m✗ kil", "led\x1b[0m\x1b[0m <&>  x\r\n", "\r\nd\r\ne\r\n"} {
		s.write(start.Add(time.Duration(i+1)*time.Second), output)
	}
	var text []string
	for _, l := range s.lines {
		text = append(text, l.at.String()+" "+l.text())
	}
	if want := []string{"1s a", "3s ✗ killed <&>  x", "4s ", "4s d", "4s e"}; !slices.Equal(text, want) {
		t.Fatalf("got the lines %q, want %q", text, want)
	}
	got := string(draw(s.lines, 3, 40, "a <test>"))
	p := read(t, []byte(got))
	for _, want := range []string{
		// One, two and five lines, in a window of three: 13 s with the pause at the end.
		".scroll{transform:translateY(-38px);animation:scroll 13.00s step-end infinite}\n@keyframes scroll{0%{transform:translateY(0px)}30.76%{transform:translateY(-38px)}}",
		".cover{transform:translateY(57px);animation:cover 13.00s step-end infinite}\n@keyframes cover{0%{transform:translateY(0px)}7.69%{transform:translateY(19px)}23.07%{transform:translateY(38px)}30.76%{transform:translateY(57px)}}",
	} {
		if !strings.Contains(p.style, want) {
			t.Errorf("the style has no\n%s\nin\n%s", want, p.style)
		}
	}
	if want := `<text y="33"><tspan x="16.0" class="b r">✗</tspan><tspan x="32.8" class="b r">killed</tspan><tspan x="91.6">&lt;&amp;&gt;</tspan><tspan x="133.6">x</tspan></text>`; !strings.Contains(got, want) {
		t.Errorf("no line\n%s\nin\n%s", want, got)
	}
	if !strings.Contains(got, "A recording of a &lt;test&gt;") {
		t.Error("the title is not escaped")
	}
}

func TestAPoorRunIsNotDrawn(t *testing.T) {
	good := []string{
		"14:18:30  heartbeat      two    ● fired    one, three skipped",
		"14:18:30                 two    ✗ killed with SIGKILL while it ran send-report",
		"14:18:33  send-report    one    ↻ took over 14:18:30 from two, runs it again",
		"14:18:34                 two    started again",
		"  ticks due                 64  of the jobs that run on one replica",
		"  doubles                    0  fired twice",
		"  lost                       0  fired by no replica, for no reason",
		"  runs taken over            1  by another replica",
	}
	if err := worthy(good); err != nil {
		t.Error(err)
	}
	for i, l := range good {
		poor := slices.Clone(good)
		if poor[i] = strings.Replace(l, "  0  ", "  1  ", 1); poor[i] == l {
			poor[i] = ""
		}
		if worthy(poor) == nil {
			t.Errorf("a run is drawn with %q in place of %q", poor[i], l)
		}
	}
}
