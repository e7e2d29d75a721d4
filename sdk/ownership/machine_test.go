package ownership_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/sdk/condition"
	"sigs.k8s.io/cluster-api/sdk/ownership"
)

func TestMachineOf(t *testing.T) {
	scheme := runtime.NewScheme()
	if err := clusterv1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	machine := &clusterv1.Machine{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "m", UID: "1"}}
	reader := fake.NewClientBuilder().WithScheme(scheme).WithObjects(machine).Build()
	ref := func(version, kind, name string, uid types.UID, controls bool) metav1.OwnerReference {
		return metav1.OwnerReference{APIVersion: version, Kind: kind, Name: name, UID: uid, Controller: ptr.To(controls)}
	}
	tests := []struct {
		reason string
		owner  metav1.OwnerReference
		want   string
	}{
		{"its controller is a Machine", ref("cluster.x-k8s.io/v1beta1", "Machine", "m", "1", true), "m"},
		{"a reference by an older version is one to the same Machine", ref("cluster.x-k8s.io/v1alpha4", "Machine", "m", "1", true), "m"},
		{"an owner that does not control it is not its Machine", ref("cluster.x-k8s.io/v1beta1", "Machine", "m", "1", false), ""},
		{"another kind", ref("cluster.x-k8s.io/v1beta1", "MachineSet", "m", "1", true), ""},
		{"another group's Machine", ref("example.org/v1", "Machine", "m", "1", true), ""},
		{"the Machine is gone", ref("cluster.x-k8s.io/v1beta1", "Machine", "gone", "1", true), ""},
		{"the Machine is gone, and there is another of its name", ref("cluster.x-k8s.io/v1beta1", "Machine", "m", "0", true), ""},
	}
	for _, tc := range tests {
		t.Run(tc.reason, func(t *testing.T) {
			obj := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", OwnerReferences: []metav1.OwnerReference{tc.owner}}}
			got, err := ownership.MachineOf(t.Context(), reader, obj)
			if err != nil {
				t.Fatal(err)
			}
			name := ""
			if got != nil {
				name = got.Name
			}
			if diff := cmp.Diff(tc.want, name); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

func TestManagedExternally(t *testing.T) {
	managed := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{"cluster.x-k8s.io/managed-by": ""}}}
	if !ownership.ManagedExternally(managed) || ownership.ManagedExternally(&corev1.Secret{}) {
		t.Error("the presence of the annotation decides, whatever its value")
	}
}

func TestUnhealthy(t *testing.T) {
	set := func(c clusterv1.Condition) func(*clusterv1.Machine) {
		return func(m *clusterv1.Machine) { condition.Set(m, c) }
	}
	const warning = clusterv1.ConditionSeverityWarning
	node, check := clusterv1.MachineNodeHealthyV1Beta1Condition, clusterv1.MachineHealthCheckSucceededV1Beta1Condition
	nodeless := func(m *clusterv1.Machine) { m.Status.NodeRef = clusterv1.MachineNodeReference{} }
	failed := func(m *clusterv1.Machine) {
		m.SetV1Beta1Status(clusterv1.MachineV1Beta1DeprecatedStatus{FailureReason: ptr.To("CreateError")})
	}
	withMessage := func(m *clusterv1.Machine) {
		m.SetV1Beta1Status(clusterv1.MachineV1Beta1DeprecatedStatus{FailureMessage: ptr.To("no quota")})
	}
	tests := []struct {
		reason            string
		edit              []func(*clusterv1.Machine)
		unhealthy, broken bool
	}{
		{reason: "it has a Node, and nothing is known against it"},
		{reason: "its Node is healthy", edit: []func(*clusterv1.Machine){set(condition.True(node)), set(condition.True(check))}},
		{reason: "its Node is not healthy", edit: []func(*clusterv1.Machine){set(condition.False(node, warning, "", ""))}, unhealthy: true, broken: true},
		{reason: "the health of its Node is unknown, as after a partition", edit: []func(*clusterv1.Machine){set(condition.Unknown(node, "", ""))}},
		{reason: "a health check marked it", edit: []func(*clusterv1.Machine){set(condition.False(check, warning, "", ""))}, unhealthy: true, broken: true},
		{reason: "it has no Node yet", edit: []func(*clusterv1.Machine){nodeless, set(condition.False(node, warning, "", ""))}, unhealthy: true},
		{reason: "it failed", edit: []func(*clusterv1.Machine){failed}, unhealthy: true, broken: true},
		{
			reason: "it failed before it had a Node", unhealthy: true, broken: true,
			edit: []func(*clusterv1.Machine){nodeless, withMessage},
		},
	}
	for _, tt := range tests {
		t.Run(tt.reason, func(t *testing.T) {
			m := &clusterv1.Machine{Status: clusterv1.MachineStatus{NodeRef: clusterv1.MachineNodeReference{Name: "m"}}}
			for _, edit := range tt.edit {
				edit(m)
			}
			if unhealthy, broken := ownership.Unhealthy(m), ownership.Broken(m); unhealthy != tt.unhealthy || broken != tt.broken {
				t.Errorf("unhealthy %t, broken %t", unhealthy, broken)
			}
		})
	}
}
