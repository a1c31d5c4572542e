package janus

import (
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"sort"
	"strings"

	"github.com/roomscaler/roomscaler/broker"
)

// setting says what a room setting takes.
type setting struct {
	want  string
	takes func(any) bool
}

// settings are those of the videoroom's create that an application may choose. Left out: what the broker
// itself sets (room, description, secret, pin, is_private, permanent, admin_key), what would shut out the people it sends there (allowed), and
// rec_dir, with which a caller could write to any folder of the server.
func settings() map[string]setting {
	flag := setting{"true or false", func(v any) bool { _, ok := v.(bool); return ok }}
	return map[string]setting{
		"publishers":            whole(1, 100_000),
		"bitrate":               whole(0, math.MaxUint32),
		"bitrate_cap":           flag,
		"fir_freq":              whole(0, 86_400),
		"audiocodec":            oneOrMore("opus", "isac32", "isac16", "pcmu", "pcma", "g722"),
		"videocodec":            oneOrMore("vp8", "vp9", "h264", "av1", "h265"),
		"vp9_profile":           token(),
		"h264_profile":          token(),
		"opus_fec":              flag,
		"opus_dtx":              flag,
		"audiolevel_ext":        flag,
		"audiolevel_event":      flag,
		"audio_active_packets":  whole(1, 100_000),
		"audio_level_average":   whole(1, 127),
		"videoorient_ext":       flag,
		"playoutdelay_ext":      flag,
		"transport_wide_cc_ext": flag,
		"record":                flag,
		"lock_record":           flag,
		"notify_joining":        flag,
		"require_pvtid":         flag,
		"require_e2ee":          flag,
		"signed_tokens":         flag,
		"dummy_publisher":       flag,
	}
}

// CheckSettings reports the first setting, in the order of their names, that the backend does not take.
func (b *Backend) CheckSettings(chosen map[string]any) error {
	known := settings()
	names := make([]string, 0, len(chosen))
	for name := range chosen {
		names = append(names, name)
	}
	sort.Strings(names)
	for _, name := range names {
		s, ok := known[name]
		if !ok {
			all := make([]string, 0, len(known))
			for n := range known {
				all = append(all, n)
			}
			sort.Strings(all)
			return &broker.InvalidError{Field: "janus." + printable(name), Want: "is no room setting that can be chosen; use " + strings.Join(all, ", ")}
		}
		if !s.takes(chosen[name]) {
			return &broker.InvalidError{Field: "janus." + name, Want: "must be " + s.want}
		}
	}
	return nil
}

// whole takes integers in any form in which a JSON reader may have left them.
func whole(least, most int64) setting {
	return setting{fmt.Sprintf("a whole number from %d to %d", least, most), func(v any) bool {
		var n int64
		switch v := v.(type) {
		case int:
			n = int64(v)
		case int64:
			n = v
		case float64:
			if v != math.Trunc(v) || math.Abs(v) > 1<<53 {
				return false
			}
			n = int64(v)
		case json.Number:
			i, err := v.Int64()
			if err != nil {
				return false
			}
			n = i
		default:
			return false
		}
		return least <= n && n <= most
	}}
}

func oneOrMore(names ...string) setting {
	return setting{"one or more, separated by commas, of " + strings.Join(names, ", "), func(v any) bool {
		s, ok := v.(string)
		if !ok {
			return false
		}
		for part := range strings.SplitSeq(s, ",") {
			if !slices.Contains(names, part) {
				return false
			}
		}
		return true
	}}
}

func token() setting {
	return setting{"1 to 16 letters and digits", func(v any) bool {
		s, ok := v.(string)
		return ok && len(s) > 0 && len(s) <= 16 && strings.Trim(s, "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ") == ""
	}}
}
