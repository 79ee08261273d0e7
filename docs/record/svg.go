//go:build linux

package main

import (
	"bytes"
	"encoding/xml"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"
)

// Sizes in pixels. Monospaced fonts are 0.6 of their height wide; each piece of text has its own place, so that a font
// that is a little wider moves nothing.
const (
	fontSize   = 14
	cellWidth  = 8.4
	lineHeight = 19
	margin     = 16
	bar        = 32 // the title's height
)

// hold is how long the end is shown before the picture begins again.
const hold = 9 * time.Second

const style = `:root{--page:#fff;--line:#d0d7de;--bar:#f6f8fa;--fg:#1f2328;--dim:#656d76;` +
	`--red:#cf222e;--green:#116329;--yellow:#7d4e00;--blue:#0969da;--magenta:#8250df;--cyan:#1b7c83}
@media(prefers-color-scheme:dark){:root{--page:#0d1117;--line:#30363d;--bar:#161b22;--fg:#e6edf3;--dim:#8d96a0;` +
	`--red:#ff7b72;--green:#3fb950;--yellow:#d29922;--blue:#58a6ff;--magenta:#d2a8ff;--cyan:#39c5cf}}
text{font:%dpx ui-monospace,SFMono-Regular,"SF Mono",Menlo,Consolas,"DejaVu Sans Mono","Liberation Mono",monospace;` +
	`fill:var(--fg);white-space:pre}
.page{fill:var(--page)}.frame{fill:none;stroke:var(--line)}.bar{fill:var(--bar)}.dot{fill:var(--line)}
.b{font-weight:700}.d{fill:var(--dim)}.r{fill:var(--red)}.g{fill:var(--green)}.y{fill:var(--yellow)}` +
	`.u{fill:var(--blue)}.m{fill:var(--magenta)}.c{fill:var(--cyan)}
`

// draw draws the lines as they came. The picture is one tall page of text, and two things move, step by step: the page
// goes up, as a terminal scrolls, and a cover over the lines that have not come yet goes down. A reader who wants no
// motion, and a program that knows no animation, see the end.
func draw(lines []line, rows, columns int, title string) []byte {
	title = escaped(title)
	width, height := margin*2+int(float64(columns)*cellWidth), bar+margin*2+rows*lineHeight
	length := lines[len(lines)-1].at + hold
	var out bytes.Buffer
	fmt.Fprintf(&out, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" width="%d" height="%d" `+
		`role="img" aria-labelledby="t">`+"\n", width, height, width, height)
	fmt.Fprintf(&out, "<title id=\"t\">A recording of %s</title>\n<style>", title)
	fmt.Fprintf(&out, style, fontSize)
	moves(&out, "scroll", lines, length, func(n int) int { return -max(0, n-rows) * lineHeight })
	moves(&out, "cover", lines, length, func(n int) int { return min(n, rows) * lineHeight })
	out.WriteString("@media(prefers-reduced-motion:reduce){.scroll,.cover{animation:none}}\n</style>\n")
	fmt.Fprintf(&out, `<rect class="page" x=".5" y=".5" width="%d" height="%d" rx="8"/>`, width-1, height-1)
	fmt.Fprintf(&out, `<path class="bar" d="M1 %dV9a8 8 0 0 1 8-8H%da8 8 0 0 1 8 8V%dz"/>`, bar, width-9, bar)
	for n := range 3 {
		fmt.Fprintf(&out, `<circle class="dot" cx="%d" cy="%d" r="5"/>`, 18+n*18, bar/2)
	}
	fmt.Fprintf(&out, `<text class="d" x="%d" y="%d" text-anchor="middle">%s</text>`+"\n", width/2, bar/2+5, title)
	fmt.Fprintf(&out, `<svg y="%d" width="%d" height="%d"><g class="scroll">`+"\n", bar+margin, width, rows*lineHeight)
	for n, l := range lines {
		writeLine(&out, n, l)
	}
	fmt.Fprintf(&out, `</g><rect class="page cover" x="1" width="%d" height="%d"/></svg>`, width-2, rows*lineHeight)
	fmt.Fprintf(&out, `<rect class="frame" x=".5" y=".5" width="%d" height="%d" rx="8"/>`+"\n</svg>\n",
		width-1, height-1)
	return out.Bytes()
}

// moves writes the animation of a class: where it is when there are n lines.
func moves(out *bytes.Buffer, class string, lines []line, length time.Duration, at func(n int) int) {
	fmt.Fprintf(out, ".%s{transform:translateY(%dpx);animation:%s %.2fs step-end infinite}\n@keyframes %s{",
		class, at(len(lines)), class, length.Seconds(), class)
	move := func(when time.Duration, where int) {
		fmt.Fprintf(out, "%s%%{transform:translateY(%dpx)}", percent(when, length), where)
	}
	last := at(0)
	move(0, last)
	for n, l := range lines {
		if n+1 < len(lines) && lines[n+1].at == l.at {
			continue // they come together
		}
		if where := at(n + 1); where != last {
			move(l.at, where)
			last = where
		}
	}
	out.WriteString("}\n")
}

func percent(at, of time.Duration) string {
	return strconv.FormatFloat(float64(at*10000/of)/100, 'f', -1, 64)
}

// pieces match what gets a place of its own: words with single spaces between them, and each symbol, because it can be
// wider than a cell in the font that has it.
var pieces = regexp.MustCompile(`[!-~]+(?: [!-~]+)*|[^ -~]`)

func writeLine(out *bytes.Buffer, n int, l line) {
	if l.text() == "" {
		return
	}
	fmt.Fprintf(out, `<text y="%d">`, n*lineHeight+fontSize)
	column := 0
	for _, r := range l.runs {
		for _, at := range pieces.FindAllStringIndex(r.text, -1) {
			x := margin + float64(column+utf8.RuneCountInString(r.text[:at[0]]))*cellWidth
			out.WriteString(`<tspan x="` + strconv.FormatFloat(x, 'f', 1, 64) + `"`)
			if r.style != "" {
				out.WriteString(` class="` + r.style + `"`)
			}
			out.WriteString(">")
			out.WriteString(escaped(r.text[at[0]:at[1]]) + "</tspan>")
		}
		column += utf8.RuneCountInString(r.text)
	}
	out.WriteString("</text>\n")
}

func escaped(text string) string {
	var out strings.Builder
	_ = xml.EscapeText(&out, []byte(text)) // a Builder takes everything
	return out.String()
}
