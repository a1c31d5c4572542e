package kubernetes

import (
	"fmt"

	typedcore "k8s.io/client-go/kubernetes/typed/core/v1"
	typeddiscovery "k8s.io/client-go/kubernetes/typed/discovery/v1"
	"k8s.io/client-go/tools/clientcmd"
)

// Client is what the finder needs of the Kubernetes API.
type Client interface {
	CoreV1() typedcore.CoreV1Interface
	DiscoveryV1() typeddiscovery.DiscoveryV1Interface
}

type client struct {
	core      *typedcore.CoreV1Client
	discovery *typeddiscovery.DiscoveryV1Client
}

func (c *client) CoreV1() typedcore.CoreV1Interface                { return c.core }
func (c *client) DiscoveryV1() typeddiscovery.DiscoveryV1Interface { return c.discovery }

// Connect returns a client by the file in KUBECONFIG, else by the service account of the pod it
// runs in. It makes no request. Without either it is *broker.InvalidError with field "discover".
func Connect() (Client, error) {
	config, err := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(clientcmd.NewDefaultClientConfigLoadingRules(), nil).ClientConfig()
	if clientcmd.IsEmptyConfig(err) {
		return nil, invalid("kubernetes: is for a pod in a cluster; elsewhere set KUBECONFIG to a file that leads to one")
	}
	if err != nil {
		return nil, invalid("the configuration of the Kubernetes client is of no use: %s", err)
	}
	config.UserAgent = "roomscaler-broker"
	c := &client{}
	if c.core, err = typedcore.NewForConfig(config); err != nil {
		return nil, fmt.Errorf("making a Kubernetes client: %w", err)
	}
	if c.discovery, err = typeddiscovery.NewForConfig(config); err != nil {
		return nil, fmt.Errorf("making a Kubernetes client: %w", err)
	}
	return c, nil
}
