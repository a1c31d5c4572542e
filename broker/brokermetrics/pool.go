package brokermetrics

import (
	"context"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/roomscaler/roomscaler/broker"
)

// scrapeTimeout bounds the read of a pool's facts for one scrape.
const scrapeTimeout = 2 * time.Second

// PoolGauges are a pool's gauges. They are read from facts at each scrape; when that
// fails they are absent, since an old number or 0 would be taken for the present one.
func PoolGauges(pool string, facts func(context.Context) (broker.Facts, error)) prometheus.Collector {
	d := func(name, help string, labels ...string) *prometheus.Desc {
		return prometheus.NewDesc(name, help, labels, prometheus.Labels{"pool": pool})
	}
	return &poolGauges{
		facts:        facts,
		instances:    d(nameInstances, "Instances, by state.", "state"),
		sessions:     d(nameSessions, "Sessions on all instances that have answered, as of their last good look."),
		participants: d(nameParticipants, "Participants in rooms on all instances that have answered."),
		pins:         d(namePins, "Rooms in the directory."),
		reserved:     d(nameReserved, "Participants expected and not yet seen."),
		queue:        d(nameQueueRooms, "Rooms that lately found no place."),
		desired:      d(nameDesired, "Instances that the stored plan wants; absent without a plan."),
		target:       d(nameTarget, "Sessions per instance that the stored plan says; absent if it says none."),
		rebuilding:   d(nameRebuilding, "1 while the directory is being rebuilt, else 0."),
		oneSessions:  d(nameInstanceSession, "Sessions on an instance, as of its last good look.", "instance"),
		oneRooms:     d(nameInstanceRooms, "Rooms that the directory has on an instance.", "instance"),
		oneAge:       d(nameInstanceAge, "Age of the last good look at an instance.", "instance"),
	}
}

type poolGauges struct {
	facts func(context.Context) (broker.Facts, error)

	instances, sessions, participants, pins, reserved, queue, desired, target, rebuilding *prometheus.Desc
	oneSessions, oneRooms, oneAge                                                         *prometheus.Desc
}

// Describe implements prometheus.Collector.
func (g *poolGauges) Describe(ch chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{g.instances, g.sessions, g.participants, g.pins, g.reserved, g.queue, g.desired, g.target, g.rebuilding,
		g.oneSessions, g.oneRooms, g.oneAge} {
		ch <- d
	}
}

var states = []broker.InstanceState{broker.StateReady, broker.StateCordoned, broker.StateReleased, broker.StateSuspect, broker.StateStarting, broker.StateLost}

// Collect implements prometheus.Collector.
func (g *poolGauges) Collect(ch chan<- prometheus.Metric) {
	ctx, cancel := context.WithTimeout(context.Background(), scrapeTimeout)
	defer cancel()
	f, err := g.facts(ctx)
	if err != nil {
		return
	}
	show := func(d *prometheus.Desc, v int, labels ...string) {
		ch <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, float64(v), labels...)
	}
	byState := map[broker.InstanceState]int{}
	var sessions, participants, pins, reserved int
	for _, in := range f.Instances {
		byState[in.State()]++
		pins += in.Pins
		reserved += in.Reserved
		show(g.oneRooms, in.Pins, in.Name)
		if in.LookBegin == broker.Never {
			continue
		}
		sessions += in.Sessions
		participants += in.Participants
		show(g.oneSessions, in.Sessions, in.Name)
		ch <- prometheus.MustNewConstMetric(g.oneAge, prometheus.GaugeValue, f.Now.Since(in.LookBegin).Seconds(), in.Name)
	}
	for _, s := range states {
		show(g.instances, byState[s], string(s))
	}
	show(g.sessions, sessions)
	show(g.participants, participants)
	show(g.pins, pins)
	show(g.reserved, reserved)
	show(g.queue, f.Demand.Rooms)
	if f.Plan.Version > 0 {
		show(g.desired, f.Plan.Desired)
		if f.Plan.Target > 0 {
			show(g.target, f.Plan.Target)
		}
	}
	rebuilding := 0
	if f.Phase == broker.Rebuilding {
		rebuilding = 1
	}
	show(g.rebuilding, rebuilding)
}
