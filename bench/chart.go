package main

import (
	"fmt"
	"html"
	"math"
	"slices"
	"strings"
)

// Charts are SVG that can be read on a light and on a dark page: the colours follow the reader's scheme. Where the page
// does not, the chart has a background of its own.
const chartStyle = `<style>
text { font: 13px system-ui, sans-serif; fill: #1f2328 }
.small { font-size: 11px; fill: #59636e }
.page { fill: #ffffff }
.ours { fill: #0969da } .theirs { fill: #9a6700 }
.line { fill: none; stroke-width: 2 }
.line.ours { stroke: #0969da; fill: none } .line.theirs { stroke: #9a6700; fill: none }
.dashed { stroke-dasharray: 5 4 }
.grid { stroke: #d1d9e0; stroke-width: 1 }
@media (prefers-color-scheme: dark) {
  text { fill: #f0f6fc } .small { fill: #a9b1ba }
  .page { fill: #0d1117 }
  .ours { fill: #4493f8 } .theirs { fill: #d29922 }
  .line.ours { stroke: #4493f8 } .line.theirs { stroke: #d29922 }
  .grid { stroke: #3d444d }
}
</style>
`

const edge = 12 // around a drawing

type drawing struct{ strings.Builder }

func draw(width, height int, title string) *drawing {
	d := &drawing{}
	fmt.Fprintf(d, `<svg xmlns="http://www.w3.org/2000/svg" width="%d" height="%d" viewBox="%d %[3]d %[1]d %[2]d" `+
		`role="img" aria-label="%[4]s">`+"\n", width+2*edge, height+2*edge, -edge, html.EscapeString(title))
	d.WriteString(chartStyle)
	fmt.Fprintf(d, `<rect x="%d" y="%[1]d" width="%d" height="%d" rx="6" class="page"/>`+"\n",
		-edge, width+2*edge, height+2*edge)
	return d
}

func (d *drawing) text(x, y float64, class, anchor, words string) {
	fmt.Fprintf(d, `<text x="%.0f" y="%.0f" class="%s" text-anchor="%s">%s</text>`+"\n",
		x, y, class, anchor, html.EscapeString(words))
}

func (d *drawing) done() string {
	d.WriteString("</svg>\n")
	return d.String()
}

// delayChart shows the delays of both sides, each pair on a scale of its own: they differ a hundredfold.
func delayChart(p part) string {
	const left, bar, line = 170.0, 330.0, 52.0
	var rows []row
	for _, h := range herds {
		about := fmt.Sprintf("%d jobs, %d replicas", h.jobs, h.replicas)
		if h.jobs == 1 {
			about = fmt.Sprintf("1 job, %d replicas", h.replicas)
		}
		if r, ok := p.row(about + ": tick to request, p99"); ok && r.Ours != nil && r.Theirs != nil {
			r.What = about
			rows = append(rows, r)
		}
	}
	d := draw(680, 30+int(line)*len(rows), "p99 of the delay from tick to request, Solotick beside gocron + redsync")
	d.text(0, 16, "", "start", "From tick to request, p99")
	d.text(680, 16, "small", "end", "shorter is better; each pair has its own scale")
	for i, r := range rows {
		y := 34 + line*float64(i)
		d.text(0, y+22, "", "start", r.What)
		scale := bar / math.Max(r.Ours.Value, r.Theirs.Value)
		for k, side := range []struct {
			class, name string
			f           *figure
		}{{"ours", "Solotick", r.Ours}, {"theirs", "gocron + redsync", r.Theirs}} {
			at := y + 3 + 20*float64(k)
			width := math.Max(side.f.Value*scale, 1)
			fmt.Fprintf(d, `<rect x="%.0f" y="%.0f" width="%.1f" height="15" rx="2" class="%s"/>`+"\n",
				left, at, width, side.class)
			d.text(left+width+6, at+12, "small", "start", fmt.Sprintf("%s ms  %s", side.f, side.name))
		}
	}
	return d.done()
}

// crowdChart shows what further replicas cost Redis.
func crowdChart(points []point) string {
	const left, top, width, height = 60.0, 40.0, 420.0, 240.0
	d := draw(680, 305, "Redis CPU per job and tick by the number of replicas, Solotick beside gocron + redsync")
	d.text(0, 16, "", "start", "Redis CPU per job and tick, in µs, by replicas")
	most := 1.0
	for _, p := range points {
		most = math.Max(most, p.Redis)
	}
	step := math.Pow(10, math.Floor(math.Log10(most)))
	if most/step < 3 {
		step /= 2
	}
	most = math.Ceil(most/step) * step
	x := func(replicas int) float64 {
		return left + width*float64(replicas)/float64(crowdReplicas[len(crowdReplicas)-1])
	}
	y := func(v float64) float64 { return top + height*(1-v/most) }
	for v := 0.0; v <= most; v += step {
		fmt.Fprintf(d, `<line x1="%.0f" x2="%.0f" y1="%.1f" y2="%.1f" class="grid"/>`+"\n",
			left, left+width, y(v), y(v))
		d.text(left-8, y(v)+4, "small", "end", fmt.Sprintf("%g", v))
	}
	for _, n := range crowdReplicas {
		d.text(x(n), top+height+18, "small", "middle", fmt.Sprint(n))
	}
	type label struct {
		y     float64
		words string
	}
	var labels []label
	for _, c := range crowds {
		for _, side := range []struct{ key, class, name string }{
			{solotick.key, "ours", solotick.name},
			{redsync.key, "theirs", redsync.name},
		} {
			var path []string
			var last point
			for _, p := range points {
				if p.Jobs == c.jobs && p.Side == side.key {
					path, last = append(path, fmt.Sprintf("%.1f,%.1f", x(p.Replicas), y(p.Redis))), p
				}
			}
			if len(path) == 0 {
				continue
			}
			class := "line " + side.class
			if c.jobs != crowds[0].jobs {
				class += " dashed"
			}
			fmt.Fprintf(d, `<polyline points="%s" class="%s"/>`+"\n", strings.Join(path, " "), class)
			labels = append(labels, label{y(last.Redis) + 4, fmt.Sprintf("%s, %d jobs", side.name, c.jobs)})
		}
	}
	slices.SortFunc(labels, func(a, b label) int { return int(a.y - b.y) })
	below := 0.0
	for _, l := range labels { // apart from each other
		below = math.Max(l.y, below+15)
		d.text(left+width+8, below, "small", "start", l.words)
	}
	return d.done()
}
