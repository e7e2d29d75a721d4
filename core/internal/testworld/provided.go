package testworld

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta1"
)

// Fields are the fields of an object.
type Fields = map[string]any

// ProviderObject returns an object of a provider in namespace default with the label of Cluster c.
func ProviderObject(kind schema.GroupVersionKind, name string, fields Fields) *unstructured.Unstructured {
	u := &unstructured.Unstructured{Object: Fields{}}
	if fields != nil {
		u.Object = runtime.DeepCopyJSON(fields)
	}
	u.SetGroupVersionKind(kind)
	u.SetNamespace("default")
	u.SetName(name)
	u.SetLabels(map[string]string{clusterv1.ClusterNameLabel: "c"})
	return u
}

// SetController makes owner, of a kind of this group, the controller of an object.
func SetController(obj metav1.Object, kind string, owner metav1.Object) {
	obj.SetOwnerReferences([]metav1.OwnerReference{*metav1.NewControllerRef(owner, clusterv1.GroupVersion.WithKind(kind))})
}
