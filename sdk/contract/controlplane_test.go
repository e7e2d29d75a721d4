package contract

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/utils/ptr"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
)

func TestControlPlanePhases(t *testing.T) {
	type phases struct{ Provisioning, Upgrading, Scaling bool }
	tests := []struct {
		reason string
		fields string
		want   phases
	}{
		{"just created: nothing reported", `spec: {version: v1.30.0, replicas: 3}`, phases{Provisioning: true, Scaling: true}},
		{"an empty version is none", `
spec: {version: v1.30.0, replicas: 1}
status: {version: "", replicas: 1, updatedReplicas: 1, readyReplicas: 1}`, phases{Provisioning: true}},
		{"at rest", `
spec: {version: v1.30.0, replicas: 3}
status: {version: v1.30.0, replicas: 3, updatedReplicas: 3, readyReplicas: 3, unavailableReplicas: 0}`, phases{}},
		{"unavailable replicas may be left out", `
spec: {version: v1.30.0, replicas: 3}
status: {version: v1.30.0, replicas: 3, updatedReplicas: 3, readyReplicas: 3}`, phases{}},
		{"some are unavailable", `
spec: {version: v1.30.0, replicas: 3}
status: {version: v1.30.0, replicas: 3, updatedReplicas: 3, readyReplicas: 3, unavailableReplicas: 1}`, phases{Scaling: true}},
		{"a counter is not reported", `
spec: {version: v1.30.0, replicas: 3}
status: {version: v1.30.0, replicas: 3, readyReplicas: 3}`, phases{Scaling: true}},
		{"more than wanted", `
spec: {version: v1.30.0, replicas: 1}
status: {version: v1.30.0, replicas: 2, updatedReplicas: 2, readyReplicas: 2}`, phases{Scaling: true}},
		{"none wanted and none there", `
spec: {version: v1.30.0, replicas: 0}
status: {version: v1.30.0, replicas: 0, updatedReplicas: 0, readyReplicas: 0}`, phases{}},
		{"wanted version is above", `
spec: {version: v1.31.0, replicas: 1}
status: {version: v1.30.0, replicas: 1, updatedReplicas: 1, readyReplicas: 1}`, phases{Upgrading: true}},
		{"wanted version is below: no way to go", `
spec: {version: v1.29.0, replicas: 1}
status: {version: v1.30.0, replicas: 1, updatedReplicas: 1, readyReplicas: 1}`, phases{}},
		{"only build metadata is above", `
spec: {version: v1.30.0+vendor.10, replicas: 1}
status: {version: v1.30.0+vendor.9, replicas: 1, updatedReplicas: 1, readyReplicas: 1}`, phases{Upgrading: true}},
		{"a control plane without versions", `
spec: {replicas: 1}
status: {version: v1.30.0, replicas: 1, updatedReplicas: 1, readyReplicas: 1}`, phases{}},
	}
	for _, tc := range tests {
		t.Run(tc.reason, func(t *testing.T) {
			c := ControlPlaneOf(Object{Unstructured: parse(t, head+tc.fields)})
			var got phases
			for _, ask := range []struct {
				into *bool
				fn   func() (bool, error)
			}{{&got.Provisioning, c.IsProvisioning}, {&got.Upgrading, c.IsUpgrading}, {&got.Scaling, c.IsScaling}} {
				answer, err := ask.fn()
				if err != nil {
					t.Fatal(err)
				}
				*ask.into = answer
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("phases (-want +got):\n%s", diff)
			}
		})
	}
}

func TestUpgradingNeedsVersions(t *testing.T) {
	c := ControlPlaneOf(Object{Unstructured: parse(t, head+"spec: {version: newest}\nstatus: {version: v1.30.0}")})
	if _, err := c.IsUpgrading(); err == nil {
		t.Error("a version that cannot be compared is not an error")
	}
}

func TestControlPlaneFieldsRoundTrip(t *testing.T) {
	for _, tc := range []struct {
		contract Version
		before   string
		want     map[string]any
		ref      corev1.ObjectReference
	}{
		{
			contract: V1Beta1,
			before:   "spec: {machineTemplate: {metadata: {labels: {old: label}}, nodeDeletionTimeout: 1m}}",
			want: map[string]any{
				"metadata":            map[string]any{"annotations": map[string]any{"a": "b"}},
				"infrastructureRef":   map[string]any{"apiVersion": "g/v1", "kind": "K", "name": "n", "namespace": "ns"},
				"nodeDrainTimeout":    "1m0s",
				"readinessGates":      []any{map[string]any{"conditionType": "G"}},
				"taints":              []any{map[string]any{"key": "k", "effect": "NoExecute", "propagation": "Always"}},
				"nodeDeletionTimeout": "1m",
			},
			ref: corev1.ObjectReference{APIVersion: "g/v1", Kind: "K", Name: "n", Namespace: "ns"},
		},
		{
			contract: V1Beta2,
			before:   "spec: {machineTemplate: {metadata: {labels: {old: label}}, spec: {deletion: {nodeDeletionTimeoutSeconds: 60}}}}",
			want: map[string]any{
				"metadata": map[string]any{"annotations": map[string]any{"a": "b"}},
				"spec": map[string]any{
					"infrastructureRef": map[string]any{"apiGroup": "g", "kind": "K", "name": "n"},
					"deletion":          map[string]any{"nodeDrainTimeoutSeconds": int64(60), "nodeDeletionTimeoutSeconds": int64(60)},
					"readinessGates":    []any{map[string]any{"conditionType": "G"}},
					"taints":            []any{map[string]any{"key": "k", "effect": "NoExecute", "propagation": "Always"}},
				},
			},
			ref: corev1.ObjectReference{APIVersion: "g/", Kind: "K", Name: "n"},
		},
	} {
		u := parse(t, head+tc.before)
		c := ControlPlaneOf(Object{Unstructured: u, Contract: tc.contract})
		ref := &corev1.ObjectReference{APIVersion: "g/v1", Kind: "K", Name: "n", Namespace: "ns", UID: "dropped"}
		meta := clusterv1.ObjectMeta{Annotations: map[string]string{"a": "b"}}
		for _, err := range []error{
			c.SetVersion("v1.30.0"), c.SetReplicas(3), c.SetInfrastructureRef(ref), c.SetMachineMetadata(meta),
			c.SetNodeTimeouts(clusterv1.MachineDeletionSpec{NodeDrainTimeoutSeconds: ptr.To[int32](60)}),
			c.SetReadinessGates([]clusterv1.MachineReadinessGate{{ConditionType: "G"}}), c.SetReadinessGates(nil),
			c.SetTaints([]clusterv1.MachineTaint{{Key: "k", Effect: "NoExecute", Propagation: clusterv1.MachineTaintPropagationAlways}}),
			c.SetRolloutAfter(metav1.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)), c.SetRolloutAfter(metav1.Time{}),
		} {
			if err != nil {
				t.Fatal(err)
			}
		}
		want := map[string]any{"version": "v1.30.0", "replicas": int64(3), "machineTemplate": tc.want}
		const after = "2026-01-02T03:04:05Z"
		want["rolloutAfter"] = after
		if tc.contract == V1Beta2 {
			delete(want, "rolloutAfter")
			want["rollout"] = map[string]any{"after": after}
		}
		if diff := cmp.Diff(want, u.Object["spec"]); diff != "" {
			t.Errorf("%s: spec (-want +got):\n%s", tc.contract, diff)
		}
		checkReads(t, c, &tc.ref, meta)
	}
}

func checkReads(t *testing.T, c ControlPlane, wantRef *corev1.ObjectReference, meta clusterv1.ObjectMeta) {
	t.Helper()
	version, err1 := c.Version()
	replicas, err2 := c.Replicas()
	ref, err3 := c.InfrastructureRef()
	gotMeta, err4 := c.MachineMetadata()
	for _, err := range []error{err1, err2, err3, err4} {
		if err != nil {
			t.Fatal(err)
		}
	}
	want := []any{"v1.30.0", int32(3), wantRef, meta}
	if diff := cmp.Diff(want, []any{*version, *replicas, ref, gotMeta}); diff != "" {
		t.Errorf("read back (-want +got):\n%s", diff)
	}
}

func TestControlPlaneStatus(t *testing.T) {
	c := ControlPlaneOf(Object{Unstructured: parse(t, head+"status: {initialized: true, externalManagedControlPlane: true, replicas: 0}")})
	initialized, err1 := c.Initialized()
	external, err2 := c.ExternallyManaged()
	replicas, err3 := c.statusReplicas()
	if err1 != nil || err2 != nil || err3 != nil {
		t.Fatal(err1, err2, err3)
	}
	zero := int32(0)
	if diff := cmp.Diff([]any{true, true, counters{Total: &zero}}, []any{initialized, external, replicas}); diff != "" {
		t.Errorf("status (-want +got):\n%s", diff)
	}
}

func TestSetRefFailsOnWhatIsNoObject(t *testing.T) {
	c := ControlPlaneOf(Object{Unstructured: &unstructured.Unstructured{Object: map[string]any{"spec": "text"}}})
	if err := c.SetInfrastructureRef(&corev1.ObjectReference{}); err == nil {
		t.Error("writing below a string is not an error")
	}
}

func TestCompareVersions(t *testing.T) {
	tests := []struct {
		reason string
		a, b   string
		want   int
	}{
		{"same", "v1.30.0", "1.30.0", 0},
		{"numbers, not text", "v1.9.0", "v1.10.0", -1},
		{"a prerelease is below its release", "v1.30.0-rc.1", "v1.30.0", -1},
		{"build numbers, not text", "v1.30.0+a.9", "v1.30.0+a.10", -1},
		{"build words", "v1.30.0+b", "v1.30.0+a", 1},
		{"a number is below a word", "v1.30.0+1", "v1.30.0+a", -1},
		{"any build is above none", "v1.30.0+a", "v1.30.0", 1},
		{"same build", "v1.30.0+a.1", "v1.30.0+a.1", 0},
	}
	for _, tc := range tests {
		t.Run(tc.reason, func(t *testing.T) {
			got, err := CompareVersions(tc.a, tc.b)
			if err != nil {
				t.Fatal(err)
			}
			back, err := CompareVersions(tc.b, tc.a)
			if err != nil {
				t.Fatal(err)
			}
			if got != tc.want || back != -tc.want {
				t.Errorf("%s to %s is %d and back %d, want %d", tc.a, tc.b, got, back, tc.want)
			}
		})
	}
	for _, bad := range [][2]string{{"x", "v1.0.0"}, {"v1.0.0", ""}} {
		if _, err := CompareVersions(bad[0], bad[1]); err == nil {
			t.Errorf("%v compare without an error", bad)
		}
	}
}
