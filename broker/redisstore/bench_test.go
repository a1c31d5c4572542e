package redisstore_test

import (
	"fmt"
	"testing"

	"github.com/roomscaler/roomscaler/broker"
	"github.com/roomscaler/roomscaler/broker/redisstore"
	"github.com/roomscaler/roomscaler/test/procs"
)

func benchStore(b *testing.B, instances int) (*redisstore.Store, broker.Term, []broker.Candidate) {
	b.Helper()
	r, err := procs.StartRedis(b.Context(), procs.RedisOptions{})
	procs.Need(b, err)
	b.Cleanup(r.Kill)
	s, err := redisstore.Open("redis://"+r.Addr(), redisstore.Options{Pool: "bench"})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { s.Close() })
	st, err := s.Begin(b.Context())
	if err != nil {
		b.Fatal(err)
	}
	var candidates []broker.Candidate
	for i := range instances {
		c := broker.Candidate{Instance: fmt.Sprintf("janus-%d", i), Incarnation: "life"}
		candidates = append(candidates, c)
		_, err := s.Record(b.Context(), st.Term, broker.LookReport{
			Instance: c.Instance, Ordinal: i, Address: "http://127.0.0.1:7088/admin", Listed: true, Begin: st.Now, Incarnation: c.Incarnation, Answered: true,
		})
		if err != nil {
			b.Fatal(err)
		}
	}
	if _, err := s.Finish(b.Context(), st.Term, 0); err != nil {
		b.Fatal(err)
	}
	return s, st.Term, candidates
}

func BenchmarkLookup(b *testing.B) {
	s, term, candidates := benchStore(b, 1)
	if _, _, err := s.Claim(b.Context(), term, broker.ClaimRequest{Room: "room", Candidates: candidates}); err != nil {
		b.Fatal(err)
	}
	for _, touch := range []bool{false, true} {
		b.Run(fmt.Sprintf("touch=%v", touch), func(b *testing.B) {
			for b.Loop() {
				if _, _, err := s.Lookup(b.Context(), "room", touch); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func BenchmarkClaim(b *testing.B) {
	s, term, candidates := benchStore(b, 128)
	n := 0
	for _, size := range []int{1, 32, 128} {
		b.Run(fmt.Sprintf("candidates=%d", size), func(b *testing.B) {
			for b.Loop() {
				n++
				r := broker.ClaimRequest{Room: fmt.Sprintf("room-%d", n), Expected: 1, Pick: broker.PickLeast, Candidates: candidates[:size]}
				if _, _, err := s.Claim(b.Context(), term, r); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func BenchmarkFacts(b *testing.B) {
	for _, size := range []int{10, 1000} {
		b.Run(fmt.Sprintf("instances=%d", size), func(b *testing.B) {
			s, _, _ := benchStore(b, size)
			for b.Loop() {
				if _, err := s.Facts(b.Context()); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
