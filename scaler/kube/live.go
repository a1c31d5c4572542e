package kube

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/roomscaler/roomscaler/scaler"
)

// Live implements scaler.Cluster. It asks for the ScaledObject and for its StatefulSet.
func (w *Watcher) Live(ctx context.Context, ref scaler.Ref) (int, error) {
	u, err := w.client.Resource(scaledObjects).Namespace(ref.Namespace).Get(ctx, ref.Name, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		return 0, scaler.ErrNoScaledObject
	case err != nil:
		return 0, fmt.Errorf("get ScaledObject %s: %w", ref, err)
	}
	o, err := keepScaledObject(nil, u)
	if err != nil {
		return 0, fmt.Errorf("read ScaledObject %s: %w", ref, err)
	}
	if err := o.refused(); err != nil {
		return 0, &scaler.RefusedError{Ref: ref, Why: err.Error()}
	}
	name := o.Spec.ScaleTargetRef.Name
	if u, err = w.client.Resource(statefulSets).Namespace(ref.Namespace).Get(ctx, name, metav1.GetOptions{}); err != nil {
		return 0, fmt.Errorf("get StatefulSet %s/%s: %w", ref.Namespace, name, err)
	}
	set, err := keepStatefulSet(nil, u)
	if err != nil {
		return 0, fmt.Errorf("read StatefulSet %s/%s: %w", ref.Namespace, name, err)
	}
	return set.replicas, nil
}
