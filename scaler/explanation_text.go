package scaler

import (
	"fmt"
	"strings"
	"time"
)

// String writes the explanation for a person.
func (e Explanation) String() string {
	var b strings.Builder
	line := func(form string, args ...any) { fmt.Fprintf(&b, form+"\n", args...) }
	line("pool %s: %s, was %d", e.Pool, counted(e.Desired, "instance"), e.Why.Previous)
	line("rule %s: %s", e.Why.Rule, e.Meaning)
	line("decided %s ago for ScaledObject %s, plan %d", ago(e.AgeMS), e.ScaledObject, e.Version)
	line("KEDA is answered %s", e.Answer)

	line("\nHow it came about")
	for _, s := range e.Steps {
		line("  %-12s %6d  %s", s.Name, s.Value, s.Text)
	}
	line("\nWhat would change it")
	for _, c := range e.Changes {
		line("  %s", c)
	}
	if len(e.Highest) > 0 {
		line("\nWho would go first")
		for _, c := range e.Highest {
			line("  %s", c)
		}
	}
	line("\nKubernetes")
	if e.Kubernetes == nil {
		line("  is not read")
	} else {
		for _, s := range e.Kubernetes.lines() {
			line("  %s", s)
		}
	}
	if e.Hand != nil {
		line("  %s ago %s", ago(e.HandAgoMS), e.Hand)
	}
	line("\nRisks")
	if len(e.Risks) == 0 {
		line("  none")
	}
	for _, r := range e.Risks {
		line("  %s: %s", r.Code, r.Detail)
	}
	if len(e.Past) > 0 {
		line("\nDecisions, the latest last")
	}
	for _, p := range e.Past {
		by := ""
		if p.FloorBy != "" {
			by = " (" + p.FloorBy + ")"
		}
		line("  %9s ago  %3d -> %3d  %-8s  load %d, queued %d, needed %d, cool-down %d, floor %d%s", ago(p.AgoMS), p.From, p.To, p.Rule, p.Load, p.Queued, p.Needed, p.Cool, p.Floor, by)
	}
	return b.String()
}

func (c Candidate) String() string {
	sessions := "sessions unknown"
	if c.Sessions != nil {
		sessions = counted(*c.Sessions, "session")
	}
	what := "may go"
	switch {
	case c.MayGo && c.Why != "":
		what = c.Why
	case !c.MayGo:
		what = "may not go: " + c.Why
	}
	return fmt.Sprintf("%s  %s, %s, %s: %s", c.Name, c.State, sessions, counted(c.Rooms, "room"), what)
}

func (s *Scaling) lines() []string {
	lines := []string{fmt.Sprintf("StatefulSet %s: spec.replicas %d, status.replicas %d; %s, of which %d terminate, %d are not ready and %d wait for a machine",
		s.Name, s.Replicas, s.Status, counted(s.Pods, "pod"), s.Terminating, s.Unready, s.Unscheduled)}
	if s.HPA == nil {
		return append(lines, "there is no HorizontalPodAutoscaler")
	}
	h := s.HPA
	window := "the cluster's default"
	if h.WindowMS >= 0 {
		window = (time.Duration(h.WindowMS) * time.Millisecond).String()
	}
	lines = append(lines, fmt.Sprintf("HorizontalPodAutoscaler %s: saw %d and wanted %d, bounds %d to %d", h.Name, h.Current, h.Desired, h.Minimum, h.Maximum),
		fmt.Sprintf("  tolerance %g up and %g down (%s), downscale window %s", h.ScaleUp, h.ScaleIn, s.Tolerance, window))
	if h.Trouble != "" {
		lines = append(lines, "  "+h.Trouble)
	}
	return lines
}

// counted writes a number with the word for what it counts.
func counted(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

// ago writes a time in milliseconds in whole seconds.
func ago(ms int64) string {
	return (time.Duration(ms) * time.Millisecond).Round(time.Second).String()
}
