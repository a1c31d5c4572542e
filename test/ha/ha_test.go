package ha

import (
	"testing"
	"testing/synctest"
	"time"
)

// TestG8_ReplicasKilled: three replicas of the scaler behind KEDA's round robin, one of them killed every few seconds
// through ten hours (two with the race detector). What is answered is one sequence of stored decisions, the pool does grow and shrink, and no room is
// cut off.
func TestG8_ReplicasKilled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1)
		w.run(hours * time.Hour)
		got := w.tally
		t.Logf("%+v", got)
		if got.cut > 0 {
			t.Errorf("%d rooms were cut off", got.cut)
		}
		if len(got.strange) > 0 {
			t.Errorf("%d answers were no stored decision: %v", len(got.strange), got.strange)
		}
		if jumps := w.notary.jumps; len(jumps) > 0 {
			t.Errorf("the stored decisions are no sequence: %v", jumps)
		}
		if got.kills < 300*hours || got.served < 100*hours || got.scaleIns < 20*hours || got.scaleOuts < 10*hours || got.highest < 10 || got.placed < 500*hours || got.lost < 10*hours {
			t.Errorf("the run shows too little: %+v", got)
		}
	})
}
