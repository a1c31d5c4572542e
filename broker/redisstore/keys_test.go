package redisstore_test

import (
	"flag"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/redis/go-redis/v9"

	"github.com/roomscaler/roomscaler/broker"
	"github.com/roomscaler/roomscaler/broker/redisstore"
)

var update = flag.Bool("update", false, "write the golden files anew")

// TestKeys holds the names and types of keys, which a release must not change: a
// broker of another version would not find the pool.
func TestKeys(t *testing.T) {
	m := startMini(t)
	client := redis.NewClient(&redis.Options{Addr: m.Addr(), Protocol: 2, DisableIdentity: true})
	s, err := redisstore.New(client, redisstore.Options{Pool: "media"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	walked(t, s)
	st := must(s.State(t.Context()))(t)
	for _, c := range []broker.ClaimRequest{
		{Room: "kept", Candidates: []broker.Candidate{{Instance: "janus-0", Incarnation: "life-0"}}},
		{Room: "refused"},
	} {
		_, _, _ = s.Claim(t.Context(), st.Term, c)
	}
	var lines []string
	for _, key := range m.Keys() {
		lines = append(lines, m.Type(key)+" "+key)
	}
	slices.Sort(lines)
	golden(t, "keys", strings.Join(lines, "\n")+"\n")
}

func golden(t *testing.T, name, got string) {
	t.Helper()
	file := filepath.Join("testdata", name+".golden")
	if *update {
		write(t, "testdata", name+".golden", []byte(got))
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("%s (-want +got):\n%s", file, diff)
	}
}
