package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"time"

	"github.com/spf13/cobra"

	"github.com/roomscaler/roomscaler/broker"
	"github.com/roomscaler/roomscaler/scaler"
)

// explainLimit bounds how long the broker is waited for.
const explainLimit = 10 * time.Second

// explainOptions are the flags of the subcommand explain.
type explainOptions struct {
	broker brokerClientOptions
	pool   string
	output string
}

func explainCommand() *cobra.Command {
	var o explainOptions
	c := &cobra.Command{
		Use:   "explain",
		Short: "Tell how a pool's number of instances came about, and what would change it",
		Long: `Tell how the stored number of a pool came about: what went into it, each step of the
law, what would change it, what Kubernetes has made of it, and the decisions before.
All of it is read from the plan that the scaler has stored at the broker.`,
		RunE: func(c *cobra.Command, _ []string) error { return o.run(c.Context(), c.OutOrStdout()) },
	}
	f := c.Flags()
	o.broker.flags(f, "scaler or operator")
	f.StringVar(&o.pool, "pool", "default", "name of the pool")
	f.StringVarP(&o.output, "output", "o", "text", "form of the answer: text or json")
	return c
}

func (o *explainOptions) run(ctx context.Context, stdout io.Writer) error {
	if err := broker.CheckPool(o.pool); err != nil {
		return asFlag(err)
	}
	if o.output != "text" && o.output != "json" {
		return wrong("output", "%q is no form; give text or json", clip(o.output))
	}
	client, err := o.broker.client()
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, explainLimit)
	defer cancel()
	facts, err := client.Facts(ctx, o.pool)
	if err != nil {
		return fmt.Errorf("fetch the facts of pool %s: %w", o.pool, err)
	}
	e, err := scaler.Explain(facts)
	if err != nil {
		return err
	}
	if o.output == "text" {
		_, err = io.WriteString(stdout, e.String())
		return err
	}
	return writeJSON(stdout, e)
}

func writeJSON(w io.Writer, v any) error {
	j := json.NewEncoder(w)
	j.SetEscapeHTML(false)
	j.SetIndent("", "  ")
	return j.Encode(v)
}

// explainHandler answers GET /explain?pool=NAME with the same as JSON. One call at a time: the port is open to whoever
// reaches it, and each call is one to the broker.
func explainHandler(s *scaler.Scaler) http.Handler {
	turn := make(chan struct{}, 1)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		ctx, cancel := context.WithTimeout(r.Context(), explainLimit)
		defer cancel()
		pool := r.URL.Query().Get("pool")
		if err := broker.CheckPool(pool); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		select {
		case turn <- struct{}{}:
			defer func() { <-turn }()
		case <-ctx.Done():
			http.Error(w, "others are being answered", http.StatusServiceUnavailable)
			return
		}
		e, err := s.Explain(ctx, pool)
		if err != nil {
			http.Error(w, err.Error(), http.StatusServiceUnavailable)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		if err := writeJSON(w, e); err != nil {
			return // the caller is gone
		}
	})
}
