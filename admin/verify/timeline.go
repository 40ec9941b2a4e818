package verify

import (
	_ "embed"
	"fmt"
	"html/template"
	"io"
	"maps"
	"math"
	"slices"
	"time"
)

// Bins is the number of columns of the timeline.
const Bins = 240

// Bin is one column: the starts that were due in it, and the latest of them.
type Bin struct {
	Count int
	Max   time.Duration
}

// AddStart counts a start in the timeline.
func (r *Report) AddStart(due time.Time, late time.Duration) {
	if i := r.binOf(due); i >= 0 {
		r.bins[i].Count++
		r.bins[i].Max = max(r.bins[i].Max, late)
	}
}

// binOf finds an instant's column; -1 outside of the window.
func (r *Report) binOf(t time.Time) int {
	width := r.To.Sub(r.From)
	if t.Before(r.From) || t.After(r.To) || width <= 0 {
		return -1
	}
	return min(int(float64(Bins)*float64(t.Sub(r.From))/float64(width)), Bins-1)
}

//go:embed timeline.html
var page string

var pageTemplate = template.Must(template.New("timeline").Funcs(template.FuncMap{
	"seconds": seconds,
	"grouped": grouped,
	"clock":   func(t time.Time) string { return t.UTC().Format("15:04:05.000") },
	"instant": func(t time.Time) string { return t.UTC().Format("2006-01-02 15:04:05.000") },
}).Parse(page))

// The drawing's measures, in its own units.
const (
	drawWidth  = 960.0
	lateHeight = 160.0
	runHeight  = 60.0
	laneHeight = 14.0
)

// rect is a bar of the drawing, with what is said when the pointer is on it.
type rect struct {
	X, Y, W, H float64
	Class      string
	Title      string
}

type tick struct {
	At   float64
	Text string
}

// drawing is the timeline as the template draws it.
type drawing struct {
	*Report
	Kinds                              []kindCount
	Reasons                            []reasonCount
	Width, LateHeight, RunTop, RunBase float64
	FaultTop, MarkTop, Height          float64
	Late, Starts, FaultBars, Marks     []rect
	LateTicks, TimeTicks               []tick
	MaxCount                           int
	OpenFaults                         int
}

type kindCount struct {
	Kind  Kind
	Count int
}

type reasonCount struct {
	Reason string
	Count  int
}

// WriteHTML writes the report as one page that needs nothing else.
func (r *Report) WriteHTML(w io.Writer) error {
	d := drawing{Report: r, Width: drawWidth, LateHeight: lateHeight}
	for _, k := range Kinds {
		d.Kinds = append(d.Kinds, kindCount{k, r.Counts[k]})
	}
	for _, reason := range slices.Sorted(maps.Keys(r.Explained)) {
		d.Reasons = append(d.Reasons, reasonCount{reason, r.Explained[reason]})
	}
	d.drawBins()
	d.drawMarks()
	d.drawFaults()
	d.drawTicks()
	return pageTemplate.Execute(w, d)
}

// drawBins draws lateness, on a logarithmic scale, and the number of starts.
func (d *drawing) drawBins() {
	top := time.Second
	for _, b := range d.bins {
		top, d.MaxCount = max(top, b.Max), max(d.MaxCount, b.Count)
	}
	scale := func(late time.Duration) float64 {
		return lateHeight * math.Log10(1+float64(late)/1e6) / math.Log10(1+float64(top)/1e6)
	}
	for late := time.Millisecond; late <= top; late *= 10 {
		d.LateTicks = append(d.LateTicks, tick{lateHeight - scale(late), seconds(late)})
	}
	d.RunTop = lateHeight + 38
	d.RunBase = d.RunTop + runHeight
	width := drawWidth / Bins
	for i, b := range d.bins {
		if b.Count == 0 {
			continue
		}
		x := float64(i) * width
		begin := d.From.Add(d.To.Sub(d.From) * time.Duration(i) / Bins)
		title := fmt.Sprintf("%s: %d starts, latest %s", begin.Format("15:04:05"), b.Count, seconds(b.Max))
		h := max(scale(b.Max), 1)
		d.Late = append(d.Late, rect{x, lateHeight - h, width - 0.5, h, lateClass(b.Max), title})
		h = max(runHeight*float64(b.Count)/float64(d.MaxCount), 1)
		d.Starts = append(d.Starts, rect{x, d.RunBase - h, width - 0.5, h, "starts", title})
	}
}

// lateClass colours a column.
func lateClass(late time.Duration) string {
	switch {
	case late > 5*time.Second:
		return "late3"
	case late > time.Second:
		return "late2"
	}
	return "late1"
}

// drawMarks draws one mark per example.
func (d *drawing) drawMarks() {
	d.MarkTop = d.RunBase + 24
	lanes := map[Kind]int{}
	for _, f := range d.Examples {
		if d.binOf(f.At) < 0 {
			continue
		}
		if _, ok := lanes[f.Kind]; !ok {
			lanes[f.Kind] = len(lanes)
		}
		y := d.MarkTop + float64(lanes[f.Kind])*laneHeight
		d.Marks = append(d.Marks, rect{d.x(f.At) - 2, y, 4, laneHeight - 3, "mark", fmt.Sprintf("%s: %s", f.Kind, f.Detail)})
	}
	d.FaultTop = d.MarkTop + float64(len(lanes))*laneHeight + 24
}

// drawFaults puts faults that touch into lanes of their own.
func (d *drawing) drawFaults() {
	var free []time.Time // when each lane is free again
	for _, f := range d.Faults {
		end := f.End
		if end.IsZero() {
			end, d.OpenFaults = d.To, d.OpenFaults+1
		}
		if end.Before(d.From) || f.Start.After(d.To) {
			continue
		}
		lane := slices.IndexFunc(free, func(t time.Time) bool { return t.Before(f.Start) })
		if lane < 0 {
			lane, free = len(free), append(free, time.Time{})
		}
		x := d.x(f.Start)
		width := max(d.x(end)-x, 2)
		free[lane] = end.Add(d.To.Sub(d.From) / 300)
		title := fmt.Sprintf("%s %s %s: %s, %d due, %d late, worst %s, recovered after %s",
			f.ID, f.Kind, f.Target, seconds(end.Sub(f.Start)), f.Due, f.Late, seconds(f.MaxLate), seconds(f.Recovery))
		d.FaultBars = append(d.FaultBars, rect{x, d.FaultTop + float64(lane)*laneHeight, width, laneHeight - 3, "fault", title})
	}
	d.Height = d.FaultTop + float64(max(len(free), 1))*laneHeight + 24
}

// x is an instant's place; what lies outside is put at the edge.
func (d *drawing) x(t time.Time) float64 {
	width := d.To.Sub(d.From)
	if width <= 0 {
		return 0
	}
	return min(max(drawWidth*float64(t.Sub(d.From))/float64(width), 0), drawWidth)
}

// drawTicks writes seven times below.
func (d *drawing) drawTicks() {
	layout := "15:04:05"
	if d.To.Sub(d.From) > 24*time.Hour {
		layout = "01-02 15:04"
	}
	for i := range 7 {
		t := d.From.Add(d.To.Sub(d.From) * time.Duration(i) / 6)
		d.TimeTicks = append(d.TimeTicks, tick{d.x(t), t.UTC().Format(layout)})
	}
}
