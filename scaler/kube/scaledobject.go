package kube

import (
	"fmt"
	"strconv"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/roomscaler/roomscaler/scaler"
)

// scaledObject is what is needed of KEDA's. It is read in this form, so that KEDA's own types with all they bring
// are not part of the program.
type scaledObject struct {
	Metadata metav1.ObjectMeta `json:"metadata"`
	Spec     struct {
		ScaleTargetRef struct {
			APIVersion string `json:"apiVersion"`
			Kind       string `json:"kind"`
			Name       string `json:"name"`
		} `json:"scaleTargetRef"`
		MinReplicaCount  *int32 `json:"minReplicaCount"`
		MaxReplicaCount  *int32 `json:"maxReplicaCount"`
		IdleReplicaCount *int32 `json:"idleReplicaCount"`
		Triggers         []struct {
			Type             string `json:"type"`
			MetricType       string `json:"metricType"`
			UseCachedMetrics bool   `json:"useCachedMetrics"`
		} `json:"triggers"`
		Fallback *struct {
			Replicas int32 `json:"replicas"`
		} `json:"fallback"`
		Advanced *struct {
			RestoreToOriginalReplicaCount bool `json:"restoreToOriginalReplicaCount"`
			HorizontalPodAutoscalerConfig *struct {
				Name string `json:"name"`
			} `json:"horizontalPodAutoscalerConfig"`
			ScalingModifiers *struct {
				Formula string `json:"formula"`
			} `json:"scalingModifiers"`
		} `json:"advanced"`
	} `json:"spec"`
	Status struct {
		HPAName string `json:"hpaName"`
	} `json:"status"`
}

func keepScaledObject(_ *scaledObject, u *unstructured.Unstructured) (scaledObject, error) {
	var o scaledObject
	err := read(u, &o)
	return o, err
}

// Where nothing is said: what KEDA takes.
const (
	kedaMinimum = 0
	kedaMaximum = 100
)

func (o *scaledObject) minimum() int { return countOf(o.Spec.MinReplicaCount, kedaMinimum) }
func (o *scaledObject) maximum() int { return countOf(o.Spec.MaxReplicaCount, kedaMaximum) }

func countOf(n *int32, def int) int {
	if n == nil {
		return def
	}
	return int(*n)
}

// hpaName is the name of the autoscaler that KEDA has made, or will.
func (o *scaledObject) hpaName() string {
	switch {
	case o.Status.HPAName != "":
		return o.Status.HPAName
	case o.Spec.Advanced != nil && o.Spec.Advanced.HorizontalPodAutoscalerConfig != nil && o.Spec.Advanced.HorizontalPodAutoscalerConfig.Name != "":
		return o.Spec.Advanced.HorizontalPodAutoscalerConfig.Name
	}
	return "keda-hpa-" + o.Metadata.Name
}

// refused says why rooms cannot be kept on what it scales; nil: they can.
func (o *scaledObject) refused() error {
	t := o.Spec.ScaleTargetRef
	kind := t.Kind
	if kind == "" {
		kind = "Deployment" // KEDA's default
	}
	switch {
	case kind == "Deployment":
		return fmt.Errorf("it scales Deployment %s, of which nobody can say which pod goes next; run the media servers as a StatefulSet and set scaleTargetRef.kind to StatefulSet", t.Name)
	case kind != "StatefulSet" || t.APIVersion != "" && t.APIVersion != "apps/v1":
		return fmt.Errorf("it scales %s %s of %s; only a StatefulSet of apps/v1 takes its highest ordinal away first; set scaleTargetRef to one", kind, t.Name, t.APIVersion)
	}
	return nil
}

// The annotations with which KEDA is paused.
const (
	annotationPaused   = "autoscaling.keda.sh/paused"
	annotationPausedAt = "autoscaling.keda.sh/paused-replicas"
	annotationPauseIn  = "autoscaling.keda.sh/paused-scale-in"
	annotationPauseOut = "autoscaling.keda.sh/paused-scale-out"
)

// pausedAt is the number at which it is paused; nil if at none.
func (o *scaledObject) pausedAt() *int {
	n, err := strconv.ParseUint(o.Metadata.Annotations[annotationPausedAt], 10, 31)
	if err != nil {
		return nil
	}
	v := int(n)
	return &v
}

func (o *scaledObject) paused() bool {
	for _, a := range []string{annotationPaused, annotationPauseIn, annotationPauseOut} {
		if v, ok := o.Metadata.Annotations[a]; ok {
			if off, err := strconv.ParseBool(v); err != nil || off {
				return true
			}
		}
	}
	return false
}

// settings tells of everything in the configuration by which replicas may change past the scaler, or not change
// as it says, in a fixed order.
func settings(o *scaledObject, set *statefulSet, scaled bool) []scaler.Risk {
	var risks []scaler.Risk
	add := func(when bool, code, form string, args ...any) {
		if when {
			risks = append(risks, scaler.Risk{Code: code, Detail: fmt.Sprintf(form, args...)})
		}
	}
	name := o.Metadata.Name
	if n := o.pausedAt(); n != nil {
		add(true, scaler.RiskPausedAt, "%s of ScaledObject %s sets %d replicas, whatever runs on the others; take it off", annotationPausedAt, name, *n)
	}
	add(o.paused(), scaler.RiskPaused, "ScaledObject %s is paused by an annotation: the number of replicas does not follow the load", name)
	for _, t := range o.Spec.Triggers {
		add(t.UseCachedMetrics, scaler.RiskCached, "useCachedMetrics of ScaledObject %s may answer with an old number without end; remove it", name)
		add(t.MetricType != "" && t.MetricType != "AverageValue", scaler.RiskMetricType, "metricType %s of ScaledObject %s does not lead to the number that is answered; set AverageValue", t.MetricType, name)
	}
	add(len(o.Spec.Triggers) > 1, scaler.RiskTriggers, "ScaledObject %s has %d triggers: another one can keep the number up, and its errors hold it; keep this one alone", name, len(o.Spec.Triggers))
	if f := o.Spec.Fallback; f != nil {
		add(true, scaler.RiskFallback, "fallback of ScaledObject %s sets %d replicas after errors, whatever runs on the others; remove it: an error holds the number", name, f.Replicas)
	}
	if n := o.Spec.IdleReplicaCount; n != nil {
		add(true, scaler.RiskIdle, "idleReplicaCount of ScaledObject %s lets KEDA set %d replicas by itself; remove it", name, *n)
	}
	add(o.minimum() == 0, scaler.RiskZero, "minReplicaCount of ScaledObject %s is 0 (its default): KEDA sets 0 by itself once nothing is needed; set at least 1 unless that is meant", name)
	if a := o.Spec.Advanced; a != nil {
		add(a.RestoreToOriginalReplicaCount, scaler.RiskRestore, "restoreToOriginalReplicaCount of ScaledObject %s sets an old number when it is deleted, whatever runs on the others; remove it", name)
		add(a.ScalingModifiers != nil && a.ScalingModifiers.Formula != "", scaler.RiskModifiers, "scalingModifiers of ScaledObject %s change the number that is answered; remove them", name)
	}
	set0 := o.Spec.ScaleTargetRef.Name
	add(!set.parallel, scaler.RiskOrderedReady, "podManagementPolicy of StatefulSet %s is OrderedReady: one pod that is not ready or drains blocks all scaling; make it anew with Parallel", set0)
	add(!set.onDelete, scaler.RiskRolling, "updateStrategy of StatefulSet %s is RollingUpdate: an update ends pods whatever runs on them; set OnDelete", set0)
	add(!scaled && !o.paused() && o.pausedAt() == nil, scaler.RiskNoHPA, "there is no HorizontalPodAutoscaler %s: KEDA has not made it, so nothing is scaled", o.hpaName())
	return risks
}
