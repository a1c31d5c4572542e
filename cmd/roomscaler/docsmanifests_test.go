package main

import (
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/client-go/kubernetes/scheme"

	"github.com/roomscaler/roomscaler/scaler"
)

// The manifests in the documents have fields that Kubernetes has, flags that the program
// has, and keys that the scaler takes.
func TestDocs_kubernetes(t *testing.T) {
	kinds := map[string]int{}
	for _, file := range []string{"kubernetes.md", "scaler.md"} {
		for _, doc := range manifests(t, file) {
			kind, _ := doc["kind"].(string)
			kinds[kind]++
			if err := checkManifest(kind, doc); err != nil {
				t.Errorf("%s: %s: %v", file, kind, err)
			}
		}
	}
	for _, kind := range []string{"StatefulSet", "Deployment", "Service", "Role", "RoleBinding", "NetworkPolicy", "ScaledObject"} {
		if kinds[kind] == 0 {
			t.Errorf("there is no %s", kind)
		}
	}
	t.Run("a wrong field, flag or key is found", func(t *testing.T) {
		for _, wrong := range []string{
			`{apiVersion: v1, kind: Service, spec: {clusterIp: None}}`,
			`{apiVersion: apps/v1, kind: Deployment, spec: {template: {spec: {containers: [{name: a, args: [broker, --pol=x]}]}}}}`,
			`{apiVersion: apps/v1, kind: StatefulSet, spec: {template: {spec: {containers: [{name: a, lifecycle: {preStop: {exec: {command: [/usr/local/bin/roomscaler, drainhook, --grace=1m]}}}}]}}}}`,
			`{kind: ScaledObject, spec: {triggers: [{type: external, metadata: {pool: a, targetSessions: "5"}}]}}`,
			`{apiVersion: v1, kind: Pods}`,
		} {
			var doc map[string]any
			if err := yaml.Unmarshal([]byte(wrong), &doc); err != nil {
				t.Fatal(err)
			}
			if checkManifest(doc["kind"].(string), doc) == nil {
				t.Errorf("%s is taken", wrong)
			}
		}
	})
}

// manifests are the documents of a page's YAML blocks that have a kind.
func manifests(t *testing.T, file string) []map[string]any {
	t.Helper()
	b, err := os.ReadFile(filepath.Join("..", "..", "docs", file))
	if err != nil {
		t.Fatal(err)
	}
	var all []map[string]any
	for _, block := range strings.Split(string(b), "```yaml\n")[1:] {
		block, _, _ = strings.Cut(block, "```")
		for dec := yaml.NewDecoder(strings.NewReader(block)); ; {
			var doc map[string]any
			err := dec.Decode(&doc)
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				t.Fatalf("%s: %v in:\n%s", file, err, block)
			}
			if doc["kind"] != nil {
				all = append(all, doc)
			}
		}
	}
	return all
}

func checkManifest(kind string, doc map[string]any) error {
	if kind == "ScaledObject" {
		return checkScaledObject(doc)
	}
	b, err := json.Marshal(doc)
	if err != nil {
		return err
	}
	strict := serializer.NewCodecFactory(scheme.Scheme, serializer.EnableStrict).UniversalDeserializer()
	o, _, err := strict.Decode(b, nil, nil)
	if err != nil {
		return err
	}
	var pod corev1.PodSpec
	switch o := o.(type) {
	case *appsv1.StatefulSet:
		pod = o.Spec.Template.Spec
	case *appsv1.Deployment:
		pod = o.Spec.Template.Spec
	}
	for _, c := range pod.Containers {
		if h := c.Lifecycle; h != nil && h.PreStop != nil && h.PreStop.Exec != nil {
			if err := checkFlags(h.PreStop.Exec.Command[1:]); err != nil {
				return err
			}
		}
		if c.Name != "redis" && len(c.Args) > 0 {
			if err := checkFlags(c.Args); err != nil {
				return err
			}
		}
	}
	return nil
}

func checkFlags(args []string) error {
	c, rest, err := rootCommand(nil).Find(args)
	if err != nil {
		return err
	}
	if c.Name() != args[0] {
		return errors.New("no subcommand " + args[0])
	}
	return c.ParseFlags(rest)
}

func checkScaledObject(doc map[string]any) error {
	var o struct {
		Spec struct {
			Triggers []struct{ Metadata map[string]string }
		}
	}
	b, err := json.Marshal(doc)
	if err != nil {
		return err
	}
	if err := json.Unmarshal(b, &o); err != nil {
		return err
	}
	if len(o.Spec.Triggers) != 1 {
		return errors.New("want one trigger")
	}
	_, err = scaler.ParseTarget(o.Spec.Triggers[0].Metadata)
	return err
}
