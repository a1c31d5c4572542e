package e2e

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	pb "github.com/kedacore/keda/v2/pkg/scalers/externalscaler"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"

	"github.com/roomscaler/roomscaler/broker/brokerapi"
	"github.com/roomscaler/roomscaler/test/procs"
)

// keda asks a scaler as KEDA does.
type keda struct {
	pb.ExternalScalerClient
	ref *pb.ScaledObjectRef
}

// scaler starts a scaler process at the broker's address, and a client of it.
func (c *cluster) scaler(metadata map[string]string) (*program, *keda) {
	c.t.Helper()
	addr := c.port()
	p := start(c.t, "scaler", "scaler", "--listen", addr, "--metrics-listen", c.port(), "--broker", c.nodes[0].url)
	conn, err := grpc.NewClient(addr, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		c.t.Fatal(err)
	}
	c.t.Cleanup(func() { conn.Close() })
	return p, &keda{pb.NewExternalScalerClient(conn), &pb.ScaledObjectRef{Namespace: "test", Name: "janus", ScalerMetadata: metadata}}
}

// desired returns what KEDA would pass on to the HPA.
func (k *keda) desired(ctx context.Context) (float64, error) {
	spec, err := k.GetMetricSpec(ctx, k.ref)
	if err != nil {
		return 0, err
	}
	m, err := k.GetMetrics(ctx, &pb.GetMetricsRequest{ScaledObjectRef: k.ref, MetricName: spec.MetricSpecs[0].MetricName})
	if err != nil {
		return 0, err
	}
	return m.MetricValues[0].MetricValueFloat, nil
}

func TestG8_AStopIsNeverALoss(t *testing.T) {
	c := newCluster(t, 3, procs.RedisOptions{})
	_, k := c.scaler(map[string]string{"pool": pool, "targetSessionsPerInstance": "3", "cooldownWindow": "1h"})
	var calls []*call
	for i := range 9 {
		calls = append(calls, c.join(c.nodes[i%2], fmt.Sprintf("call %d", i)))
	}
	// For a moment there is far more demand. What it needed stays in force for the cool-down, which is an hour.
	for i := range 6 {
		if _, _, err := c.nodes[0].CreateRoom(c.ctx, pool, fmt.Sprintf("peak %d", i), brokerapi.CreateRoom{ExpectedParticipants: 5}); err != nil {
			t.Fatal(err)
		}
	}
	var number float64
	c.eventually(20*time.Second, "the scaler answers", func() (err error) {
		number, err = k.desired(c.ctx)
		if err == nil && number < 13 {
			err = fmt.Errorf("%v instances for 39 sessions at 3 each", number)
		}
		return err
	})
	for i := range 6 {
		if err := c.nodes[0].DeleteRoom(c.ctx, pool, fmt.Sprintf("peak %d", i), 0); err != nil {
			t.Fatal(err)
		}
	}
	l := c.load()
	hook := c.hook("janus-2")
	c.eventually(10*time.Second, "the hook's mark is there", func() error { return c.marked("janus-2", "hook") })

	serves := func(t *testing.T, b *node) {
		t.Helper()
		room := fmt.Sprintf("new %s %d", t.Name(), len(calls))
		eventually(t, 15*time.Second, b.name+" serves", func() error {
			p, _, err := b.CreateRoom(c.ctx, pool, room, brokerapi.CreateRoom{})
			if err == nil && p.Instance == "janus-2" {
				t.Errorf("%q was placed on the draining instance", room)
			}
			return err
		})
		l.reaches(c, l.created.Load()+20)
		c.alive(calls)
		for _, k := range calls {
			if p, err := b.Lookup(c.ctx, pool, k.pin.Room, true); err != nil || p.Epoch != k.pin.Epoch {
				t.Errorf("%q: %+v, %v; want epoch %d", k.pin.Room, p, err, k.pin.Epoch)
			}
		}
		if err := c.marked("janus-2", "hook"); err != nil {
			t.Error(err)
		}
		if n, err := k.desired(c.ctx); status.Code(err) != codes.Unavailable && (err != nil || n < number) {
			t.Errorf("the scaler answers %v, %v; it was %v before", n, err, number)
		}
	}

	t.Run("a broker", func(t *testing.T) {
		c.nodes[1].kill()
		serves(t, c.nodes[0])
		c.nodes[1].restart()
		c.ready(c.nodes[1])
		serves(t, c.nodes[1])
	})
	t.Run("the scaler's broker", func(t *testing.T) {
		c.nodes[0].kill()
		eventually(t, 5*time.Second, "the other serves", func() error {
			_, err := c.nodes[1].Lookup(c.ctx, pool, calls[0].pin.Room, false)
			return err
		})
		c.alive(calls)
		c.nodes[0].restart()
		c.ready(c.nodes[0])
		serves(t, c.nodes[0])
	})
	t.Run("the scaler", func(t *testing.T) {
		c.eventually(20*time.Second, "the scaler has recovered", func() error { _, err := k.desired(c.ctx); return err })
		before := c.plan(t)
		p, k2 := c.scaler(k.ref.ScalerMetadata)
		p.kill()
		p.restart()
		eventually(t, 20*time.Second, "the restarted scaler answers", func() error { _, err := k2.desired(c.ctx); return err })
		if after := c.plan(t); after.Desired < before.Desired {
			t.Errorf("desired went from %d to %d", before.Desired, after.Desired)
		}
		serves(t, c.nodes[0])
	})
	t.Run("the hook", func(t *testing.T) {
		left := c.remaining(t, "janus-2")
		hook.kill()
		hook.restart()
		eventually(t, 10*time.Second, "the new hook waits", func() error {
			if n := strings.Count(hook.log.String(), "waiting for rooms to end"); n < 2 {
				return fmt.Errorf("%d hooks have waited", n)
			}
			return nil
		})
		eventually(t, 10*time.Second, "the mark is there with its first deadline", func() error {
			if now := c.remaining(t, "janus-2"); now > left {
				return fmt.Errorf("%d ms remain after %d ms did", now, left)
			}
			return nil
		})
		serves(t, c.nodes[0])
	})
	t.Run("Redis, and all that it held", func(t *testing.T) {
		o := c.redis.Options()
		c.redis.Kill()
		c.alive(calls)
		r, err := procs.StartRedis(c.ctx, o)
		procs.Need(t, err)
		c.redis = r
		for _, b := range c.nodes {
			c.ready(b)
		}
		serves(t, c.nodes[0])
	})
	t.Run("all brokers at once", func(t *testing.T) {
		for _, b := range c.nodes {
			b.kill()
		}
		c.alive(calls)
		for _, b := range c.nodes {
			b.restart()
			c.ready(b)
		}
		serves(t, c.nodes[1])
	})
	t.Run("the hook ends when the instance is empty", func(t *testing.T) {
		l.stop()
		for _, k := range calls {
			if err := k.Close(c.ctx); err != nil {
				t.Error(err)
			}
			if err := c.nodes[0].DeleteRoom(c.ctx, pool, k.pin.Room, 0); err != nil {
				t.Error(err)
			}
		}
		select {
		case <-hook.done:
		case <-time.After(20 * time.Second):
			t.Fatal("the hook goes on waiting for nothing")
		}
		if code := hook.cmd.ProcessState.ExitCode(); code != 0 {
			t.Errorf("the hook ended with %d", code)
		}
	})
}

// hook starts the drain hook of an instance.
func (c *cluster) hook(instance string) *program {
	c.t.Helper()
	var n int
	_, _ = fmt.Sscanf(instance, "janus-%d", &n)
	return start(c.t, "hook", "drainhook", "--broker", c.nodes[1].url, "--pool", pool, "--instance", instance, "--drain-grace", "5m",
		"--janus-admin-url", c.janus[n].AdminURL(), "--janus-admin-secret-file", c.files["admin-secret"])
}

func (c *cluster) marked(instance, owner string) error {
	in, err := c.nodes[0].Instance(c.ctx, pool, instance)
	if err != nil {
		return err
	}
	for _, m := range in.Marks {
		if m.Owner == owner {
			return nil
		}
	}
	return fmt.Errorf("%s has no mark of %s: %+v", instance, owner, in.Marks)
}

func (c *cluster) remaining(t *testing.T, instance string) int64 {
	t.Helper()
	in, err := c.nodes[0].Instance(c.ctx, pool, instance)
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range in.Marks {
		if m.Owner == "hook" && m.RemainingMS != nil {
			return *m.RemainingMS
		}
	}
	t.Fatalf("no mark of the hook: %+v", in.Marks)
	return 0
}

func (c *cluster) plan(t *testing.T) brokerapi.Plan {
	t.Helper()
	f, err := c.nodes[1].Facts(c.ctx, pool)
	if err != nil {
		t.Fatal(err)
	}
	if f.Plan == nil {
		t.Fatal("there is no plan")
	}
	return *f.Plan
}

func TestG3_ScaleInNeverCostsACall(t *testing.T) {
	c := newCluster(t, 3, procs.RedisOptions{}, "--placement", "packed", "--target", "3")
	_, k := c.scaler(map[string]string{
		"pool": pool, "targetSessionsPerInstance": "3", "cooldownWindow": "2s", "emptyDwell": "1s", "releaseGuard": "2s", "minInstances": "1", "maxInstances": "5",
	})
	c.eventually(15*time.Second, "the scaler answers", func() error { _, err := k.desired(c.ctx); return err })
	var calls []*call
	for i := range 6 {
		calls = append(calls, c.join(c.nodes[i%2], fmt.Sprintf("call %d", i)))
	}
	stay := map[string]*call{}
	for _, k := range calls {
		stay[k.pin.Instance] = k // the last of each instance outlives the scale-in
	}
	for _, k := range calls {
		if stay[k.pin.Instance] == k {
			continue
		}
		_ = k.Close(c.ctx)
		_ = c.nodes[0].DeleteRoom(c.ctx, pool, k.pin.Room, 0)
	}
	// The number never goes to or below the ordinal of an instance with somebody on it.
	top := 0
	for i := range c.janus {
		if stay[fmt.Sprintf("janus-%d", i)] != nil {
			top = i
		}
	}
	if top == 0 {
		t.Fatal("all calls are on janus-0")
	}
	low := 1000.0
	watch := time.Now()
	c.eventually(40*time.Second, "the number comes down to what is in use", func() error {
		n, err := k.desired(c.ctx)
		if err != nil {
			return err
		}
		low = min(low, n)
		if n != float64(top+1) {
			return fmt.Errorf("%v after %v", n, time.Since(watch).Round(time.Second))
		}
		return nil
	})
	if low < float64(top+1) {
		t.Errorf("%v was answered with a call on janus-%d", low, top)
	}
	for _, k := range stay {
		if err := k.KeepAlive(c.ctx); err != nil {
			t.Error(err)
		}
	}
	// And it does come down once that call is over.
	k1 := stay[fmt.Sprintf("janus-%d", top)]
	_ = k1.Close(c.ctx)
	_ = c.nodes[0].DeleteRoom(c.ctx, pool, k1.pin.Room, 0)
	c.eventually(40*time.Second, "the number comes down further", func() error {
		n, err := k.desired(c.ctx)
		if err == nil && n > float64(top) {
			err = fmt.Errorf("still %v", n)
		}
		return err
	})
}
