package report_test

import (
	"regexp"
	"strings"
	"testing"

	"github.com/roomscaler/roomscaler/test/lab/report"
)

func TestWrite(t *testing.T) {
	hostile := `</script><script>alert("x")</script><img src=x onerror=alert(1)>`
	var b strings.Builder
	err := report.Write(&b, report.Page{
		Title: hostile,
		Runs: []report.Run{{
			Name: hostile, Target: 10, Samples: []report.Sample{{T: 1, Sessions: 3}},
			Lanes: []report.Lane{{Name: "janus-0"}}, Cuts: []report.Cut{{Room: hostile, Lane: "janus-0"}},
		}, {Name: "second"}},
		Settings: []report.Setting{{Name: "seed", Value: hostile}},
	})
	if err != nil {
		t.Fatal(err)
	}
	got := b.String()
	t.Run("text from outside cannot become markup or script", func(t *testing.T) {
		if strings.Contains(got, `alert("x")</script>`) || strings.Contains(got, "<img") {
			t.Error("it can")
		}
		if n := strings.Count(got, "</script>"); n != 2 {
			t.Errorf("%d scripts end, want the page's own 2", n)
		}
	})
	t.Run("the page refers to nothing outside itself", func(t *testing.T) {
		bare := strings.ReplaceAll(got, "http://www.w3.org/2000/svg", "") // the name of SVG, not an address to load
		if m := regexp.MustCompile(`(?i)https?://|<[a-z]+ [^>]*src=|@import|url\(`).FindString(bare); m != "" {
			t.Errorf("found %q", m)
		}
	})
	t.Run("the runs' numbers are in it", func(t *testing.T) {
		if !strings.Contains(got, `"sessions":3`) || !strings.Contains(got, "second") {
			t.Error("they are not")
		}
	})
}
