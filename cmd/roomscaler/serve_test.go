package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	pb "github.com/kedacore/keda/v2/pkg/scalers/externalscaler"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"

	"github.com/roomscaler/roomscaler/broker/brokerapi"
	"github.com/roomscaler/roomscaler/test/januscli"
	"github.com/roomscaler/roomscaler/test/procs"
)

// program is a run of the command in this process.
type program struct {
	address map[string]string // of its listeners, by component
	stop    func() int
}

// start runs the command until all the components named listen.
func start(t *testing.T, components []string, args ...string) *program {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	r, w := io.Pipe()
	code := make(chan int, 1)
	go func() {
		code <- run(ctx, args, nil, io.Discard, w)
		w.Close()
	}()
	p := &program{address: map[string]string{}}
	ended := -1
	p.stop = func() int {
		cancel()
		if ended < 0 {
			ended = <-code
		}
		return ended
	}
	t.Cleanup(func() { p.stop() })
	lines := bufio.NewScanner(r)
	for len(p.address) < len(components) {
		if !lines.Scan() {
			t.Fatalf("%q ended with code %d", args, p.stop())
		}
		t.Log(lines.Text())
		var line struct{ Msg, Component, Address string }
		if json.Unmarshal(lines.Bytes(), &line) == nil && line.Msg == "listening" {
			p.address[line.Component] = line.Address
		}
	}
	go io.Copy(io.Discard, r)
	return p
}

// eventually asks until it is so.
func eventually(t *testing.T, what string, so func() bool) {
	t.Helper()
	deadline := time.After(20 * time.Second)
	ticks := time.NewTicker(20 * time.Millisecond)
	defer ticks.Stop()
	for !so() {
		select {
		case <-ticks.C:
		case <-deadline:
			t.Fatalf("not so: %s", what)
		}
	}
}

func TestServe_RealJanus(t *testing.T) {
	secret := filepath.Join(t.TempDir(), "secret")
	if err := os.WriteFile(secret, []byte("adminsecret\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	var list []string
	servers := map[string]*procs.Janus{}
	for _, name := range []string{"janus-0", "janus-1"} {
		j, err := procs.StartJanus(t.Context(), procs.JanusOptions{AdminSecret: "adminsecret"})
		procs.Need(t, err)
		t.Cleanup(j.Kill)
		servers[name] = j
		list = append(list, name+"="+j.AdminURL())
	}
	p := start(t, []string{"api", "scaler", "metrics"}, "serve", "--pool=video", "--discover=static:"+strings.Join(list, ","),
		"--listen=127.0.0.1:0", "--scaler-listen=127.0.0.1:0", "--metrics-listen=127.0.0.1:0", "--janus-admin-secret-file="+secret,
		"--sweep-interval=200ms", "--url-ws=ws://{address-host}:8188/{instance}")
	c, err := brokerapi.NewClient("http://"+p.address["api"], nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	ctx := t.Context()
	var pin brokerapi.Pin
	eventually(t, "a room is created", func() bool {
		var fresh bool
		pin, fresh, err = c.CreateRoom(ctx, "video", "a/b", brokerapi.CreateRoom{ExpectedParticipants: 3})
		return err == nil && fresh
	})
	again, fresh, err := c.CreateRoom(ctx, "video", "a/b", brokerapi.CreateRoom{})
	if err != nil || fresh || again.Epoch != pin.Epoch {
		t.Fatalf("a second create: %+v, %v, %v", again, fresh, err)
	}
	if pin.State != "live" || pin.PIN == "" || pin.URLs == nil || !strings.HasSuffix(pin.URLs.WS, ":8188/"+pin.Instance) || pin.Address != servers[pin.Instance].AdminURL() {
		t.Errorf("got %+v", pin)
	}
	if !joinable(t, servers[pin.Instance], pin) {
		t.Errorf("the room is not on its Janus")
	}
	for name, j := range servers {
		if name != pin.Instance && joinable(t, j, pin) {
			t.Errorf("the room is on %s too", name)
		}
	}

	t.Run("KEDA gets a number", func(t *testing.T) {
		conn, err := grpc.NewClient(p.address["scaler"], grpc.WithTransportCredentials(insecure.NewCredentials()))
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		ref := &pb.ScaledObjectRef{Name: "so", Namespace: "ns", ScalerMetadata: map[string]string{"pool": "video", "targetSessionsPerInstance": "10"}}
		k := pb.NewExternalScalerClient(conn)
		eventually(t, "GetMetrics answers", func() bool {
			r, err := k.GetMetrics(ctx, &pb.GetMetricsRequest{ScaledObjectRef: ref, MetricName: "roomscaler-video"})
			return err == nil && len(r.GetMetricValues()) == 1 && r.GetMetricValues()[0].GetMetricValueFloat() >= 1
		})
		h, err := healthpb.NewHealthClient(conn).Check(ctx, &healthpb.HealthCheckRequest{})
		if err != nil || h.GetStatus() != healthpb.HealthCheckResponse_SERVING {
			t.Errorf("health: %v, %v", h, err)
		}
		f, err := c.Facts(ctx, "video")
		if err != nil || f.Plan == nil || f.Plan.Version == 0 {
			t.Errorf("the broker holds no plan: %+v, %v", f.Plan, err)
		}
	})
	t.Run("an operator's drain ends with the room", func(t *testing.T) {
		d, err := c.Drain(ctx, "video", pin.Instance, brokerapi.DrainRequest{Owner: "operator", Grace: "1h"})
		if err != nil || d.Result != brokerapi.DrainWaiting || d.RoomsLeft != 1 || d.RemainingMS == nil {
			t.Fatalf("got %+v, %v", d, err)
		}
		if err := c.DeleteRoom(ctx, "video", "a/b", pin.Epoch+1); !isCode(err, brokerapi.CodeStale) {
			t.Errorf("delete of another epoch: %v", err)
		}
		if err := c.DeleteRoom(ctx, "video", "a/b", pin.Epoch); err != nil {
			t.Fatal(err)
		}
		if joinable(t, servers[pin.Instance], pin) {
			t.Error("the room is still on its Janus")
		}
		d, err = c.DrainStatus(ctx, "video", pin.Instance, "operator", 20*time.Second)
		if err != nil || d.Result != brokerapi.DrainEmpty {
			t.Errorf("got %+v, %v", d, err)
		}
		if err := c.Uncordon(ctx, "video", pin.Instance, "operator"); err != nil {
			t.Error(err)
		}
	})
	t.Run("metrics tell of it", func(t *testing.T) {
		body := fetch(t, "http://"+p.address["metrics"]+"/metrics")
		for _, want := range []string{`roomscaler_broker_creates_total{outcome="created",pool="video"} 1`, "roomscaler_scaler_looks_total", `roomscaler_build_info{version=`} {
			if !strings.Contains(body, want) {
				t.Errorf("no %s", want)
			}
		}
	})
	if code := p.stop(); code != 0 {
		t.Errorf("ended with %d", code)
	}
}

// joinable reports whether the room stands on the Janus, as a client sees it.
func joinable(t *testing.T, j *procs.Janus, pin brokerapi.Pin) bool {
	t.Helper()
	s, err := januscli.Open(t.Context(), j.HTTPURL(), januscli.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close(context.WithoutCancel(t.Context()))
	answer, err := s.Ask(t.Context(), map[string]any{"request": "exists", "room": pin.JanusRoom})
	if err != nil {
		t.Fatal(err)
	}
	there, ok := answer["exists"].(bool)
	if !ok {
		t.Fatalf("Janus answers %v", answer)
	}
	return there
}

func isCode(err error, code string) bool {
	var p *brokerapi.Problem
	return errors.As(err, &p) && p.Code == code
}

func fetch(t *testing.T, url string) string {
	t.Helper()
	resp, err := http.Get(url)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}
