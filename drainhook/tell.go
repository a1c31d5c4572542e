package drainhook

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/roomscaler/roomscaler/broker/brokerapi"
)

// tell logs what the hook waits for: when that changes, and once a minute.
func (h *hook) tell(v seen, brokerErr, localErr error) {
	msg, level := "waiting for rooms to end", slog.LevelInfo
	attrs := []any{"rooms", h.rooms, "sessions", h.sessions}
	switch {
	case brokerErr != nil:
		msg, level = "no word from the broker; the local server's sessions decide meanwhile", slog.LevelWarn
		advice := adviceFor(brokerErr)
		if advice != "" {
			level = slog.LevelError
			attrs = append(attrs, "advice", advice)
		}
		attrs = append(attrs, "broker_error", brokerErr)
	case v.empty:
		msg = "the broker sees nobody any more"
	}
	if localErr != nil {
		level = max(level, slog.LevelWarn)
		attrs = append(attrs, "local_error", localErr)
		if brokerErr != nil {
			msg, level = "neither broker nor local server can be read; that counts as occupied", slog.LevelError
		}
	}
	state := fmt.Sprint(msg, h.rooms, h.sessions, reasonOf(brokerErr), localErr != nil)
	if state == h.said && h.elapsed-h.saidAt < repeatAfter {
		return
	}
	h.said, h.saidAt = state, h.elapsed
	attrs = append(attrs, "held", h.elapsed.Round(time.Second), "left", (h.Grace - h.elapsed).Round(time.Second))
	h.Log.Log(context.Background(), level, msg, attrs...)
}

// reasonOf is the part of an error that changes only when the cause does.
func reasonOf(err error) string {
	var p *brokerapi.Problem
	switch {
	case err == nil:
		return ""
	case errors.As(err, &p):
		return p.Code
	}
	return "no answer"
}

// adviceFor says what to do about a refusal that will not go away by itself, "" for others.
func adviceFor(err error) string {
	const stranger = "give the hook the broker's own URL; something else answers there"
	if errors.Is(err, errNoBroker) {
		return stranger
	}
	var p *brokerapi.Problem
	if !errors.As(err, &p) {
		return ""
	}
	switch p.Code {
	case brokerapi.CodeUnauthorized:
		return "give the hook a token that the broker knows"
	case brokerapi.CodeForbidden:
		return "give the hook a token of scope instance for this pool"
	case brokerapi.CodePoolNotFound:
		return "give the hook the pool's name as the broker has it"
	case brokerapi.CodeInstanceNotFound:
		return "give the hook the instance's name as the broker's finder lists it"
	case brokerapi.CodeUnknown:
		return stranger
	}
	return ""
}
