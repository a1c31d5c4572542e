package adapter_test

import (
	"encoding/base64"
	"os"
	"regexp"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"sigs.k8s.io/yaml"
)

// documentation is what docs/adapter.md tells its reader to write.
type documentation struct {
	config  string // the file of pools
	objects []unstructured.Unstructured
}

var block = regexp.MustCompile("(?s)```yaml\n(.*?)```")

// quicker are what the configuration says and the test does not wait for.
const quicker = `
    sessionMetric: rooms
    emptyDwell: 1s
    releaseGuard: 1s
`

func documented(t *testing.T) documentation {
	t.Helper()
	raw, err := os.ReadFile("../../../docs/adapter.md")
	if err != nil {
		t.Fatal(err)
	}
	var d documentation
	for _, b := range block.FindAllStringSubmatch(string(raw), -1) {
		if strings.HasPrefix(b[1], "pools:") {
			d.config = strings.NewReplacer("targetSessionsPerInstance: 40", "targetSessionsPerInstance: 3", "cooldownWindow: 5m", "cooldownWindow: 2s").
				Replace(b[1]) + strings.TrimPrefix(quicker, "\n")
			continue
		}
		for text := range strings.SplitSeq(b[1], "\n---\n") {
			var o unstructured.Unstructured
			if err := yaml.Unmarshal([]byte(text), &o.Object); err != nil {
				t.Fatalf("%v in\n%s", err, text)
			}
			d.objects = append(d.objects, o)
		}
	}
	if d.config == "" || len(d.objects) < 8 {
		t.Fatalf("the documentation has lost its manifests: %d are left", len(d.objects))
	}
	return d
}

// resources say where objects of a kind are written.
func resource(t *testing.T, o unstructured.Unstructured) schema.GroupVersionResource {
	t.Helper()
	plural := map[string]string{
		"ServiceAccount": "serviceaccounts", "ClusterRole": "clusterroles", "ClusterRoleBinding": "clusterrolebindings", "RoleBinding": "rolebindings",
		"Service": "services", "APIService": "apiservices", "HorizontalPodAutoscaler": "horizontalpodautoscalers",
	}[o.GetKind()]
	if plural == "" {
		t.Fatalf("the test does not know how to apply a %s", o.GetKind())
	}
	return o.GroupVersionKind().GroupVersion().WithResource(plural)
}

// apply writes the documented objects, and the StatefulSet that they are about. The adapter listens at a port of loopback,
// which no Service may select: the Service is an alias of localhost here.
func (w *world) apply(port int) {
	w.t.Helper()
	for _, name := range []string{namespace, "roomscaler"} {
		ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}
		if _, err := w.kube.CoreV1().Namespaces().Create(w.t.Context(), ns, metav1.CreateOptions{}); err != nil {
			w.t.Fatal(err)
		}
	}
	labels := map[string]string{"app": workload}
	one := int32(1)
	set := &appsv1.StatefulSet{
		ObjectMeta: metav1.ObjectMeta{Name: workload},
		Spec: appsv1.StatefulSetSpec{
			Replicas: &one, ServiceName: workload, PodManagementPolicy: appsv1.ParallelPodManagement,
			Selector:       &metav1.LabelSelector{MatchLabels: labels},
			UpdateStrategy: appsv1.StatefulSetUpdateStrategy{Type: appsv1.OnDeleteStatefulSetStrategyType},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: labels},
				Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "janus", Image: "simulated"}}},
			},
		},
	}
	if _, err := w.kube.AppsV1().StatefulSets(namespace).Create(w.t.Context(), set, metav1.CreateOptions{}); err != nil {
		w.t.Fatal(err)
	}
	client, err := dynamic.NewForConfig(w.plane.Config())
	if err != nil {
		w.t.Fatal(err)
	}
	for _, o := range documented(w.t).objects {
		switch o.GetKind() {
		case "Service":
			o.Object["spec"] = map[string]any{"type": "ExternalName", "externalName": "localhost"}
		case "APIService":
			w.change(o, base64.StdEncoding.EncodeToString(w.authority()), "spec", "caBundle")
			w.change(o, int64(port), "spec", "service", "port")
		case "HorizontalPodAutoscaler": // a minute less to wait
			w.change(o, int64(0), "spec", "behavior", "scaleDown", "stabilizationWindowSeconds")
		}
		if _, err := client.Resource(resource(w.t, o)).Namespace(o.GetNamespace()).Create(w.t.Context(), &o, metav1.CreateOptions{}); err != nil {
			w.t.Fatalf("%s %s: %v", o.GetKind(), o.GetName(), err)
		}
	}
}

func (w *world) change(o unstructured.Unstructured, value any, path ...string) {
	w.t.Helper()
	if err := unstructured.SetNestedField(o.Object, value, path...); err != nil {
		w.t.Fatal(err)
	}
}

// authority is the PEM text of who has signed the adapter's certificate.
func (w *world) authority() []byte {
	w.t.Helper()
	b, err := os.ReadFile(w.plane.Config().CAFile)
	if err != nil {
		w.t.Fatal(err)
	}
	return b
}
