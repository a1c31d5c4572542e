package adapter

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"regexp"

	"go.yaml.in/yaml/v3"

	"github.com/roomscaler/roomscaler/scaler"
)

// Pool is a pool whose metrics are served.
type Pool struct {
	// Namespace is where its autoscaler is. Elsewhere its metrics do not exist.
	Namespace string
	Target    scaler.Target
}

// ConfigError says where in the configuration is what mistake.
type ConfigError struct {
	Line int // 0: it is no matter of one line
	Want string
}

func (e *ConfigError) Error() string {
	if e.Line == 0 {
		return e.Want
	}
	return fmt.Sprintf("line %d: %s", e.Line, e.Want)
}

// namespaceKey is the key of a pool that is not one of a trigger.
const namespaceKey = "namespace"

var namespaceForm = regexp.MustCompile(`^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$`)

// ParsePools reads the configuration: YAML with a list of pools, each with the namespace
// of its autoscaler and the keys of a KEDA trigger of the scaler (see [scaler.ParseTarget]).
// A pool may stand there once. Errors are *ConfigError, possibly around a *scaler.TargetError.
func ParsePools(raw []byte) ([]Pool, error) {
	var doc struct {
		Pools []yaml.Node `yaml:"pools"`
	}
	d := yaml.NewDecoder(bytes.NewReader(raw))
	d.KnownFields(true)
	if err := d.Decode(&doc); err != nil && !errors.Is(err, io.EOF) {
		return nil, &ConfigError{Want: "is not understood: " + err.Error()}
	}
	if len(doc.Pools) == 0 {
		return nil, &ConfigError{Want: "names no pool; give at least one under pools"}
	}
	var pools []Pool
	seen := map[string]bool{}
	for i := range doc.Pools {
		p, err := parsePool(&doc.Pools[i])
		if err != nil {
			return nil, err
		}
		if seen[p.Target.Pool] {
			return nil, &ConfigError{doc.Pools[i].Line, "pool " + p.Target.Pool + " stands there already; two autoscalers cannot share a pool"}
		}
		seen[p.Target.Pool] = true
		pools = append(pools, p)
	}
	return pools, nil
}

func parsePool(n *yaml.Node) (Pool, error) {
	var values map[string]yaml.Node
	if err := n.Decode(&values); err != nil {
		return Pool{}, &ConfigError{n.Line, "is no pool: give its keys, each with a value"}
	}
	metadata := map[string]string{}
	for key, v := range values {
		if v.Kind != yaml.ScalarNode {
			return Pool{}, &ConfigError{v.Line, key + " is no single value"}
		}
		metadata[key] = v.Value
	}
	p := Pool{Namespace: metadata[namespaceKey]}
	delete(metadata, namespaceKey)
	if !namespaceForm.MatchString(p.Namespace) {
		return Pool{}, &ConfigError{n.Line, fmt.Sprintf("namespace %q: give the namespace of the pool's HorizontalPodAutoscaler", p.Namespace)}
	}
	var err error
	if p.Target, err = scaler.ParseTarget(metadata); err != nil {
		return Pool{}, fmt.Errorf("line %d: %w", n.Line, err)
	}
	return p, nil
}
