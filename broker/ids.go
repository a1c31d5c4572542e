package broker

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// MaxRoomName is the greatest length of a room name in bytes.
const MaxRoomName = 256

var (
	poolForm     = regexp.MustCompile(`^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$`)
	instanceForm = regexp.MustCompile(`^[a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?$`)
	ordinalTail  = regexp.MustCompile(`(\d+)$`)
)

// InvalidError says which field of a request is wrong and how to mend it.
type InvalidError struct {
	Field string // the name as the caller wrote it
	Want  string // the remedy
}

func (e *InvalidError) Error() string { return e.Field + ": " + e.Want }

// CheckPool reports whether name can name a pool: a DNS label (RFC 1123), because
// it becomes part of store keys and metric labels.
func CheckPool(name string) error {
	if !poolForm.MatchString(name) {
		return &InvalidError{"pool", fmt.Sprintf("%q is no DNS label; use 1-63 of a-z, 0-9 and -", clip(name))}
	}
	return nil
}

// CheckInstance reports whether name can name an instance: a lower-case DNS name.
func CheckInstance(name string) error {
	if !instanceForm.MatchString(name) {
		return &InvalidError{"instance", fmt.Sprintf("%q is no DNS name; use 1-253 of a-z, 0-9, - and .", clip(name))}
	}
	return nil
}

// CheckRoom reports whether name can name a room: 1 to [MaxRoomName] bytes of UTF-8
// without control characters.
func CheckRoom(name string) error {
	switch {
	case name == "":
		return &InvalidError{"room", "is empty; give 1-256 bytes of UTF-8"}
	case len(name) > MaxRoomName:
		return &InvalidError{"room", fmt.Sprintf("has %d bytes; at most %d are allowed", len(name), MaxRoomName)}
	case !utf8.ValidString(name):
		return &InvalidError{"room", "is not UTF-8; encode it as UTF-8 before percent-encoding it"}
	case strings.ContainsFunc(name, unicode.IsControl):
		return &InvalidError{"room", "has a control character; remove it"}
	}
	return nil
}

// OrdinalOf returns the number at the end of an instance's name, as a StatefulSet
// gives it, and whether there is one.
func OrdinalOf(name string) (int, bool) {
	m := ordinalTail.FindString(name)
	if m == "" {
		return 0, false
	}
	n, err := strconv.Atoi(m)
	return n, err == nil && n <= MaxOrdinal
}

// MaxOrdinal is the highest ordinal that is believed: a larger one is a mistake in
// a list, and would raise the floor of the desired count to it.
const MaxOrdinal = 99_999

// MaxParticipants is the most that a room may be said to be for. Sums of far larger numbers do not fit into
// what a store keeps of an instance, and one such room would make the whole pool unreadable.
const MaxParticipants = 100_000

func clip(s string) string {
	if len(s) > 40 {
		return s[:40] + "…"
	}
	return s
}
