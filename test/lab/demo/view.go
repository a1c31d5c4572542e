package demo

import (
	"context"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/roomscaler/roomscaler/test/lab/report"
	"github.com/roomscaler/roomscaler/test/lab/supervisor"
)

const (
	redraw    = 500 * time.Millisecond
	plainLine = 5 * time.Second
	barWidth  = 30 // cells; the target stands at two thirds
)

// The escape sequences of the live view.
const (
	reset  = "\x1b[0m"
	bold   = "\x1b[1m"
	dim    = "\x1b[2m"
	red    = "\x1b[31m"
	green  = "\x1b[32m"
	yellow = "\x1b[33m"
	blue   = "\x1b[34m"
)

// terminal reports whether w is one that understands escape sequences.
func terminal(w io.Writer) bool {
	f, ok := w.(*os.File)
	if !ok || os.Getenv("TERM") == "dumb" || os.Getenv("NO_COLOR") != "" {
		return false
	}
	s, err := f.Stat()
	return err == nil && s.Mode()&os.ModeCharDevice != 0
}

// show draws the worlds until ctx ends: in place on a terminal, else a line now and then.
func show(ctx context.Context, out io.Writer, worlds []*world) {
	live := terminal(out)
	every := plainLine
	if live {
		every = redraw
		fmt.Fprint(out, "\x1b[?25l")       // hide the cursor
		defer fmt.Fprint(out, "\x1b[?25h") // and show it again
	}
	tick := time.NewTicker(every)
	defer tick.Stop()
	drawn := 0
	told := map[*world]bool{} // that a world is over
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		if !live {
			for _, w := range worlds {
				if m := w.rec.current(); !told[w] {
					fmt.Fprintln(out, plain(w, m))
					told[w] = m.Over
				}
			}
			continue
		}
		var lines []string
		for _, w := range worlds {
			lines = append(lines, block(w, w.rec.current())...)
		}
		var b strings.Builder
		if drawn > 0 {
			fmt.Fprintf(&b, "\x1b[%dA", drawn)
		}
		for _, l := range lines {
			b.WriteString("\r\x1b[2K" + l + "\n")
		}
		b.WriteString("\x1b[J")
		drawn = len(lines)
		io.WriteString(out, b.String())
	}
}

func clock(t float64) string { return fmt.Sprintf("%d:%02d", int(t)/60, int(t)%60) }

// plain is a world in one line.
func plain(w *world, m moment) string {
	var pods []string
	for _, p := range m.Pods {
		sign := ""
		if p.Kind != report.SpanUp {
			sign = "(" + p.Kind + ")"
		}
		pods = append(pods, fmt.Sprintf("%d%s", p.Sessions, sign))
	}
	return fmt.Sprintf("%s %-12s %-15s desired %d present %d sessions %d rooms %d cut %d  [%s]", clock(m.T), w.title(), m.Phase, m.Desired, m.Present, m.Sessions, m.Rooms, m.Cuts, strings.Join(pods, " "))
}

// block is a world as lines of the live view.
func block(w *world, m moment) []string {
	target := w.o.target()
	cut := green + "0 rooms cut" + reset
	if m.Cuts > 0 {
		cut = fmt.Sprintf("%s%s%d rooms cut (%d by scale-in)%s", bold, red, m.Cuts, m.Stats.CutBy[string(supervisor.ScaleIn)], reset)
	}
	lines := []string{
		fmt.Sprintf("%s%s%s  %s  %s%s%s  %s", bold, w.title(), reset, clock(m.T), dim, m.Phase, reset, progress(m.Share)),
		fmt.Sprintf("  desired %s%d%s  present %s%d%s  draining %d   sessions %d  rooms open %d of %d opened   %s", bold, m.Desired, reset, bold, m.Present, reset, m.Draining, m.Sessions, m.Rooms, m.Stats.Rooms, cut),
	}
	for _, p := range m.Pods {
		colour, note := blue, ""
		switch p.Kind {
		case report.SpanDraining:
			colour, note = yellow, fmt.Sprintf("draining, %d rooms left", p.Rooms)
		case report.SpanReleased:
			colour, note = yellow, "empty, released"
		case report.SpanEnding:
			colour, note = dim, "ending"
			if p.Sessions > 0 {
				colour, note = red, fmt.Sprintf("ending with %d people on it", p.Sessions)
			}
		}
		lines = append(lines, fmt.Sprintf("  %-9s %s %3d/%d  %s", p.Name, bar(p.Sessions, target, colour), p.Sessions, target, note))
	}
	return append(lines, "")
}

func progress(share float64) string {
	const width = 16
	n := int(share * width)
	return "▕" + strings.Repeat("█", n) + strings.Repeat("·", width-n) + "▏"
}

// bar shows sessions against the target, which stands at two thirds of the width.
func bar(n, target int, colour string) string {
	const mark = barWidth * 2 / 3
	full := min(barWidth, n*mark/target)
	cells := func(from, to int) string {
		filled := min(max(full-from, 0), to-from)
		return colour + strings.Repeat("█", filled) + reset + dim + strings.Repeat("·", to-from-filled) + reset
	}
	return cells(0, mark) + "│" + cells(mark, barWidth)
}
