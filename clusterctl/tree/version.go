package tree

import (
	"context"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	clusterv1beta1 "sigs.k8s.io/cluster-api/api/core/v1beta1"
	"sigs.k8s.io/cluster-api/sdk/conversion"
)

// InV1Beta1 returns an object in v1beta1, which is how this package and those above it read objects: references may name newer versions.
// Objects of other providers that implement contract v1beta2 are copied, with the fields of contract v1beta1 that differ. An object that
// cannot be converted is returned as it is.
func InV1Beta1(u *unstructured.Unstructured) *unstructured.Unstructured {
	if _, known := conversion.Shared().KindOf(u); !known {
		return withReady(u)
	}
	older, err := conversion.Shared().In(context.Background(), clusterv1beta1.GroupVersion.Version, u)
	if err != nil {
		return u
	}
	return older
}

// withReady sets the fields of contract v1beta1 from those of contract v1beta2 in a copy of an object that has these.
func withReady(u *unstructured.Unstructured) *unstructured.Unstructured {
	status, _, _ := unstructured.NestedMap(u.Object, "status", "initialization")
	if len(status) == 0 {
		return u
	}
	u = u.DeepCopy()
	for newer, older := range map[string]string{
		"provisioned": "ready", "dataSecretCreated": "ready", "controlPlaneInitialized": "initialized",
	} {
		if done, _ := status[newer].(bool); done {
			_ = unstructured.SetNestedField(u.Object, true, "status", older) // It is an object: it has initialization.
		}
	}
	if Number(u, "status", "readyReplicas") > 0 && status["controlPlaneInitialized"] == true {
		_ = unstructured.SetNestedField(u.Object, true, "status", "ready")
	}
	return u
}
