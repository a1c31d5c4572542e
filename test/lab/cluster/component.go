package cluster

import (
	"crypto/sha256"
	_ "embed" // of the source of a program
	"encoding/json"
	"fmt"
	"slices"
	"strings"
)

// The versions that fit each other.
const (
	kubernetesVersion = "1.37.2"
	etcdVersion       = "3.6.16"
	containerdVersion = "2.4.2"
	corednsVersion    = "1.15.0"
	kedaVersion       = "2.21.0"
	helmVersion       = "3.22.0"
)

// A Component is one program that a cluster is made of, and how it is built.
type Component struct {
	// Name is the program's file name and what the command line calls it.
	Name string `json:"name"`
	// Module and Version say where its source is, Package which of its packages is the
	// program. Version has no leading v.
	Module  string `json:"module"`
	Version string `json:"version"`
	Package string `json:"package,omitempty"`
	// Staging is the version that replaces modules which the module's own go.mod takes
	// from folders beside it; "" where the published ones that it requires are right.
	Staging string `json:"staging,omitempty"`
	// Stamps are variables that the linker sets, as importpath.name=value.
	Stamps []string `json:"stamps,omitempty"`
	// Tags are build tags.
	Tags []string `json:"tags,omitempty"`
	// Main is the source of the program where none of the module's packages is it; it is
	// built inside the wrapper module, and Package is empty then.
	Main string `json:"main,omitempty"`
}

// Components returns every known component, those that most things need first.
func Components() []Component {
	all := []Component{
		{Name: "etcd", Module: "go.etcd.io/etcd/server/v3", Version: etcdVersion, Package: "go.etcd.io/etcd/server/v3"},
	}
	for _, name := range []string{"kube-apiserver", "kube-controller-manager", "kubectl", "kube-scheduler", "kubelet", "kube-proxy"} {
		all = append(all, Component{
			Name:    name,
			Module:  "k8s.io/kubernetes",
			Version: kubernetesVersion,
			Package: "k8s.io/kubernetes/cmd/" + name,
			Staging: "0" + strings.TrimPrefix(kubernetesVersion, "1"),
			Stamps:  kubernetesStamps(),
		})
	}
	const containerd = "github.com/containerd/containerd/v2"
	for _, name := range []string{"containerd", "ctr", "containerd-shim-runc-v2"} {
		tags := []string{"urfave_cli_no_docs", "osusergo", "netgo", "static_build"}
		if name == "containerd-shim-runc-v2" {
			tags = append(tags, "no_grpc") // it speaks ttrpc, and there is one for each pod
		}
		all = append(all, Component{
			Name: name, Module: containerd, Version: containerdVersion, Package: containerd + "/cmd/" + name, Tags: tags,
			Stamps: []string{containerd + "/version.Version=" + containerdVersion},
		})
	}
	all = append(all, Component{Name: "coredns", Module: "github.com/coredns/coredns", Version: corednsVersion, Main: corednsMain})
	const keda = "github.com/kedacore/keda/v2"
	for _, c := range []struct{ name, folder string }{{"keda", "operator"}, {"keda-adapter", "adapter"}, {"keda-admission-webhooks", "webhooks"}} {
		all = append(all, Component{
			Name: c.name, Module: keda, Version: kedaVersion, Package: keda + "/cmd/" + c.folder,
			Stamps: []string{keda + "/version.Version=" + kedaVersion},
		})
	}
	return append(all, Component{
		Name: "helm", Module: "helm.sh/helm/v3", Version: helmVersion, Package: "helm.sh/helm/v3/cmd/helm",
		Stamps: []string{"helm.sh/helm/v3/internal/version.version=v" + helmVersion},
	})
}

// corednsMain is CoreDNS with the plugins that a cluster's own names need: about half of the packages.
//
//go:embed coredns.go.txt
var corednsMain string

// ControlPlaneComponents names what [StartControlPlane] runs.
func ControlPlaneComponents() []string {
	return []string{"etcd", "kube-apiserver", "kube-controller-manager"}
}

// kubernetesStamps gives the programs their version: unstamped ones call themselves
// v0.0.0-master, which clients that parse versions refuse.
func kubernetesStamps() []string {
	minor := strings.Split(kubernetesVersion, ".")[1]
	var out []string
	for _, pkg := range []string{"k8s.io/component-base/version", "k8s.io/client-go/pkg/version"} {
		out = append(out,
			pkg+".gitVersion=v"+kubernetesVersion,
			pkg+".gitMajor=1",
			pkg+".gitMinor="+minor,
			pkg+".gitTreeState=clean",
			pkg+".buildDate=1970-01-01T00:00:00Z",
		)
	}
	return out
}

// choose returns the components of the given names, all for no name, in their fixed order.
func choose(names []string) ([]Component, error) {
	all := Components()
	known := make([]string, 0, len(all))
	for _, c := range all {
		known = append(known, c.Name)
	}
	for _, n := range names {
		if !slices.Contains(known, n) {
			return nil, fmt.Errorf("no component %q: there are %s", n, strings.Join(known, ", "))
		}
	}
	if len(names) == 0 {
		return all, nil
	}
	return slices.DeleteFunc(all, func(c Component) bool { return !slices.Contains(names, c.Name) }), nil
}

// key names the component's folder in a cache: another version or another way to build it
// is another folder.
func (c Component) key() string {
	recipe, err := json.Marshal(c)
	if err != nil {
		panic(err) // strings always have a JSON form
	}
	sum := sha256.Sum256(recipe)
	return fmt.Sprintf("%s-%s-%x", c.Name, c.Version, sum[:4])
}
