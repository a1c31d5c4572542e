package storetest

import (
	"fmt"
	"testing"
	"time"

	"github.com/roomscaler/roomscaler/broker"
)

func capacityClauses() []clause {
	return []clause{
		{"the hard limit counts sessions, reservations and this claim", nothing, func(t *testing.T, k *kit) {
			k.ready(1)
			k.look(0, sessions(4))
			limited := func(room string, expected int) broker.ClaimRequest {
				r := request(room, expected, 1)
				r.Hard = 10
				return r
			}
			k.claim(limited("a", 3))
			k.refused(limited("b", 4))
			k.claim(limited("c", 3))
			k.refused(limited("d", 1))
			k.teardown("a")
			k.claim(limited("d", 3))
		}},
		{"the hard limit holds for first as well", nothing, func(t *testing.T, k *kit) {
			k.ready(2)
			k.look(0, sessions(9))
			r := request("a", 2, 2)
			r.Pick, r.Hard = broker.PickFirst, 10
			if got := k.claim(r).Instance; got != name(1) {
				t.Errorf("got %s, want %s", got, name(1))
			}
		}},
		{"a burst between two looks spreads evenly", nothing, func(t *testing.T, k *kit) {
			k.ready(3)
			for i := range 30 {
				k.claim(request(fmt.Sprint("room-", i), 2, 3))
			}
			for i := range 3 {
				if in := k.instance(i); in.Pins != 10 || in.Reserved != 20 {
					t.Errorf("%s: got %d pins, %d reserved; want 10 and 20", in.Name, in.Pins, in.Reserved)
				}
			}
		}},
		{"a refused room is demand, once, with what it expects", nothing, func(t *testing.T, k *kit) {
			k.ready(1)
			k.mark(0, broker.OwnerHook)
			k.refused(request("a", 3, 1))
			k.refused(request("a", 5, 1))
			k.refused(request("b", 2, 1))
			if got, want := k.facts().Demand, (broker.Demand{Rooms: 2, Participants: 7}); got != want {
				t.Errorf("got %+v, want %+v", got, want)
			}
		}},
		{"success ends a room's demand", nothing, func(t *testing.T, k *kit) {
			k.ready(1)
			k.mark(0, broker.OwnerHook)
			k.refused(request("a", 3, 1))
			k.refused(request("b", 2, 1))
			k.unmark(0, broker.OwnerHook)
			k.claim(request("a", 3, 1))
			if got, want := k.facts().Demand, (broker.Demand{Rooms: 1, Participants: 2}); got != want {
				t.Errorf("got %+v, want %+v", got, want)
			}
		}},
		{"demand is forgotten after DemandTTL from the last refusal", aClock, func(t *testing.T, k *kit) {
			k.ready(1)
			k.mark(0, broker.OwnerHook)
			k.refused(request("a", 3, 1))
			k.refused(request("b", 2, 1))
			k.pass(broker.DemandTTL - time.Second)
			k.refused(request("a", 3, 1))
			k.pass(2 * time.Second)
			if got, want := k.facts().Demand, (broker.Demand{Rooms: 1, Participants: 3}); got != want {
				t.Errorf("got %+v, want only the room refused again, %+v", got, want)
			}
			k.pass(broker.DemandTTL)
			if got := k.facts().Demand; got != (broker.Demand{}) {
				t.Errorf("got %+v, want none", got)
			}
		}},
	}
}
