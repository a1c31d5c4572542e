package redisstore

import (
	"strings"
	"testing"
)

// FuzzReply: whatever a server answers, reading it neither fails loudly nor makes up a pin.
func FuzzReply(f *testing.F) {
	f.Add("ok\nroom\njanus-0\x1flife\x1f9007199254740991\x1flive\x1f2\x1f1\x1f5\x1f6\x1f7\x1f8\x1freq\x1f{\"s\":\"a\",\"l\":{\"b\":\"c\"}}")
	f.Add("seal\njanus-0\n0\nmark\n1")
	f.Add("ok\njanus-0\nlife\x1f0\x1f0\x1f0\x1f0\x1f1\x1faddr\x1f0\x1f0\x1f\x1f1\x1f-1\x1f1\x1f1\x1f1\x1f\x1f\x1f-1\x1f0\x1f0\x1f-1\x1f\x1f1\x1f1\x1f-1\x1f\x1f\x1fhook\x1f5\x1f0\x1fwhy\n-1")
	f.Add("ok\nterm\nready\n5\n-1\n0")
	f.Add("noinfo\nwhy")
	f.Fuzz(func(t *testing.T, s string) {
		r, err := readReply("try", strings.Split(s, "\n"))
		if err != nil {
			return
		}
		again := func() *reply { c := r; return &c }
		if v := again(); true {
			if p := v.pin(v.text()); v.bad && p.Epoch != 0 {
				t.Errorf("got %+v of a bad record", p)
			}
		}
		if v := again(); true {
			if in := v.instance(); v.bad && in.Incarnation != "" {
				t.Errorf("got %+v of a bad record", in)
			}
		}
		again().state()
		again().plan()
		if _, err := pinsOf("try", r, nil); err == nil && len(r.fields)%2 != 0 {
			t.Error("got pins of an odd number of fields")
		}
	})
}

func FuzzQuote(f *testing.F) {
	f.Add("a\x1fb\x1ec")
	f.Add("\x1ea\x1eb\x1e\x1f")
	f.Fuzz(func(t *testing.T, s string) {
		q := quote(s)
		if strings.Contains(q, separator) || unquote(q) != s {
			t.Errorf("%q became %q and then %q", s, q, unquote(q))
		}
	})
}
