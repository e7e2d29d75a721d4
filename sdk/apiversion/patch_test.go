package apiversion

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	clocktesting "k8s.io/utils/clock/testing"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1beta1 "sigs.k8s.io/cluster-api/api/core/v1beta1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
)

// newTranslation returns how to convert Machines.
func newTranslation(t testing.TB, code, stored string) *translation {
	t.Helper()
	r := newMachines()
	b := &Boundary{scheme: newScheme(t), registry: r}
	b.stored = newStoredVersions(serves(stored, older, newer), r.Versions, clocktesting.NewFakePassiveClock(metav1.Now().Time))
	out, err := b.of(t.Context(), machineKind().WithVersion(code))
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// olderMachine returns a Machine with everything that could be rewritten by mistake.
func olderMachine() *clusterv1beta1.Machine {
	changed := metav1.Unix(1700000000, 0)
	return &clusterv1beta1.Machine{
		ObjectMeta: metav1.ObjectMeta{
			Name: "m", Namespace: "ns", ResourceVersion: "7", UID: "u", Generation: 3, CreationTimestamp: changed,
			Labels: map[string]string{"a": "b"}, Annotations: map[string]string{"c": "d"}, Finalizers: []string{"machine"},
		},
		Spec: clusterv1beta1.MachineSpec{
			ClusterName: "c", Version: ptr.To("v1.36.3"), ProviderID: ptr.To("in-memory:///m"), FailureDomain: ptr.To("one"),
			Bootstrap: clusterv1beta1.Bootstrap{DataSecretName: ptr.To("m-data")},
			InfrastructureRef: corev1.ObjectReference{
				APIVersion: "infrastructure.cluster.x-k8s.io/v1beta1", Kind: "InMemoryMachine", Name: "m", Namespace: "ns", UID: "i",
			},
			NodeDrainTimeout: &metav1.Duration{Duration: 90_500_000_000}, // v1beta2 has only whole seconds.
		},
		Status: clusterv1beta1.MachineStatus{
			InfrastructureReady: true, Phase: "Provisioned", ObservedGeneration: 3,
			NodeRef:   &corev1.ObjectReference{APIVersion: "v1", Kind: "Node", Name: "n", UID: "x"},
			Addresses: clusterv1beta1.MachineAddresses{{Type: clusterv1beta1.MachineInternalIP, Address: "10.0.0.1"}},
			Conditions: clusterv1beta1.Conditions{
				{Type: "Ready", Status: corev1.ConditionFalse, Severity: clusterv1beta1.ConditionSeverityInfo, Reason: "Waiting", LastTransitionTime: changed},
			},
		},
	}
}

func newerMachine(t testing.TB) *clusterv1.Machine {
	t.Helper()
	converted, err := newTranslation(t, older, newer).toStored(t.Context(), olderMachine())
	if err != nil {
		t.Fatal(err)
	}
	return converted.(*clusterv1.Machine)
}

// A patch in one version has in the other one only what changed.
func TestPatchesOfNewerCode(t *testing.T) {
	ready := clusterv1.Condition{Type: "Ready", Status: corev1.ConditionTrue, LastTransitionTime: metav1.Unix(1700000001, 0)}
	tests := []struct {
		reason, subresource string
		change              func(*clusterv1.Machine)
		want                string
	}{
		{reason: "a condition", subresource: "status", change: func(m *clusterv1.Machine) {
			m.Status.Deprecated.V1Beta1.Conditions = clusterv1.Conditions{ready}
		}, want: `{"metadata":{"resourceVersion":"7"},"status":{"conditions":[{"type":"Ready","status":"True","lastTransitionTime":"2023-11-14T22:13:21Z"}]}}`},
		{reason: "a condition that the older version has elsewhere", subresource: "status", change: func(m *clusterv1.Machine) {
			m.Status.Conditions = []metav1.Condition{{Type: "Ready", Status: "True", Reason: "Ready", LastTransitionTime: metav1.Unix(1700000001, 0)}}
		}, want: `{"metadata":{"resourceVersion":"7"},"status":{"v1beta2":{"conditions":[
			{"type":"Ready","status":"True","reason":"Ready","message":"","lastTransitionTime":"2023-11-14T22:13:21Z"}]}}}`},
		{reason: "a field of the status with another name", subresource: "status", change: func(m *clusterv1.Machine) {
			m.Status.Initialization.BootstrapDataSecretCreated = ptr.To(true)
		}, want: `{"metadata":{"resourceVersion":"7"},"status":{"bootstrapReady":true}}`},
		{reason: "what is removed", subresource: "status", change: func(m *clusterv1.Machine) { m.Status.Phase = "" },
			want: `{"metadata":{"resourceVersion":"7"},"status":{"phase":null}}`},
		{reason: "a field of the spec", change: func(m *clusterv1.Machine) { m.Spec.ProviderID = "in-memory:///other" },
			want: `{"metadata":{"resourceVersion":"7"},"spec":{"providerID":"in-memory:///other"}}`},
		{reason: "a duration", change: func(m *clusterv1.Machine) { m.Spec.Deletion.NodeDrainTimeoutSeconds = ptr.To[int32](30) },
			want: `{"metadata":{"resourceVersion":"7"},"spec":{"nodeDrainTimeout":"30s"}}`},
		{reason: "metadata", change: func(m *clusterv1.Machine) { m.Labels["x"] = "y" },
			want: `{"metadata":{"labels":{"x":"y"},"resourceVersion":"7"}}`},
	}
	tr := newTranslation(t, newer, older)
	for _, tt := range tests {
		t.Run(tt.reason, func(t *testing.T) {
			m := newerMachine(t)
			before := m.DeepCopy()
			tt.change(m)
			patch, err := tr.patch(t.Context(), m, MergeFrom(before, client.MergeFromWithOptimisticLock{}), tt.subresource)
			if err != nil {
				t.Fatal(err)
			}
			data, _ := patch.Data(m)
			if diff := cmp.Diff(parsed(t, tt.want), parsed(t, string(data))); diff != "" || patch.Type() != types.MergePatchType {
				t.Errorf("patch in v1beta1 (-want +got):\n%s", diff)
			}
		})
	}
}

func TestPatchesOfOlderCode(t *testing.T) {
	tests := []struct {
		reason, subresource string
		data, want          string
	}{
		{reason: "a condition", subresource: "status", data: `{"metadata":{"resourceVersion":"9"},"status":{"conditions":[
				{"type":"Ready","status":"True","lastTransitionTime":"2023-11-14T22:13:21Z"}]}}`,
			want: `{"metadata":{"resourceVersion":"9"},"status":{"deprecated":{"v1beta1":{"conditions":[
				{"type":"Ready","status":"True","lastTransitionTime":"2023-11-14T22:13:21Z"}]}}}}`},
		{reason: "an object that is removed may have got other fields meanwhile", subresource: "status",
			data: `{"status":{"infrastructureReady":false}}`, want: `{"metadata":{"resourceVersion":"7"},"status":{"initialization":null}}`},
		{reason: "what only this version has is kept in the annotation, of which another copy must not be overwritten",
			data: `{"spec":{"nodeDeletionTimeout":"1500ms"}}`,
			want: `{"metadata":{"resourceVersion":"7","annotations":{"kept":"..."}},"spec":{"deletion":{"nodeDeletionTimeoutSeconds":1}}}`},
	}
	tr := newTranslation(t, older, newer)
	for _, tt := range tests {
		t.Run(tt.reason, func(t *testing.T) {
			m := olderMachine()
			patch, err := tr.patch(t.Context(), m, Merge(m, []byte(tt.data)), tt.subresource)
			if err != nil {
				t.Fatal(err)
			}
			data, _ := patch.Data(m)
			got := parsed(t, string(data))
			hideConversionData(got)
			if diff := cmp.Diff(parsed(t, tt.want), got); diff != "" {
				t.Errorf("patch in v1beta2 (-want +got):\n%s", diff)
			}
		})
	}
}

// Patches that are not computed again change metadata alone.
func TestOtherPatches(t *testing.T) {
	merge, jsonPatch, apply := types.MergePatchType, types.JSONPatchType, types.ApplyPatchType
	tests := []struct {
		reason  string
		kind    types.PatchType
		data    string
		want    string
		refused bool
	}{
		{reason: "labels", kind: merge, data: `{"metadata":{"labels":{"a":null}}}`, want: `{"metadata":{"labels":{"a":null}}}`},
		{reason: "nothing", kind: merge, data: `{}`, want: `{}`},
		{reason: "the version is replaced", kind: apply,
			data: `{"apiVersion":"cluster.x-k8s.io/v1beta2","kind":"Machine","metadata":{"name":"m"}}`,
			want: `{"apiVersion":"cluster.x-k8s.io/v1beta1","kind":"Machine","metadata":{"name":"m"}}`},
		{reason: "operations on metadata", kind: jsonPatch, data: `[{"op":"remove","path":"/metadata/finalizers/0"}]`,
			want: `[{"op":"remove","path":"/metadata/finalizers/0"}]`},
		{reason: "spec", kind: merge, data: `{"spec":{"version":"v1.36.4"}}`, refused: true},
		{reason: "all annotations, with the one that code does not see", kind: merge, data: `{"metadata":{"annotations":null}}`, refused: true},
		{reason: "the annotation that depends on the version", kind: merge,
			data: `{"metadata":{"annotations":{"cluster.x-k8s.io/conversion-data":null}}}`, refused: true},
		{reason: "an operation on spec", kind: jsonPatch, data: `[{"op":"remove","path":"/spec/version"}]`, refused: true},
		{reason: "an operation on all annotations", kind: jsonPatch, data: `[{"op":"add","path":"/metadata/annotations","value":{}}]`,
			refused: true},
		{reason: "spec is applied", kind: apply, data: `{"apiVersion":"cluster.x-k8s.io/v1beta2","kind":"Machine","spec":{}}`, refused: true},
	}
	tr := newTranslation(t, newer, older)
	for _, tt := range tests {
		t.Run(tt.reason, func(t *testing.T) {
			patch, err := tr.patch(t.Context(), newerMachine(t), client.RawPatch(tt.kind, []byte(tt.data)), "")
			if tt.refused {
				if err == nil || !strings.Contains(err.Error(), "use MergeFrom or Merge of package apiversion") {
					t.Errorf("got %v, want an error that says what to do", err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if data, _ := patch.Data(nil); string(data) != tt.want || patch.Type() != tt.kind {
				t.Errorf("got %s %s, want %s", patch.Type(), data, tt.want)
			}
		})
	}
}

// The annotation that code does not see must survive the removal of all that it sees.
func TestRemovingAllAnnotations(t *testing.T) {
	m := newerMachine(t)
	m.Annotations = map[string]string{"c": "d"}
	m.Spec.MinReadySeconds = ptr.To[int32](5)
	before := m.DeepCopy()
	m.Annotations = nil
	patch, err := newTranslation(t, newer, older).patch(t.Context(), m, MergeFrom(before), "")
	if err != nil {
		t.Fatal(err)
	}
	data, _ := patch.Data(m)
	if diff := cmp.Diff(parsed(t, `{"metadata":{"annotations":{"c":null}}}`), parsed(t, string(data))); diff != "" {
		t.Errorf("patch in v1beta1 (-want +got):\n%s", diff)
	}
}

// hideConversionData replaces annotations with what a version cannot express by one.
func hideConversionData(obj map[string]any) {
	metadata, _ := obj["metadata"].(map[string]any)
	annotations, _ := metadata["annotations"].(map[string]any)
	for name := range annotations {
		if isConversionData(name) {
			delete(annotations, name)
			annotations["kept"] = "..."
		}
	}
}

func parsed(t *testing.T, text string) map[string]any {
	t.Helper()
	v, err := decode([]byte(text))
	if err != nil {
		t.Fatalf("%v in %s", err, text)
	}
	return v
}
