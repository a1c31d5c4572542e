// Package report turns recorded runs into one self-contained HTML page.
package report

import (
	_ "embed"
	"fmt"
	"html/template"
	"io"
)

// Page is all that a report shows.
type Page struct {
	Title    string
	Subtitle string
	Runs     []Run
	Settings []Setting
}

// Setting is a line of the table at the end.
type Setting struct{ Name, Value string }

// Run is one recorded run. All times are seconds from its start.
type Run struct {
	Name    string   `json:"name"`
	About   string   `json:"about"`
	Verdict string   `json:"verdict"`
	Good    bool     `json:"good"`
	Target  int      `json:"target"` // sessions per instance
	Tiles   []Tile   `json:"tiles"`
	Phases  []Phase  `json:"phases"`
	Samples []Sample `json:"samples"`
	Lanes   []Lane   `json:"lanes"`
	Cuts    []Cut    `json:"cuts"`
}

// Tile is a number worth a place of its own.
type Tile struct {
	Label string `json:"label"`
	Value string `json:"value"`
	Tone  string `json:"tone"` // good, bad or ""
}

// Phase is a named stretch of time.
type Phase struct {
	Name string  `json:"name"`
	From float64 `json:"from"`
	To   float64 `json:"to"`
}

// Sample is what was there at one moment.
type Sample struct {
	T        float64 `json:"t"`
	Sessions int     `json:"sessions"`
	Desired  int     `json:"desired"` // spec.replicas
	Present  int     `json:"present"` // pods, terminating ones included
	Draining int     `json:"draining"`
	Rooms    int     `json:"rooms"` // open
	Cuts     int     `json:"cuts"`  // so far
}

// Lane is the story of one ordinal.
type Lane struct {
	Name  string `json:"name"`
	Spans []Span `json:"spans"`
	Load  []Load `json:"load"`
}

// The kinds of spans.
const (
	SpanUp       = "up"
	SpanDraining = "draining" // marked: no new room
	SpanReleased = "released" // its removal has been answered
	SpanEnding   = "ending"   // deleted, not yet gone
)

// Span is a state that lasted.
type Span struct {
	Kind string  `json:"kind"`
	From float64 `json:"from"`
	To   float64 `json:"to"`
}

// Load is a number of sessions from a moment on.
type Load struct {
	T float64 `json:"t"`
	N int     `json:"n"`
}

// Cut is a room that ended while people were in it.
type Cut struct {
	T      float64 `json:"t"`
	Lane   string  `json:"lane"`
	Room   string  `json:"room"`
	People int     `json:"people"`
	Cause  string  `json:"cause"`
	Detail string  `json:"detail"`
}

var (
	//go:embed report.html
	page string
	//go:embed report.css
	style string
	//go:embed report.js
	script string
)

// Write renders the page. It refers to nothing outside itself.
func Write(w io.Writer, p Page) error {
	t, err := template.New("report").Parse(page)
	if err != nil {
		return fmt.Errorf("parsing the report's template: %w", err)
	}
	err = t.Execute(w, struct {
		Page
		Style  template.CSS
		Script template.JS
	}{p, template.CSS(style), template.JS(script)})
	if err != nil {
		return fmt.Errorf("writing the report: %w", err)
	}
	return nil
}
