package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/roomscaler/roomscaler/test/lab/simjanus"
)

func simjanusCommand() *cobra.Command {
	var (
		c              simjanus.Config
		ip             string
		adminPort, api int
	)
	cmd := &cobra.Command{
		Use:   "simjanus",
		Short: "Run one simulated media server: Janus's APIs without media",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			s := simjanus.New(c)
			defer s.Close()
			return serve(cmd.Context(), map[string]http.Handler{
				net.JoinHostPort(ip, strconv.Itoa(adminPort)): s.Admin(),
				net.JoinHostPort(ip, strconv.Itoa(api)):       s.API(),
			})
		},
	}
	f := cmd.Flags()
	f.StringVar(&c.Name, "name", "simjanus", "server name")
	f.StringVar(&ip, "ip", "127.0.0.1", "address to listen at")
	f.IntVar(&adminPort, "admin-port", 7088, "port of the admin API")
	f.IntVar(&api, "http-port", 8088, "port of the Janus API")
	f.StringVar(&c.AdminSecret, "admin-secret", "janusoverlord", "secret of the admin API")
	f.StringVar(&c.AdminKey, "admin-key", "", "key of the videoroom; empty for none")
	f.StringVar(&c.APISecret, "api-secret", "", "secret of the Janus API; empty for none")
	f.BoolVar(&c.StringIDs, "string-ids", false, "rooms have strings as ids")
	f.DurationVar(&c.SessionTimeout, "session-timeout", time.Minute, "how long a silent session lives")
	return cmd
}

// serve runs the handlers until ctx ends. Like Janus it does not wait for open requests.
func serve(ctx context.Context, handlers map[string]http.Handler) error {
	var lc net.ListenConfig
	failed := make(chan error, len(handlers))
	var servers []*http.Server
	defer func() {
		for _, s := range servers {
			s.Close()
		}
	}()
	for addr, h := range handlers {
		l, err := lc.Listen(ctx, "tcp", addr)
		if err != nil {
			return fmt.Errorf("listening: %w", err)
		}
		s := &http.Server{Handler: h, ReadHeaderTimeout: 10 * time.Second}
		servers = append(servers, s)
		go func() { failed <- s.Serve(l) }()
	}
	select {
	case <-ctx.Done():
		return nil
	case err := <-failed:
		if errors.Is(err, http.ErrServerClosed) {
			return nil
		}
		return err
	}
}
