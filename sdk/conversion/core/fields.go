package core

import (
	"math"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/ptr"

	clusterv1beta1 "sigs.k8s.io/cluster-api/api/core/v1beta1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
)

// seconds rounds a duration toward zero.
func seconds(d *metav1.Duration) *int32 {
	if d == nil {
		return nil
	}
	return ptr.To(int32(min(max(int64(d.Duration/time.Second), math.MinInt32), math.MaxInt32)))
}

// duration is the opposite of seconds.
func duration(s *int32) *metav1.Duration {
	if s == nil {
		return nil
	}
	return &metav1.Duration{Duration: time.Duration(*s) * time.Second}
}

// optional returns nil for the zero value.
func optional[T comparable](value T) *T {
	var zero T
	if value == zero {
		return nil
	}
	return &value
}

// isSet reports whether a value differs from the zero value.
func isSet[T any](value T) bool { return !equality.Semantic.DeepEqual(value, *new(T)) }

// each maps the elements of a list; a nil list stays nil.
func each[A, B any](list []A, change func(A) B) []B {
	if list == nil {
		return nil
	}
	changed := make([]B, 0, len(list))
	for _, element := range list {
		changed = append(changed, change(element))
	}
	return changed
}

func timeUp(t *metav1.Time) metav1.Time { return ptr.Deref(t, metav1.Time{}) }

func timeDown(t metav1.Time) *metav1.Time {
	if t.IsZero() {
		return nil
	}
	return &t
}

func metaUp(m clusterv1beta1.ObjectMeta) clusterv1.ObjectMeta   { return clusterv1.ObjectMeta(m) }
func metaDown(m clusterv1.ObjectMeta) clusterv1beta1.ObjectMeta { return clusterv1beta1.ObjectMeta(m) }

// refUp drops version and namespace of a reference.
func refUp(r *corev1.ObjectReference) clusterv1.ContractVersionedObjectReference {
	if r == nil {
		return clusterv1.ContractVersionedObjectReference{}
	}
	return clusterv1.ContractVersionedObjectReference{APIGroup: r.GroupVersionKind().Group, Kind: r.Kind, Name: r.Name}
}

// refDown adds version and namespace to a reference.
func (c Converter) refDown(r clusterv1.ContractVersionedObjectReference, namespace string) *corev1.ObjectReference {
	if !r.IsDefined() {
		return nil
	}
	version, ok := c.Version(r.GroupKind())
	if !ok {
		version = "v1beta1"
	}
	return &corev1.ObjectReference{
		APIVersion: schema.GroupVersion{Group: r.APIGroup, Version: version}.String(), Kind: r.Kind, Namespace: namespace, Name: r.Name,
	}
}

func conditionsUp(conditions clusterv1beta1.Conditions) clusterv1.Conditions {
	return each(conditions, func(c clusterv1beta1.Condition) clusterv1.Condition {
		return clusterv1.Condition{
			Type: clusterv1.ConditionType(c.Type), Status: c.Status, Severity: clusterv1.ConditionSeverity(c.Severity),
			LastTransitionTime: c.LastTransitionTime, Reason: c.Reason, Message: c.Message,
		}
	})
}

func conditionsDown(conditions clusterv1.Conditions) clusterv1beta1.Conditions {
	return each(conditions, func(c clusterv1.Condition) clusterv1beta1.Condition {
		return clusterv1beta1.Condition{
			Type: clusterv1beta1.ConditionType(c.Type), Status: c.Status, Severity: clusterv1beta1.ConditionSeverity(c.Severity),
			LastTransitionTime: c.LastTransitionTime, Reason: c.Reason, Message: c.Message,
		}
	})
}

// reported returns a counter of a status that a controller has written, where 0 is a value. Otherwise 0 is an absent one.
func reported(generation int64, counter int32) *int32 {
	if generation > 0 {
		return &counter
	}
	return optional(counter)
}

// text converts a class of failures, which is a string.
func text[T ~string](value *T) *string {
	if value == nil {
		return nil
	}
	return ptr.To(string(*value))
}

// failure is the opposite of text.
func failure[T ~string](value *string) *T {
	if value == nil {
		return nil
	}
	return ptr.To(T(*value))
}
