package janus_test

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/roomscaler/roomscaler/broker"
	"github.com/roomscaler/roomscaler/test/procs"
)

// everySetting is a request's object with each setting that may be chosen.
const everySetting = `{"publishers":12,"bitrate":512000,"bitrate_cap":true,"fir_freq":10,"audiocodec":"opus,pcmu","videocodec":"vp9,vp8",
	"vp9_profile":"2","h264_profile":"42e01f","opus_fec":false,"opus_dtx":true,"audiolevel_ext":true,"audiolevel_event":true,
	"audio_active_packets":50,"audio_level_average":30,"videoorient_ext":false,"playoutdelay_ext":false,"transport_wide_cc_ext":false,
	"record":false,"lock_record":true,"notify_joining":true,"require_pvtid":true,"require_e2ee":true,"signed_tokens":false,"dummy_publisher":false}`

func decode(t *testing.T, s string) map[string]any {
	t.Helper()
	var m map[string]any
	if err := json.Unmarshal([]byte(s), &m); err != nil {
		t.Fatal(err)
	}
	return m
}

func TestBackend_CheckSettings(t *testing.T) {
	b := backend(adminSecret, "")
	t.Run("none and every one that may be chosen are taken, and by Janus too", func(t *testing.T) {
		all := decode(t, everySetting)
		for _, s := range []map[string]any{nil, {}, all, {"publishers": json.Number("3")}, {"publishers": 3}} {
			if err := b.CheckSettings(s); err != nil {
				t.Errorf("%v: %v", s, err)
			}
		}
		s := start(t, procs.JanusOptions{}, "")
		r := spec("r", 1000)
		r.Settings = all
		s.create(t, r)
		listed, err := s.client(t).Ask(t.Context(), map[string]any{"request": "list"})
		if err != nil {
			t.Fatal(err)
		}
		room := listed["list"].([]any)[0].(map[string]any)
		for setting, listedAs := range map[string]string{"publishers": "max_publishers", "bitrate": "bitrate", "videocodec": "videocodec", "require_e2ee": "require_e2ee", "opus_dtx": "opus_dtx"} {
			want, err := json.Marshal(all[setting])
			if err != nil {
				t.Fatal(err)
			}
			got, err := json.Marshal(room[listedAs])
			if err != nil {
				t.Fatal(err)
			}
			if string(got) != string(want) {
				t.Errorf("%s is %s, want %s", setting, got, want)
			}
		}
	})
	t.Run("a room without settings lets in more than Janus's default of three", func(t *testing.T) {
		s := start(t, procs.JanusOptions{}, "")
		s.create(t, spec("r", 1000))
		listed, err := s.client(t).Ask(t.Context(), map[string]any{"request": "list"})
		if err != nil {
			t.Fatal(err)
		}
		if got := listed["list"].([]any)[0].(map[string]any)["max_publishers"]; got != json.Number("100") {
			t.Errorf("max_publishers %v", got)
		}
	})
	for _, c := range []struct{ name, object, field, want string }{
		{"what the broker sets", `{"secret":"x"}`, "janus.secret", "use audio_active_packets"},
		{"the admin key", `{"admin_key":"x"}`, "janus.admin_key", "cannot"},
		{"permanence", `{"permanent":true}`, "janus.permanent", "cannot"},
		{"the id", `{"room":1}`, "janus.room", "cannot"},
		{"the description", `{"description":"x"}`, "janus.description", "cannot"},
		{"privacy", `{"is_private":false}`, "janus.is_private", "cannot"},
		{"the PIN", `{"pin":"x"}`, "janus.pin", "cannot"},
		{"the request itself", `{"request":"destroy"}`, "janus.request", "cannot"},
		{"a folder on the server", `{"rec_dir":"/etc"}`, "janus.rec_dir", "cannot"},
		{"a string for a number", `{"publishers":"3"}`, "janus.publishers", "must be a whole number from 1 to 100000"},
		{"a fraction", `{"bitrate":1.5}`, "janus.bitrate", "must be a whole number"},
		{"a number out of range", `{"audio_level_average":128}`, "janus.audio_level_average", "from 1 to 127"},
		{"a number out of all ranges", `{"bitrate":1e300}`, "janus.bitrate", "must be a whole number"},
		{"a number for a flag", `{"record":1}`, "janus.record", "must be true or false"},
		{"null", `{"record":null}`, "janus.record", "must be true or false"},
		{"an unknown codec", `{"videocodec":"vp8,theora"}`, "janus.videocodec", "vp8, vp9, h264"},
		{"an odd profile", `{"vp9_profile":"2;x"}`, "janus.vp9_profile", "letters and digits"},
	} {
		t.Run(c.name+" is refused by name", func(t *testing.T) {
			var invalid *broker.InvalidError
			err := b.CheckSettings(decode(t, c.object))
			if !errors.As(err, &invalid) || invalid.Field != c.field {
				t.Fatalf("got %v, want an InvalidError for %s", err, c.field)
			}
			if want := strings.Replace(c.want, "cannot", "is no room setting that can be chosen", 1); !strings.Contains(invalid.Want, want) {
				t.Errorf("%q does not say %q", invalid.Want, want)
			}
		})
	}
}
