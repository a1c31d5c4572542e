package cluster

import (
	"context"
	"fmt"
	"net"
	"path/filepath"
	"strconv"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
)

const (
	serviceRange   = "10.96.0.0/16" // nothing serves it
	frontProxyUser = "front-proxy"
)

func flag(name, value string) string { return "--" + name + "=" + value }

func local(port int) string { return net.JoinHostPort(loopback, strconv.Itoa(port)) }

func (c *ControlPlane) etcd(client, peer int) []string {
	return []string{
		flag("name", "lab"),
		flag("data-dir", filepath.Join(c.o.Dir, "etcd")),
		flag("listen-client-urls", "http://"+local(client)),
		flag("advertise-client-urls", "http://"+local(client)),
		flag("listen-peer-urls", "http://"+local(peer)),
		flag("initial-advertise-peer-urls", "http://"+local(peer)),
		flag("initial-cluster", "lab=http://"+local(peer)),
		"--unsafe-no-fsync", // nothing here outlives the process
		flag("log-level", "warn"),
	}
}

func (c *ControlPlane) apiserver(etcd, port int) []string {
	cert, key := c.pair("apiserver")
	ca, _ := c.pair("ca")
	frontCA, _ := c.pair("front-proxy-ca")
	front, frontKey := c.pair("front-proxy")
	signer := filepath.Join(c.pki(), "service-accounts")
	return []string{
		flag("etcd-servers", "http://"+local(etcd)),
		flag("bind-address", loopback),
		flag("advertise-address", loopback),
		flag("secure-port", strconv.Itoa(port)),
		flag("tls-cert-file", cert),
		flag("tls-private-key-file", key),
		flag("client-ca-file", ca),
		flag("authorization-mode", "Node,RBAC"),
		flag("service-cluster-ip-range", serviceRange),
		// A pod wants a service account's token, which needs one more controller's round for each namespace.
		flag("disable-admission-plugins", "ServiceAccount"),
		// The address of this API server is no endpoint that anybody may reach.
		flag("endpoint-reconciler-type", "none"),
		flag("service-account-issuer", "https://kubernetes.default.svc"),
		flag("service-account-key-file", signer+".pub"),
		flag("service-account-signing-key-file", signer+".key"),
		// What an aggregated API is called with, and by what it knows whom it may believe.
		flag("requestheader-client-ca-file", frontCA),
		flag("requestheader-allowed-names", frontProxyUser),
		flag("requestheader-username-headers", "X-Remote-User"),
		flag("requestheader-group-headers", "X-Remote-Group"),
		flag("requestheader-extra-headers-prefix", "X-Remote-Extra-"),
		flag("proxy-client-cert-file", front),
		flag("proxy-client-key-file", frontKey),
	}
}

func (c *ControlPlane) controllerManager(port int) []string {
	config := filepath.Join(c.o.Dir, "controller-manager.kubeconfig")
	ca, key := c.pair("ca")
	return []string{
		flag("kubeconfig", config),
		flag("authentication-kubeconfig", config),
		flag("authorization-kubeconfig", config),
		flag("bind-address", loopback),
		flag("secure-port", strconv.Itoa(port)),
		flag("leader-elect", "false"),
		// Each controller is a service account of its own, as everywhere: what it may do is tried too.
		flag("use-service-account-credentials", "true"),
		flag("service-account-private-key-file", filepath.Join(c.pki(), "service-accounts.key")),
		flag("root-ca-file", ca),
		flag("cluster-signing-cert-file", ca),
		flag("cluster-signing-key-file", key),
		flag("flex-volume-plugin-dir", filepath.Join(c.o.Dir, "flex")), // its default is in /usr
		flag("horizontal-pod-autoscaler-sync-period", c.o.HPASync.String()),
	}
}

// controllersWork holds once the controller manager has made the service account that
// every namespace gets: it is one of the last controllers that must run for the rest.
func (c *ControlPlane) controllersWork(ctx context.Context) error {
	k, err := kubernetes.NewForConfig(c.config)
	if err != nil {
		return err
	}
	if _, err := k.CoreV1().ServiceAccounts("default").Get(ctx, "default", metav1.GetOptions{}); err != nil {
		return fmt.Errorf("the controllers do not work yet: %w", err)
	}
	return nil
}
