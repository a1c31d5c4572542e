package backendtest

import (
	"errors"
	"testing"

	"github.com/roomscaler/roomscaler/broker"
)

var deeds = []struct {
	name string
	do   Deed
}{{"a hang", Hang}, {"a broken connection", Break}, {"a 500", Fail}, {"garbage", Garbage}}

func testFaults(t *testing.T, open func(*testing.T) *Server) {
	b := &bench{Server: open(t)}
	for _, d := range deeds {
		t.Run(d.name+" after a create took effect is uncertain, and the next create finds the room", func(t *testing.T) {
			r, at := b.spec("after "+d.name), b.at(t)
			trouble := b.Faults.Cause(Trouble{Match: b.Creates, Times: 1, After: true, Do: d.do})
			ctx, cancel := lookContext(t)
			defer cancel()
			wantFault(t, b.Backend.Create(ctx, at, r), broker.ErrUncertain)
			trouble.Stop()
			if !b.inspect(t, r).Exists {
				t.Fatal("the create had no effect, so this test shows nothing")
			}
			b.make(t, r)
		})
		t.Run(d.name+" after a destroy took effect is uncertain, and the next destroy succeeds", func(t *testing.T) {
			r, at := b.spec("ended "+d.name), b.at(t)
			b.make(t, r)
			trouble := b.Faults.Cause(Trouble{Match: b.Destroys, Times: 1, After: true, Do: d.do})
			ctx, cancel := lookContext(t)
			defer cancel()
			wantFault(t, b.Backend.Destroy(ctx, at, ref(r), broker.DestroyOptions{}), broker.ErrUncertain)
			trouble.Stop()
			if b.inspect(t, r).Exists {
				t.Fatal("the destroy had no effect, so this test shows nothing")
			}
			if err := b.Backend.Destroy(t.Context(), at, ref(r), broker.DestroyOptions{}); err != nil {
				t.Error(err)
			}
		})
		t.Run(d.name+" fails a look, a plant and an inspect with advice", func(t *testing.T) {
			at := b.at(t)
			trouble := b.Faults.Cause(Trouble{Do: d.do})
			defer trouble.Stop()
			ctx, cancel := lookContext(t)
			defer cancel()
			_, lookErr := b.Backend.Look(ctx, at, broker.LookOptions{})
			_, plantErr := b.Backend.Plant(ctx, at, "x")
			_, inspectErr := b.Backend.Inspect(ctx, at, broker.RoomRef{Room: "x", Epoch: 1})
			for _, err := range []error{lookErr, plantErr, inspectErr} {
				f := wantFault(t, err, certaintyOf(err))
				if f.Fault == "" || f.Advice == "" {
					t.Errorf("%v has fault %q and advice %q", err, f.Fault, f.Advice)
				}
				if f.Fault != broker.FaultTimeout && d.do == Hang {
					t.Errorf("fault %q, want %q", f.Fault, broker.FaultTimeout)
				}
			}
		})
	}
	t.Run("where nothing listens, nothing has an effect", func(t *testing.T) {
		at, r := b.at(t), b.spec("nowhere")
		b.Stop(t)
		if _, err := b.Backend.Look(t.Context(), at, broker.LookOptions{}); err == nil { // takes the end of a connection that was still open
			t.Fatal("it still answers")
		}
		_, err := b.Backend.Look(t.Context(), at, broker.LookOptions{})
		if f := wantFault(t, err, broker.ErrRefused); f.Fault != broker.FaultRefused {
			t.Errorf("fault %q, want %q", f.Fault, broker.FaultRefused)
		}
		wantFault(t, b.Backend.Create(t.Context(), at, r), broker.ErrRefused)
		wantFault(t, b.Backend.Destroy(t.Context(), at, ref(r), broker.DestroyOptions{}), broker.ErrRefused)
	})
}

// certaintyOf accepts either of the two for a call without effect.
func certaintyOf(err error) error {
	for _, is := range []error{broker.ErrRefused, broker.ErrUncertain} {
		if errors.Is(err, is) {
			return is
		}
	}
	return broker.ErrUncertain
}
