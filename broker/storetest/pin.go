package storetest

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/roomscaler/roomscaler/broker"
)

func pinClauses() []clause {
	return []clause{
		{"Confirm makes the pin live, from now", nothing, func(t *testing.T, k *kit) {
			k.ready(1)
			p := k.pinOn("a", 0, 1)
			k.tick()
			got := k.confirm(p)
			want := p
			want.State, want.Since = broker.Live, got.Since
			if diff := cmp.Diff(want, got); diff != "" || got.Since <= p.Since {
				t.Errorf("got since %v after %v (-want +got):\n%s", got.Since, p.Since, diff)
			}
			if diff := cmp.Diff(want, k.pinned("a")); diff != "" {
				t.Errorf("looked up (-want +got):\n%s", diff)
			}
		}},
		{"a live pin stays as it is", nothing, func(t *testing.T, k *kit) {
			k.ready(1)
			p := k.confirm(k.pinOn("a", 0, 1))
			k.tick()
			if diff := cmp.Diff(p, k.confirm(p)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		}},
		{"Confirm of another epoch, or no pin, is stale", nothing, func(t *testing.T, k *kit) {
			k.ready(1)
			p := k.pinOn("a", 0, 1)
			for _, e := range []broker.Epoch{p.Epoch - 1, p.Epoch + 1, 0} {
				_, err := k.Store.Confirm(k.ctx, k.term, "a", e)
				k.wantError("Confirm of another epoch", err, broker.ErrStale)
			}
			_, err := k.Store.Confirm(k.ctx, k.term, "b", p.Epoch)
			k.wantError("Confirm without a pin", err, broker.ErrStale)
			if got := k.pinned("a").State; got != broker.Creating {
				t.Errorf("got state %q, want creating", got)
			}
		}},
		{"Lookup with touch sets LastSeen, without does not", nothing, func(t *testing.T, k *kit) {
			k.ready(1)
			p := k.pinOn("a", 0, 1)
			k.tick()
			if got := k.pinned("a").LastSeen; got != p.LastSeen {
				t.Errorf("without: got %v, want %v", got, p.LastSeen)
			}
			got, st, err := k.Store.Lookup(k.ctx, "a", true)
			k.noError("Lookup", err)
			if got.LastSeen <= p.LastSeen || got.LastSeen > st.Now || st.Term != k.term || st.Phase != broker.Ready {
				t.Errorf("with: got %v after %v, state %+v; want now, and the state", got.LastSeen, p.LastSeen, st)
			}
			if again := k.pinned("a").LastSeen; again != got.LastSeen {
				t.Errorf("afterwards: got %v, want %v", again, got.LastSeen)
			}
		}},
		{"Lookup of a room without a pin is ErrRoomNotFound, with the state", nothing, func(t *testing.T, k *kit) {
			k.ready(1)
			_, st, err := k.Store.Lookup(k.ctx, "a", true)
			k.wantError("Lookup", err, broker.ErrRoomNotFound)
			if st.Term != k.term || st.Phase != broker.Ready {
				t.Errorf("got %+v, want term %q in phase ready", st, k.term)
			}
		}},
		{"Pins lists in order of room name, in pages, by instance", nothing, func(t *testing.T, k *kit) {
			k.ready(2)
			rooms := []string{"b", "a", "é", "a b", "Z", "a\\", "日本", "aa"}
			for i, room := range rooms {
				k.pinOn(room, i%2, 1)
			}
			want := []string{"Z", "a", "a b", "a\\", "aa", "b", "é", "日本"}
			if diff := cmp.Diff(want, k.names("", "", 0)); diff != "" {
				t.Errorf("all (-want +got):\n%s", diff)
			}
			var got []string
			for after := ""; ; {
				page := k.names("", after, 3)
				if len(page) > 3 {
					t.Fatalf("got %d, want at most 3", len(page))
				}
				got = append(got, page...)
				if len(page) < 3 {
					break
				}
				after = page[2]
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("by pages (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff([]string{"Z", "b", "é", "日本"}, k.names(name(0), "", 0)); diff != "" {
				t.Errorf("of one instance (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff([]string{"b", "é"}, k.names(name(0), "Z", 2)); diff != "" {
				t.Errorf("a page of one instance (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff([]string{"b", "é"}, k.names("", "a~", 2)); diff != "" {
				t.Errorf("after a name that is not there (-want +got):\n%s", diff)
			}
			if got := k.names(name(7), "", 0); len(got) != 0 {
				t.Errorf("of an unknown instance: got %q, want none", got)
			}
		}},
		{"a list of many pins pages through each once", nothing, func(t *testing.T, k *kit) {
			k.ready(1)
			const n = 1300
			var rooms []broker.Adoption
			for i := range n {
				rooms = append(rooms, broker.Adoption{Room: fmt.Sprintf("room-%04d", (i*7919)%n), Epoch: broker.Epoch(i + 1)})
			}
			_, err := k.Store.Adopt(k.ctx, k.term, name(0), life(0), rooms)
			k.noError("Adopt", err)
			for i := 0; i < n; i += 3 {
				k.teardown(fmt.Sprintf("room-%04d", i))
			}
			next, after := 0, ""
			for page := k.names("", "", 100); len(page) > 0; page = k.names("", after, 100) {
				for _, got := range page {
					if next%3 == 0 {
						next++
					}
					if want := fmt.Sprintf("room-%04d", next); got != want {
						t.Fatalf("got %s, want %s", got, want)
					}
					next++
				}
				after = page[len(page)-1]
			}
			if next < n-1 {
				t.Errorf("got the last at %d of %d", next, n)
			}
		}},
		{"an answer shares nothing with the store", nothing, func(t *testing.T, k *kit) {
			k.ready(1)
			r := request("a", 1, 1)
			r.Labels = map[string]string{"x": "1"}
			k.claim(r).Labels["x"] = "2"
			k.pinned("a").Labels["x"] = "2"
			k.pins()[0].Labels["x"] = "2"
			k.mark(0, broker.OwnerHook).Marks[0].Grace = time.Hour
			k.facts().Instances[0].Marks[0].Owner = "nobody"
			if got := k.pinned("a").Labels["x"]; got != "1" {
				t.Errorf("labels: got %q, want the claim's", got)
			}
			if m, ok := k.instance(0).Mark(broker.OwnerHook); !ok || m.Grace != 0 {
				t.Errorf("marks: got %+v, want as it was set", m)
			}
		}},
	}
}

func (k *kit) names(instance, after string, limit int) []string {
	k.t.Helper()
	pins, err := k.Store.Pins(k.ctx, instance, after, limit)
	k.noError("Pins", err)
	var out []string
	for _, p := range pins {
		out = append(out, p.Room)
	}
	return out
}
