package load_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/roomscaler/roomscaler/test/lab/load"
)

func sessions(rooms []load.Room, at time.Duration) int {
	n := 0
	for _, r := range rooms {
		if r.At <= at && at < r.At+r.Hold {
			n += r.People
		}
	}
	return n
}

func TestProfile_Plan(t *testing.T) {
	p := load.Demand(8, 54, 1)
	rooms := p.Plan(1)
	t.Run("the same seed gives the same rooms, another other ones", func(t *testing.T) {
		if d := cmp.Diff(rooms, p.Plan(1)); d != "" {
			t.Errorf("-want +got\n%s", d)
		}
		if cmp.Equal(rooms, p.Plan(2)) {
			t.Error("seed 2 gave the rooms of seed 1")
		}
	})
	t.Run("the sessions follow the demand up and stay at the peak", func(t *testing.T) {
		for at := 13 * time.Second; at < 70*time.Second; at += time.Second {
			got, want := float64(sessions(rooms, at)), p.Sessions(at)
			if got < want-4 {
				t.Errorf("at %v: %v sessions, want about %v", at, got, want)
			}
		}
	})
	t.Run("the long rooms outlive the fall of demand", func(t *testing.T) {
		long := 0
		for _, r := range rooms {
			if r.Long {
				long++
				if end := r.At + r.Hold; end < p.LongUntil[0] || end > p.LongUntil[1] {
					t.Errorf("%s ends at %v", r.Name, end)
				}
			}
		}
		if long != p.LongRooms {
			t.Errorf("%d long rooms, want %d", long, p.LongRooms)
		}
	})
	t.Run("when they have ended few sessions are left", func(t *testing.T) {
		if got := sessions(rooms, p.LongUntil[1]); got > 12 {
			t.Errorf("%d sessions then", got)
		}
	})
}
