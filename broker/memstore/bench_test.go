package memstore_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/roomscaler/roomscaler/broker"
	"github.com/roomscaler/roomscaler/broker/memstore"
)

// benchStore returns a ready store with 100 instances and the given number of pins.
func benchStore(b *testing.B, pins int) (*memstore.Store, broker.Term, []broker.Candidate) {
	b.Helper()
	ctx := context.Background()
	s := memstore.New(memstore.Options{})
	st, err := s.Begin(ctx)
	if err != nil {
		b.Fatal(err)
	}
	var candidates []broker.Candidate
	for i := range 100 {
		c := broker.Candidate{Instance: fmt.Sprint("janus-", i), Incarnation: "first"}
		_, err := s.Record(ctx, st.Term, broker.LookReport{Instance: c.Instance, Ordinal: i, Incarnation: c.Incarnation, Begin: st.Now, Answered: true})
		if err != nil {
			b.Fatal(err)
		}
		candidates = append(candidates, c)
	}
	if _, err := s.Finish(ctx, st.Term, 0); err != nil {
		b.Fatal(err)
	}
	for i := range pins {
		if _, _, err := s.Claim(ctx, st.Term, broker.ClaimRequest{Room: room(i), Expected: 1, Candidates: candidates}); err != nil {
			b.Fatal(err)
		}
	}
	return s, st.Term, candidates
}

// room spreads the names, as applications' ids are.
func room(i int) string { return fmt.Sprintf("room-%08x", uint32(i)*2654435761) }

func BenchmarkStore(b *testing.B) {
	for _, size := range []int{100, 100_000} {
		ctx := context.Background()
		s, term, candidates := benchStore(b, size)
		run := func(name string, call func(i int) error) {
			b.Run(fmt.Sprintf("%s/size=%d", name, size), func(b *testing.B) {
				for i := 0; b.Loop(); i++ {
					if err := call(i); err != nil {
						b.Fatal(err)
					}
				}
			})
		}
		run("Lookup", func(i int) error { _, _, err := s.Lookup(ctx, room(i%size), true); return err })
		run("ClaimAndEnd", func(i int) error {
			p, _, err := s.Claim(ctx, term, broker.ClaimRequest{Room: "x" + room(i), Expected: 1, Candidates: candidates})
			if err == nil {
				_, err = s.End(ctx, term, broker.EndRequest{Room: p.Room, Epoch: p.Epoch, Cause: broker.CauseTeardown})
			}
			return err
		})
		run("PinsPage", func(i int) error { _, err := s.Pins(ctx, "", room(i%size), 100); return err })
		run("PinsOfInstance", func(i int) error { _, err := s.Pins(ctx, candidates[i%100].Instance, "", 0); return err })
		run("Facts", func(int) error { _, err := s.Facts(ctx); return err })
	}
}
