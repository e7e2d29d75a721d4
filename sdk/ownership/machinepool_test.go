package ownership_test

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/sdk/ownership"
)

func TestMachinePoolOf(t *testing.T) {
	scheme := runtime.NewScheme()
	if err := clusterv1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	pool := &clusterv1.MachinePool{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "p", UID: "1"}}
	reader := fake.NewClientBuilder().WithScheme(scheme).WithObjects(pool).Build()
	for _, tt := range []struct {
		reason string
		owner  metav1.OwnerReference
		want   bool
	}{
		{"its controller is a MachinePool", metav1.OwnerReference{APIVersion: "cluster.x-k8s.io/v1beta1", Kind: "MachinePool", Name: "p", UID: "1", Controller: ptr.To(true)}, true},
		{"an owner that does not control it", metav1.OwnerReference{APIVersion: "cluster.x-k8s.io/v1beta1", Kind: "MachinePool", Name: "p", UID: "1"}, false},
		{"another kind", metav1.OwnerReference{APIVersion: "cluster.x-k8s.io/v1beta1", Kind: "Machine", Name: "p", UID: "1", Controller: ptr.To(true)}, false},
		{"a MachinePool that does not exist", metav1.OwnerReference{APIVersion: "cluster.x-k8s.io/v1beta1", Kind: "MachinePool", Name: "x", UID: "1", Controller: ptr.To(true)}, false},
		{"another MachinePool of the name", metav1.OwnerReference{APIVersion: "cluster.x-k8s.io/v1beta1", Kind: "MachinePool", Name: "p", UID: "0", Controller: ptr.To(true)}, false},
	} {
		t.Run(tt.reason, func(t *testing.T) {
			obj := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", OwnerReferences: []metav1.OwnerReference{tt.owner}}}
			got, err := ownership.MachinePoolOf(t.Context(), reader, obj)
			if err != nil || (got != nil) != tt.want {
				t.Errorf("%v, %v", got, err)
			}
		})
	}
}
