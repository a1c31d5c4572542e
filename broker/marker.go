package broker

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"sort"
	"strconv"
	"strings"
)

// RoomMark is what a room's description on a media server says of it, so that the
// directory can be rebuilt from the servers alone.
type RoomMark struct {
	Pool     string
	Room     string
	Epoch    Epoch
	Instance string // for which the room was made; on another it is a copy, or went to a wrong address. "" = not said
	Expected int
	Settings string
	Labels   map[string]string
}

// InstanceMark is the marker that carries an instance's identity.
type InstanceMark struct {
	Pool        string
	Instance    string
	Incarnation string
}

// RoomKey derives everything secret about rooms: what cannot be derived is lost
// with the store.
type RoomKey []byte

const markPrefix = "roomscaler:"

type markForm struct {
	Kind        string            `json:"k"` // "room" or "instance"
	Pool        string            `json:"p"`
	Room        string            `json:"r,omitempty"`
	Epoch       Epoch             `json:"e,omitempty"`
	Expected    int               `json:"x,omitempty"`
	Settings    string            `json:"s,omitempty"`
	Labels      map[string]string `json:"l,omitempty"`
	Instance    string            `json:"i,omitempty"`
	Incarnation string            `json:"n,omitempty"`
	Seal        string            `json:"m"` // MAC over all the others
}

// Describe returns the description that marks a room.
func (k RoomKey) Describe(m RoomMark) string {
	return k.encode(markForm{Kind: "room", Pool: m.Pool, Room: m.Room, Epoch: m.Epoch, Instance: m.Instance, Expected: m.Expected, Settings: m.Settings, Labels: m.Labels})
}

// DescribeInstance returns the description of an instance's marker.
func (k RoomKey) DescribeInstance(m InstanceMark) string {
	return k.encode(markForm{Kind: "instance", Pool: m.Pool, Instance: m.Instance, Incarnation: m.Incarnation})
}

// ReadRoom reads a room's description. False for one that is not ours: anybody may
// make rooms on a plain Janus, so only a description that verifies counts.
func (k RoomKey) ReadRoom(description string) (RoomMark, bool) {
	f, ok := k.decode(description, "room")
	if !ok || f.Epoch <= 0 || CheckRoom(f.Room) != nil {
		return RoomMark{}, false
	}
	return RoomMark{Pool: f.Pool, Room: f.Room, Epoch: f.Epoch, Instance: f.Instance, Expected: f.Expected, Settings: f.Settings, Labels: f.Labels}, true
}

// ReadInstance reads the description of an instance's marker.
func (k RoomKey) ReadInstance(description string) (InstanceMark, bool) {
	f, ok := k.decode(description, "instance")
	if !ok || f.Incarnation == "" {
		return InstanceMark{}, false
	}
	return InstanceMark{Pool: f.Pool, Instance: f.Instance, Incarnation: f.Incarnation}, true
}

// Secret derives the room's secret: who knows it may destroy and edit the room.
func (k RoomKey) Secret(pool, room string, e Epoch) string {
	return base64.RawURLEncoding.EncodeToString(k.mac("secret", pool, room, e.String()))
}

// PIN derives the room's join PIN: who knows it may enter.
func (k RoomKey) PIN(pool, room string, e Epoch) string {
	return base64.RawURLEncoding.EncodeToString(k.mac("pin", pool, room, e.String())[:12])
}

// MarkerSecret derives the secret of an instance's marker.
func (k RoomKey) MarkerSecret(pool string) string {
	return base64.RawURLEncoding.EncodeToString(k.mac("marker", pool))
}

func (k RoomKey) encode(f markForm) string {
	f.Seal = k.seal(f)
	b, err := json.Marshal(f)
	if err != nil {
		panic(err) // strings and numbers alone: cannot fail
	}
	return markPrefix + string(b)
}

func (k RoomKey) decode(description, kind string) (markForm, bool) {
	var f markForm
	rest, ok := strings.CutPrefix(description, markPrefix)
	if !ok || json.Unmarshal([]byte(rest), &f) != nil || f.Kind != kind {
		return f, false
	}
	return f, hmac.Equal([]byte(f.Seal), []byte(k.seal(f)))
}

func (k RoomKey) seal(f markForm) string {
	parts := []string{"mark", f.Kind, f.Pool, f.Room, f.Epoch.String(), strconv.Itoa(f.Expected), f.Settings, f.Instance, f.Incarnation}
	names := make([]string, 0, len(f.Labels))
	for n := range f.Labels {
		names = append(names, n)
	}
	sort.Strings(names)
	for _, n := range names {
		parts = append(parts, n, f.Labels[n])
	}
	return hex.EncodeToString(k.mac(parts...)[:10])
}

// mac binds the parts with their lengths, so that no two lists of parts run into
// the same bytes.
func (k RoomKey) mac(parts ...string) []byte {
	h := hmac.New(sha256.New, k)
	for _, p := range parts {
		h.Write([]byte(strconv.Itoa(len(p)) + ":" + p))
	}
	return h.Sum(nil)
}
