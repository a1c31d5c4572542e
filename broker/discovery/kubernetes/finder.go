package kubernetes

import (
	"cmp"
	"context"
	"net"
	"slices"
	"strconv"
	"sync"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/roomscaler/roomscaler/broker"
)

// indexLabel carries a pod's ordinal (Kubernetes 1.28 and later).
const indexLabel = "apps.kubernetes.io/pod-index"

// Finder finds the pods behind a Service. It knows nothing unless Run runs.
type Finder struct {
	place  Place
	pods   *watched[*corev1.Pod]
	slices *watched[*discoveryv1.EndpointSlice]
	nodes  *watched[*corev1.Node]
}

// New returns a finder; it makes no request before Run.
func New(p Place, c Client) *Finder {
	in := " in " + p.Namespace
	return &Finder{
		place:  p,
		pods:   newWatched("pods"+in, c, c.CoreV1().Pods(p.Namespace), "", &corev1.Pod{}, stripPod),
		slices: newWatched("endpointslices"+in, c, c.DiscoveryV1().EndpointSlices(p.Namespace), discoveryv1.LabelServiceName+"="+p.Service, &discoveryv1.EndpointSlice{}, stripSlice),
		nodes:  newWatched("nodes", c, c.CoreV1().Nodes(), "", &corev1.Node{}, stripNode),
	}
}

// Run keeps the watches until ctx ends, and tries again those that fail. It is called once.
func (f *Finder) Run(ctx context.Context) {
	var watches sync.WaitGroup
	watches.Go(func() { f.pods.run(ctx) })
	watches.Go(func() { f.slices.run(ctx) })
	watches.Go(func() { f.nodes.run(ctx) })
	watches.Wait()
}

// Find returns the pods behind the Service. It answers from memory; only before the first lists are complete it
// waits for them, as long as ctx. A watch that fails, a Service without EndpointSlices (a Service that is there has at
// least an empty one) and a pod that cannot be an instance are errors. An unknown state of nodes is none.
func (f *Finder) Find(ctx context.Context) ([]broker.Found, error) {
	if err := f.slices.current(ctx); err != nil {
		return nil, err
	}
	if err := f.pods.current(ctx); err != nil {
		return nil, err
	}
	ends := f.slices.all()
	if len(ends) == 0 {
		return nil, invalid("namespace %s has no EndpointSlice of a Service %s; check its name, and that it has a selector", f.place.Namespace, f.place.Service)
	}
	pods := members(f.pods.all(), ends)
	if len(pods) == 0 {
		return nil, nil
	}
	down := f.nodesDown()
	list := make([]broker.Found, 0, len(pods))
	for _, p := range pods {
		ordinal, err := ordinalOf(p)
		if err != nil {
			return nil, err
		}
		port, err := f.place.portOf(p, ends)
		if err != nil {
			return nil, err
		}
		list = append(list, broker.Found{
			Name: p.Name, Ordinal: ordinal, NodeDown: down(p.Spec.NodeName),
			Address: f.place.Scheme + "://" + net.JoinHostPort(p.Status.PodIP, strconv.Itoa(int(port))) + f.place.Path,
		})
	}
	slices.SortFunc(list, func(a, b broker.Found) int { return cmp.Compare(a.Ordinal, b.Ordinal) })
	for i, in := range list[1:] {
		if in.Ordinal == list[i].Ordinal {
			return nil, invalid("pods %s and %s behind Service %s both have the ordinal %d; give each StatefulSet a Service of its own", list[i].Name, in.Name, f.place.Service, in.Ordinal)
		}
	}
	return list, nil
}

// members returns the pods that an EndpointSlice names, and those of the same StatefulSet that it does not, because it
// is behind or has dropped them. What is over or has no address is not among them.
func members(pods []*corev1.Pod, ends []*discoveryv1.EndpointSlice) []*corev1.Pod {
	named := map[types.UID]bool{}
	for _, s := range ends {
		for _, e := range s.Endpoints {
			if e.TargetRef != nil && e.TargetRef.Kind == "Pod" {
				named[e.TargetRef.UID] = true
			}
		}
	}
	sets := map[types.UID]bool{}
	for _, p := range pods {
		if c := metav1.GetControllerOf(p); c != nil && named[p.UID] {
			sets[c.UID] = true
		}
	}
	var out []*corev1.Pod
	for _, p := range pods {
		c := metav1.GetControllerOf(p)
		member := named[p.UID] || c != nil && sets[c.UID]
		over := p.Status.Phase == corev1.PodFailed || p.Status.Phase == corev1.PodSucceeded
		if member && !over && p.Status.PodIP != "" {
			out = append(out, p)
		}
	}
	return out
}

// ordinalOf takes a number at the end of a name for an ordinal only where it is none of a Deployment's random names.
func ordinalOf(p *corev1.Pod) (int, error) {
	if v, ok := p.Labels[indexLabel]; ok {
		if n, err := strconv.Atoi(v); err == nil && n >= 0 && n <= broker.MaxOrdinal {
			return n, nil
		}
	}
	if c := metav1.GetControllerOf(p); c == nil || c.Kind == "StatefulSet" {
		if n, ok := broker.OrdinalOf(p.Name); ok {
			return n, nil
		}
	}
	return 0, invalid("pod %s is none of a StatefulSet, so it has no ordinal; run the media servers as a StatefulSet, and let the Service select nothing else", p.Name)
}

// portOf returns the port of a pod's admin API. The slice that names the pod knows best: a Service's port may lead to
// another number in each pod.
func (p Place) portOf(pod *corev1.Pod, ends []*discoveryv1.EndpointSlice) (int32, error) {
	if n, err := strconv.Atoi(p.Port); err == nil {
		return int32(n), nil
	}
	var other int32
	for _, s := range ends {
		n, several := p.portIn(s.Ports)
		if several {
			return 0, invalid("Service %s has several ports; say which by ?port=NAME", p.Service)
		}
		if n != 0 && slices.ContainsFunc(s.Endpoints, func(e discoveryv1.Endpoint) bool { return e.TargetRef != nil && e.TargetRef.UID == pod.UID }) {
			return n, nil
		}
		other = cmp.Or(n, other)
	}
	if other != 0 {
		return other, nil
	}
	return 0, invalid("Service %s has no port %q; give the name of one of its ports, or a number", p.Service, p.Port)
}

// portIn returns 0 where there is none.
func (p Place) portIn(ports []discoveryv1.EndpointPort) (n int32, several bool) {
	for _, q := range ports {
		if q.Port == nil || p.Port != "" && (q.Name == nil || *q.Name != p.Port) {
			continue
		}
		if n != 0 && n != *q.Port {
			return 0, true
		}
		n = *q.Port
	}
	return n, false
}

// nodesDown returns whether the node of that name is known not to be in order.
func (f *Finder) nodesDown() func(string) bool {
	if !f.nodes.knows() {
		return func(string) bool { return false }
	}
	return func(name string) bool {
		v, there, err := f.nodes.GetByKey(name)
		if name == "" || err != nil {
			return false
		}
		return !there || !slices.ContainsFunc(v.(*corev1.Node).Status.Conditions, func(c corev1.NodeCondition) bool {
			return c.Type == corev1.NodeReady && c.Status == corev1.ConditionTrue
		})
	}
}
