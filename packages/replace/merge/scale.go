package merge

import (
	"encoding/json"
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// ScaledAnnotation is on Deployments whose replicas were kept by an upgrade; its value is their number. An object that had to be created
// again has lost who set them.
const ScaledAnnotation = "clusterctl.cluster.x-k8s.io/scaled-to"

// Scaled returns the desired object with the replicas of live if these are more, and not from a manifest: then a user or an autoscaler has
// raised them. The field's manager tells: an old manifest is not at hand, and need not have been that of a release.
func Scaled(live, desired *unstructured.Unstructured) *unstructured.Unstructured {
	if !scales(desired) || !scales(live) {
		return desired
	}
	have, wanted := replicas(live), replicas(desired)
	if have <= wanted || !raised(live) && live.GetAnnotations()[ScaledAnnotation] != fmt.Sprint(have) {
		return desired
	}
	return withReplicas(desired, have)
}

// Recorded is Scaled for an object that does not exist at the moment, because an interrupted upgrade has deleted it to create it again.
// before is as it was recorded, without managers of fields: all replicas beyond the desired ones are kept.
func Recorded(before, desired *unstructured.Unstructured) *unstructured.Unstructured {
	if !scales(desired) || !scales(before) || replicas(before) <= replicas(desired) {
		return desired
	}
	return withReplicas(desired, replicas(before))
}

func scales(o *unstructured.Unstructured) bool {
	return slices.Contains([]string{"Deployment", "StatefulSet"}, o.GetKind())
}

// replicas returns the number of replicas; the default is 1.
func replicas(o *unstructured.Unstructured) int64 {
	n, ok, err := unstructured.NestedInt64(o.Object, "spec", "replicas")
	if !ok || err != nil {
		return 1
	}
	return n
}

func withReplicas(o *unstructured.Unstructured, n int64) *unstructured.Unstructured {
	out := o.DeepCopy()
	// Cannot fail: spec is a map in every valid object.
	_ = unstructured.SetNestedField(out.Object, n, "spec", "replicas")
	annotations := out.GetAnnotations()
	if annotations == nil {
		annotations = map[string]string{}
	}
	annotations[ScaledAnnotation] = fmt.Sprint(n)
	out.SetAnnotations(annotations)
	return out
}

// raised reports whether another manager of fields than those that write manifests has set the replicas.
func raised(live *unstructured.Unstructured) bool {
	return slices.ContainsFunc(live.GetManagedFields(), func(e metav1.ManagedFieldsEntry) bool {
		return !slices.Contains(installers(), e.Manager) && setsReplicas(e)
	})
}

// installers are the managers of fields that write manifests of providers: clusterctl, and the operators of this project and of others.
func installers() []string { return []string{"clusterctl", "cluster-api-operator", "manager"} }

func setsReplicas(e metav1.ManagedFieldsEntry) bool {
	fields := struct {
		Spec map[string]json.RawMessage `json:"f:spec"`
	}{}
	if e.FieldsV1 == nil || json.Unmarshal(e.FieldsV1.GetRawBytes(), &fields) != nil {
		return false
	}
	_, sets := fields.Spec["f:replicas"]
	return sets
}
