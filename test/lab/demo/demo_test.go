package demo_test

import (
	"bytes"
	"strings"
	"testing"

	"github.com/roomscaler/roomscaler/test/lab/demo"
)

func TestVerdict(t *testing.T) {
	good := demo.Verdict{Rooms: 80, LeastRooms: 36, First: 2, Most: 6, Last: 2}
	with := func(change func(*demo.Verdict)) demo.Verdict {
		v := good
		change(&v)
		return v
	}
	t.Run("its line has a fixed form", func(t *testing.T) {
		if got, want := good.Line(false), "verdict: rooms=80 cut_by_scale_in=0 instances=2->6->2"; got != want {
			t.Errorf("got %q, want %q", got, want)
		}
		if got, want := with(func(v *demo.Verdict) { v.ByScaleIn = 9 }).Line(true), "naive: rooms=80 cut_by_scale_in=9 instances=2->6->2"; got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	})
	for _, tt := range []struct {
		name string
		v    demo.Verdict
		good bool
	}{
		{"no room cut, grown and shrunk", good, true},
		{"a room cut by scale-in", with(func(v *demo.Verdict) { v.ByScaleIn = 1 }), false},
		{"not grown far enough", with(func(v *demo.Verdict) { v.Most = 3 }), false},
		{"not come back", with(func(v *demo.Verdict) { v.Last = 3 }), false},
		{"begun with too many", with(func(v *demo.Verdict) { v.First = 3 }), false},
		{"hardly any load", with(func(v *demo.Verdict) { v.Rooms = 35 }), false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if got := tt.v.Good(); got != tt.good {
				t.Errorf("good: got %v, want %v (%v)", got, tt.good, tt.v.Wants())
			}
		})
	}
}

func TestRun_BadFlags(t *testing.T) {
	for flag, change := range map[string]func(*demo.Options){
		"--duration-scale": func(o *demo.Options) { o.Scale = 0.1 },
		"--rooms":          func(o *demo.Options) { o.Rooms = 3 },
		"--janus":          func(o *demo.Options) { o.Media = "fake" },
		"--tolerance":      func(o *demo.Options) { o.Tolerance = -1 },
	} {
		t.Run("a bad value of "+flag+" is named before anything starts", func(t *testing.T) {
			o := demo.DefaultOptions()
			change(&o)
			var out bytes.Buffer
			err := demo.Run(t.Context(), o, &out)
			if err == nil || !strings.HasPrefix(err.Error(), flag+": ") {
				t.Errorf("got %v, want an error of %s", err, flag)
			}
			if out.Len() > 0 {
				t.Errorf("it said %q", out.String())
			}
		})
	}
}
