package janus

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"github.com/roomscaler/roomscaler/broker"
)

// reply is what the core answers. A member is nil when the answer does not have it: absent is not empty.
type reply struct {
	Janus       string     `json:"janus"`
	Transaction string     `json:"transaction"`
	Error       *coreError `json:"error"`
	Sessions    *[]uint64  `json:"sessions"`
	Handles     *[]uint64  `json:"handles"`
	Accept      *bool      `json:"accept"`
	Status      *struct {
		SessionTimeout int64 `json:"session_timeout"`
	} `json:"status"`
	Info     *handleInfo     `json:"info"`
	Response json.RawMessage `json:"response"`
}

// coreError is an error of the core or, with other codes, of the videoroom.
type coreError struct {
	Code   int    `json:"code"`
	Reason string `json:"reason"`

	shown string // the reason without secrets
}

func (e *coreError) Error() string { return fmt.Sprintf("%d %s", e.Code, e.shown) }

// Codes of the core.
const (
	coreUnauthorized = 403
	coreInvalidPath  = 457
	coreNoSession    = 458
	coreNoHandle     = 459
	coreNoPlugin     = 460
	coreUnexpected   = 469
	coreUnknown      = 490
)

// readReply takes an answer apart. An error that the core says is in the reply.
func readReply(verb, transaction string, status int, body []byte) (reply, error) {
	if status != http.StatusOK {
		return reply{}, readStatus(verb, status)
	}
	var r reply
	if err := json.Unmarshal(body, &r); err != nil {
		return reply{}, badAnswer(verb, errors.New("the answer is not what Janus says"))
	}
	switch {
	case r.Janus == "error" && r.Error != nil:
		return r, nil
	case r.Janus != "success" || r.Error != nil:
		return reply{}, badAnswer(verb, errors.New(`the answer is neither "success" nor "error"`))
	case r.Transaction != transaction:
		return reply{}, badAnswer(verb, errors.New("the answer is for another request"))
	}
	return r, nil
}

func readStatus(verb string, status int) error {
	err := fmt.Errorf("%s: HTTP status %d", verb, status)
	switch {
	case status == http.StatusNotFound:
		return refused(broker.FaultAdminOff, adviceNotAdmin, err)
	case status == http.StatusForbidden:
		return refused(broker.FaultUnauthorized, adviceACL, err)
	case status < 400:
		return refused(broker.FaultOther, adviceProxy, err)
	}
	return uncertain(broker.FaultOther, adviceProxy, err)
}

func readCoreError(verb string, e *coreError) error {
	err := fmt.Errorf("%s: %w", verb, e)
	switch e.Code {
	case coreUnauthorized:
		return refused(broker.FaultUnauthorized, adviceSecret, err)
	case coreInvalidPath:
		return refused(broker.FaultAdminOff, adviceNotAdmin, err)
	case coreNoPlugin:
		return refused(broker.FaultPluginMissing, advicePlugin, err)
	case coreUnexpected, coreUnknown: // said when the plugin gave no sensible answer
		return uncertain(broker.FaultOther, adviceStuck, err)
	}
	return refused(broker.FaultOther, adviceOther, err)
}

// isCode reports whether err is Janus's own refusal with one of the codes.
func isCode(err error, codes ...int) bool {
	var e *coreError
	if !errors.As(err, &e) {
		return false
	}
	for _, c := range codes {
		if e.Code == c {
			return true
		}
	}
	return false
}

// printable returns a server's words cut to a length that fits an error, without control characters.
func printable(s string) string {
	if len(s) > 200 {
		s = s[:200] + "…"
	}
	return strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f {
			return ' '
		}
		return r
	}, strings.ToValidUTF8(s, "?"))
}
