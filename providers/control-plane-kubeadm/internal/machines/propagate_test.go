package machines

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/utils/ptr"

	controlplanev1 "sigs.k8s.io/cluster-api/api/controlplane/v1beta2"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/providers/control-plane-kubeadm/internal/kcptest"
	"sigs.k8s.io/cluster-api/providers/control-plane-kubeadm/internal/membership"
	"sigs.k8s.io/cluster-api/sdk/testenv"
	"sigs.k8s.io/cluster-api/sdk/testenv/fakeapi"
)

// An error of one Machine does not affect the others.
func TestPropagateContinuesAfterErrors(t *testing.T) {
	b, _ := kcptest.Three(t)
	b.Reload(t)
	b.KCP.Spec.MachineTemplate.ObjectMeta.Labels = map[string]string{"new": "label"}
	b.API.Before = func(r fakeapi.Request) error {
		if r.Verb == "patch" && r.Name == "a" {
			return errors.New("rejected")
		}
		return nil
	}
	if _, err := manager(b).Propagate(t.Context(), b.ControlPlane); err == nil {
		t.Error("the error is not returned")
	}
	if want := []string{"patch Machine b", "patch Machine c"}; !slices.Equal(b.API.Writes, want) {
		t.Errorf("writes %q, want %q", b.API.Writes, want)
	}
}

// A Machine that Cluster API v1.7 created is not written for our hook: it gets it with another change, or when its deletion begins.
func TestWhenMachinesGetTheHook(t *testing.T) {
	for _, tc := range []struct {
		reason string
		change func(b *kcptest.World)
		want   string
	}{
		{reason: "at rest"},
		{reason: "with another change", change: func(b *kcptest.World) {
			b.KCP.Spec.MachineTemplate.Spec.Deletion.NodeDrainTimeoutSeconds = ptr.To[int32](7)
		}, want: "patch Machine a, patch Machine b, patch Machine c"},
		{reason: "its deletion has begun", change: func(b *kcptest.World) { b.Deleted(t, "b") }, want: "patch Machine b"},
		{reason: "its deletion has passed hooks: a user has removed it", change: func(b *kcptest.World) {
			b.Deleted(t, "b")
			b.Drained(t, "b")
		}},
	} {
		t.Run(tc.reason, func(t *testing.T) {
			b, _ := kcptest.Three(t)
			b.Annotate(t, "b", nil)
			b.Reload(t)
			for _, m := range b.Machines {
				m.Labels = b.MachineLabels()
				testenv.Must(t, b.API.Update(t.Context(), m.Machine))
			}
			if tc.change != nil {
				tc.change(b)
				b.Reload(t)
			}
			b.API.Writes = nil
			if _, err := manager(b).Propagate(t.Context(), b.ControlPlane); err != nil {
				t.Fatal(err)
			}
			if got := strings.Join(b.API.Writes, ", "); got != tc.want {
				t.Errorf("writes %q, want %q", got, tc.want)
			}
			if got := slices.Contains(b.Held(t), "b"); got != (tc.want != "") {
				t.Errorf("it has the hook: %t", got)
			}
		})
	}
}

// Machines are created with our hook.
func TestNewMachinesHaveTheHook(t *testing.T) {
	b, _ := kcptest.Three(t)
	infrastructure := &unstructured.Unstructured{}
	infrastructure.SetName("new")
	m, err := newMachine(t.Context(), b.ControlPlane, "new", infrastructure, "")
	if err != nil || !membership.HasHook(m) {
		t.Errorf("a new Machine has the hook: %t, error %v", membership.HasHook(m), err)
	}
	if _, copied := dependent(b.ControlPlane, m).Annotations[controlplanev1.PreTerminateHookCleanupAnnotation]; copied {
		t.Error("objects that are created for a Machine have the hook, too")
	}
}

// Taints that the template no longer has are removed if we have set them. Key and effect identify a taint.
func TestTaintsThatTheTemplateNoLongerHas(t *testing.T) {
	const noSchedule = corev1.TaintEffectNoSchedule
	b := kcptest.New(t)
	b.KCP.Spec.MachineTemplate.Spec.Taints = []clusterv1.MachineTaint{{Key: "new", Effect: noSchedule}, {Key: "kept", Effect: noSchedule, Value: "2"}}
	m := &clusterv1.Machine{Spec: clusterv1.MachineSpec{Taints: []clusterv1.MachineTaint{
		{Key: "old", Effect: noSchedule}, {Key: "kept", Effect: noSchedule, Value: "1"}, {Key: "old", Effect: corev1.TaintEffectNoExecute},
	}}}
	m.ManagedFields = []metav1.ManagedFieldsEntry{{Manager: FieldManager, FieldsV1: metav1.NewFieldsV1(
		`{"f:spec":{"f:taints":{"k:{\"effect\":\"NoSchedule\",\"key\":\"old\"}":{".":{},"f:key":{},"f:effect":{}}}}}`)}}
	want := []clusterv1.MachineTaint{
		{Key: "kept", Effect: noSchedule, Value: "2"}, {Key: "old", Effect: corev1.TaintEffectNoExecute}, {Key: "new", Effect: noSchedule},
	}
	for range 2 {
		setTaints(b.ControlPlane, m, owned(m))
		if diff := cmp.Diff(want, m.Spec.Taints); diff != "" {
			t.Errorf("-want +got:\n%s", diff)
		}
	}
}

// Timeouts that the template no longer has are removed if we have set them, in any version.
func TestTimeoutsThatTheTemplateNoLongerHas(t *testing.T) {
	const v1beta1, v1beta2 = `{"f:spec":{"f:nodeDrainTimeout":{},"f:nodeDeletionTimeout":{}}}`,
		`{"f:spec":{"f:deletion":{"f:nodeDrainTimeoutSeconds":{},"f:nodeDeletionTimeoutSeconds":{}}}}`
	set := clusterv1.MachineDeletionSpec{
		NodeDrainTimeoutSeconds: ptr.To[int32](1), NodeVolumeDetachTimeoutSeconds: ptr.To[int32](2), NodeDeletionTimeoutSeconds: ptr.To[int32](3),
	}
	removed := clusterv1.MachineDeletionSpec{NodeVolumeDetachTimeoutSeconds: ptr.To[int32](2), NodeDeletionTimeoutSeconds: ptr.To[int32](10)}
	for fields, want := range map[string]clusterv1.MachineDeletionSpec{v1beta1: removed, v1beta2: removed, `{}`: set} {
		b := kcptest.New(t)
		m := &clusterv1.Machine{Spec: clusterv1.MachineSpec{Deletion: set}}
		m.ManagedFields = []metav1.ManagedFieldsEntry{{Manager: FieldManager, FieldsV1: metav1.NewFieldsV1(fields)}}
		setTimeouts(b.ControlPlane, m, owned(m))
		if diff := cmp.Diff(want, m.Spec.Deletion); diff != "" {
			t.Errorf("%s (-want +got):\n%s", fields, diff)
		}
	}
}
