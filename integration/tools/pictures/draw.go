package pictures

import (
	"fmt"
	"html"
	"slices"
	"strings"
	"time"
)

// panel is one course in a picture.
type panel struct {
	course
	title string
	lanes []lane
	// details says that a process's lane shows more than its units: their parts, and requests.
	details bool
}

// lane is what a panel shows of one process or key.
type lane struct {
	id, title string
	key       bool
}

// picture is made of panels with one scale.
type picture struct {
	title  string // for who cannot see it
	panels []panel
	length time.Duration
}

const (
	width  = 960
	left   = 140 // of the bars
	right  = 20
	row    = 16
	gap    = 10
	header = 34
)

// style is legible on a light page and on a dark one.
const style = `text{font:12px system-ui,sans-serif;fill:#1f2328}.t{font-weight:600;font-size:14px}.s{fill:#59636e}.l{fill:#fff;font-size:11px}.l.d{fill:#1f2328}
.axis{stroke:#d1d9e0}.p0{fill:#0969da}.p1{fill:#bc4c00}.p2{fill:#1a7f37}.p3{fill:#8250df}.p4{fill:#bf3989}.p5{fill:#57606a}
.unit,.held{opacity:.9}.fell,.acquire,.function,.commit{opacity:.55}.request{opacity:.9}.dead{opacity:.35}.x{stroke:#cf222e;stroke-width:2}.m{fill:#cf222e;font-size:11px}
.h{stroke:#fff;stroke-width:3;opacity:.55}
@media(prefers-color-scheme:dark){text{fill:#f0f6fc}.s{fill:#9198a1}.l{fill:#0d1117}.l.d{fill:#f0f6fc}.axis{stroke:#3d444d}.p0{fill:#4493f8}.p1{fill:#f0883e}.p2{fill:#3fb950}.p3{fill:#ab7df8}.p4{fill:#f778ba}.p5{fill:#9198a1}
.x{stroke:#f85149}.m{fill:#f85149}.h{stroke:#0d1117}}`

// draw returns the picture as SVG.
func (p picture) draw() string {
	var body strings.Builder
	y := 8
	for _, panel := range p.panels {
		y = panel.draw(&body, y, p.length)
	}
	return fmt.Sprintf(`<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" role="img" aria-label="%s">`+"\n<style>%s</style>\n"+
		`<defs><pattern id="hatch" width="7" height="7" patternUnits="userSpaceOnUse" patternTransform="rotate(45)"><path class="h" d="M0 0V7"/></pattern></defs>`+
		"\n%s</svg>\n", width, y, html.EscapeString(p.title), style, body.String())
}

// draw returns where the next panel begins.
func (p panel) draw(b *strings.Builder, y int, length time.Duration) int {
	x := func(d time.Duration) float64 { return left + float64(d)/float64(length)*(width-left-right) }
	fmt.Fprintf(b, `<text class="t" x="0" y="%d">%s</text>`+"\n", y+14, html.EscapeString(p.title))
	top, height := y+header, 0
	for _, l := range p.lanes {
		height += p.rows(l)*row + gap
	}
	for at := time.Duration(0); at <= length; at += step(length) {
		fmt.Fprintf(b, `<path class="axis" d="M%.1f %dv%d"/><text class="s" x="%.1f" y="%d">%v</text>`+"\n", x(at), top-8, height+8, x(at)+3, top-6, at)
	}
	for _, l := range p.lanes {
		p.lane(b, l, top, x)
		top += p.rows(l)*row + gap
	}
	return top + gap
}

// rows is how high a lane is.
func (p panel) rows(l lane) int {
	rows := 1
	for _, bar := range p.bars {
		if bar.lane == l.id && p.shows(l, bar) {
			rows = max(rows, bar.level+1)
		}
	}
	return rows
}

func (p panel) shows(l lane, b bar) bool {
	return l.key || p.details || b.kind == unit || b.kind == fell
}

func (p panel) lane(b *strings.Builder, l lane, top int, x func(time.Duration) float64) {
	fmt.Fprintf(b, `<text x="0" y="%d">%s</text>`+"\n", top+row-4, html.EscapeString(l.title))
	for _, bar := range p.bars {
		if bar.lane != l.id || !p.shows(l, bar) {
			continue
		}
		from, to, y := x(bar.from), min(x(bar.to), width-right), top+bar.level*row
		if from >= width-right {
			continue
		}
		w := max(to-from, 1)
		fmt.Fprintf(b, `<rect class="p%d %s" x="%.1f" y="%d" width="%.1f" height="%d" rx="2"><title>%s</title></rect>`,
			p.colour(bar.who), bar.kind, from, y, w, row-2, html.EscapeString(bar.says()))
		if bar.kind == waiting || bar.kind == dead {
			fmt.Fprintf(b, `<rect fill="url(#hatch)" x="%.1f" y="%d" width="%.1f" height="%d"/>`, from, y, w, row-2)
		}
		if bar.label != "" && w > 6.2*float64(len(bar.label))+6 {
			class := "l"
			if bar.level == 1 && !l.key { // on a pale ground
				class = "l d"
			}
			fmt.Fprintf(b, `<text class="%s" x="%.1f" y="%d">%s</text>`, class, from+4, y+row-5, html.EscapeString(bar.label))
		}
		b.WriteByte('\n')
	}
	for _, m := range p.marks {
		if m.lane == l.id && x(m.at) < width-right {
			anchor, beside := "start", 4.0
			if l.key { // what comes next is to the right of it
				anchor, beside = "end", -4
			}
			fmt.Fprintf(b, `<path class="x" d="M%.1f %dv%d"/><text class="m" text-anchor="%s" x="%.1f" y="%d">%s</text>`+"\n",
				x(m.at), top-2, row+2, anchor, x(m.at)+beside, top+row-4, html.EscapeString(m.text))
		}
	}
}

// says is what the pointer is told.
func (b bar) says() string {
	what := string(b.kind)
	if b.label != "" {
		what = b.label
	}
	return fmt.Sprintf("%s, %s: %v", b.who, what, (b.to - b.from).Round(time.Millisecond))
}

// colours of processes, in the order of their lanes.
func (p panel) colour(who string) int {
	n := slices.IndexFunc(p.processes(), func(l lane) bool { return l.id == who })
	if n < 0 {
		return 5
	}
	return n % 5
}

func (p panel) processes() (all []lane) {
	for _, l := range p.lanes {
		if !l.key {
			all = append(all, l)
		}
	}
	return all
}

// step is between two ticks of an axis of this length.
func step(length time.Duration) time.Duration {
	for _, ms := range []int{10, 20, 50, 100, 200, 500, 1000, 2000, 5000} {
		if s := time.Duration(ms) * time.Millisecond; length/s <= 10 {
			return s
		}
	}
	return length / 10
}
