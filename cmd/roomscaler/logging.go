package main

import (
	"io"
	"log/slog"

	"github.com/spf13/pflag"
)

// logOptions are the flags of every long-running subcommand's log.
type logOptions struct{ format, level string }

func (o *logOptions) flags(f *pflag.FlagSet) {
	f.StringVar(&o.format, "log-format", "json", "format of the log on stderr: json or text")
	f.StringVar(&o.level, "log-level", "info", "least level that is logged: debug, info, warn or error")
}

func (o *logOptions) logger(w io.Writer) (*slog.Logger, error) {
	var level slog.Level
	if err := level.UnmarshalText([]byte(o.level)); err != nil {
		return nil, wrong("log-level", "%q is none of debug, info, warn, error", clip(o.level))
	}
	h := &slog.HandlerOptions{Level: level}
	switch o.format {
	case "json":
		return slog.New(slog.NewJSONHandler(w, h)), nil
	case "text":
		return slog.New(slog.NewTextHandler(w, h)), nil
	}
	return nil, wrong("log-format", "%q is neither json nor text", clip(o.format))
}
