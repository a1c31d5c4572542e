package broker_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/roomscaler/roomscaler/broker"
	"pgregory.net/rapid"
)

var testKey = broker.RoomKey("0123456789abcdef")

func TestRoomKey_Marks(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		want := broker.RoomMark{
			Pool: "p", Room: rapid.StringN(1, 40, -1).Filter(func(s string) bool { return broker.CheckRoom(s) == nil }).Draw(t, "room"),
			Epoch: broker.Epoch(rapid.Int64Range(1, 1<<53-1).Draw(t, "epoch")), Instance: rapid.StringMatching(`[a-z0-9-]{0,9}`).Draw(t, "instance"), Expected: rapid.IntRange(0, 1000).Draw(t, "expected"),
			Settings: rapid.StringMatching(`[0-9a-f]{0,16}`).Draw(t, "settings"),
			Labels:   rapid.MapOfN(rapid.StringMatching(`[a-z]{1,5}`), rapid.StringMatching(`.{0,5}`), 1, 3).Draw(t, "labels"),
		}
		d := testKey.Describe(want)
		got, ok := testKey.ReadRoom(d)
		if !ok || cmp.Diff(got, want) != "" {
			t.Fatalf("%q reads as %+v, %v; want %+v", d, got, ok, want)
		}
		if _, ok := broker.RoomKey("another key, as long").ReadRoom(d); ok {
			t.Fatal("another key reads it too")
		}
		if _, ok := testKey.ReadInstance(d); ok {
			t.Fatal("a room's mark reads as an instance's")
		}
		i := rapid.IntRange(len("roomscaler:"), len(d)-1).Draw(t, "i")
		changed := d[:i] + string(rapid.ByteRange('0', '9').Draw(t, "b")) + d[i+1:]
		if got, ok := testKey.ReadRoom(changed); ok && cmp.Diff(got, want) != "" {
			t.Fatalf("a forged mark verifies: %q", changed)
		}
	})
}

func TestRoomKey_InstanceMark(t *testing.T) {
	want := broker.InstanceMark{Pool: "p", Instance: "janus-3", Incarnation: "abc"}
	got, ok := testKey.ReadInstance(testKey.DescribeInstance(want))
	if !ok || got != want {
		t.Errorf("%+v, %v; want %+v", got, ok, want)
	}
}

func TestRoomKey_Secrets(t *testing.T) {
	seen := map[string]string{}
	for what, s := range map[string]string{
		"secret": testKey.Secret("p", "r", 1), "PIN": testKey.PIN("p", "r", 1), "marker": testKey.MarkerSecret("p"),
		"secret of a later claim": testKey.Secret("p", "r", 2), "secret of another room": testKey.Secret("p", "r1", 1),
		"secret of room 11, epoch 1": testKey.Secret("p", "r11", 1), "secret of another pool": testKey.Secret("p2", "r", 1),
	} {
		if len(s) < 16 || strings.ContainsAny(s, "+/= ") {
			t.Errorf("%s %q is short or needs escaping", what, s)
		}
		if other, ok := seen[s]; ok {
			t.Errorf("%s is that of %s", what, other)
		}
		seen[s] = what
	}
}

func FuzzReadMark(f *testing.F) {
	f.Add(testKey.Describe(broker.RoomMark{Pool: "p", Room: "r", Epoch: 1}))
	f.Add(testKey.DescribeInstance(broker.InstanceMark{Pool: "p", Instance: "j-0", Incarnation: "n"}))
	f.Add(`roomscaler:{"k":"room","p":"p","r":"r","e":1e400,"m":""}`)
	f.Add("Room 1234")
	f.Fuzz(func(t *testing.T, s string) {
		if m, ok := testKey.ReadRoom(s); ok && testKey.Describe(m) == "" {
			t.Error("a mark that reads cannot be written")
		}
		testKey.ReadInstance(s)
	})
}
