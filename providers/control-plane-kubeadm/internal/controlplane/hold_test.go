package controlplane

import (
	"encoding/json"
	"reflect"
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	controlplanev1 "sigs.k8s.io/cluster-api/api/controlplane/v1beta2"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	fleetv1 "sigs.k8s.io/cluster-api/api/fleet/v1alpha1"
	"sigs.k8s.io/cluster-api/providers/control-plane-kubeadm/internal/kcptest"
	"sigs.k8s.io/cluster-api/providers/control-plane-kubeadm/internal/snapshot"
	"sigs.k8s.io/cluster-api/sdk/condition"
	"sigs.k8s.io/cluster-api/sdk/report"
	"sigs.k8s.io/cluster-api/sdk/step"
	"sigs.k8s.io/cluster-api/sdk/step/steptest"
	"sigs.k8s.io/cluster-api/sdk/testenv"
	"sigs.k8s.io/cluster-api/sdk/testenv/object"
)

// operation returns an operation on a control plane.
func operation(mode fleetv1.OperationMode) fleetv1.Operation {
	op := fleetv1.Operation{Kind: "ControlPlaneRestore", Name: "monday", UID: "operation-uid", Mode: mode}
	if mode == fleetv1.OperationModeRestore {
		op.DataSecret = "data"
	}
	return op
}

// A rotation gets its answer, and the control plane works as without it.
func TestRotationDoesNotHold(t *testing.T) {
	b := newBench(t)
	op := operation(fleetv1.OperationModeRotate)
	b.hold(t, op)
	if _, why := holder(b.KCP); why != "" {
		t.Errorf("it is held: %s", why)
	}
	s := &scope{operation: &op, ControlPlane: &snapshot.ControlPlane{KCP: b.KCP}}
	if result, err := hold(t.Context(), s); err != nil || result.Ends() || b.KCP.Annotations[fleetv1.OperationObservedAnnotation] != op.Token() {
		t.Errorf("the answer is %q, %v", b.KCP.Annotations[fleetv1.OperationObservedAnnotation], err)
	}
}

// hold sets the annotation of an operation.
func (b *bench) hold(t *testing.T, op fleetv1.Operation) {
	t.Helper()
	text, err := json.Marshal(op)
	testenv.Must(t, err)
	metav1.SetMetaDataAnnotation(&b.KCP.ObjectMeta, fleetv1.OperationAnnotation, string(text))
}

// reconcile runs all steps.
func (b *bench) reconcile(t *testing.T) error {
	t.Helper()
	declared := b.declared()
	s, err := declared.Scope(t.Context(), b.KCP)
	testenv.Must(t, err)
	_, err = steptest.Run(t.Context(), b.KCP, s, append(declared.Steps, declared.Report...)...)
	report.Set(b.KCP, 1, b.Clock.Now(), b.controller.reports(s)...)
	return err
}

// busy returns a control plane with everything to do: to remediate, to roll out, to scale, to remove members, to adopt and to complete
// Machines, and to maintain the workload cluster.
func busy(t *testing.T) (*bench, *kcptest.Workload) {
	t.Helper()
	b, f := whole(t)
	b.KCP.Status.Initialization.ControlPlaneInitialized = nil // for a moment, so that they are created
	if _, err := b.take(t.Context(), "certificates"); err != nil {
		t.Fatal(err)
	}
	b.KCP.Status.Initialization.ControlPlaneInitialized = ptr.To(true)
	b.KCP.Spec.Version = "v1.31.0"
	b.Unhealthy(t, "a")
	b.Deleted(t, "c")
	b.Drained(t, "c")
	f.Boot("orphan")
	f.Mu.Lock()
	delete(f.NodeObjects, "orphan")
	f.Mu.Unlock()
	testenv.Must(t, b.API.Create(t.Context(), kcptest.Machine("unowned", "")))
	b.API.Writes = nil
	return b, f
}

// changes returns the writes to Machines and what they refer to, apart from the status of Machines: not those to Secrets of the cluster, and
// to the template, which gets an owner.
func (b *bench) changes() []string {
	return slices.DeleteFunc(slices.Clone(b.API.Writes), func(write string) bool {
		return strings.Contains(write, "/status ") || strings.Contains(write, " Secret ") || strings.Contains(write, "Template ")
	})
}

func TestHeldControlPlaneChangesNothing(t *testing.T) {
	b, f := busy(t)
	_ = b.reconcile(t) // The template does not exist.
	if len(b.changes()) == 0 {
		t.Fatal("there was nothing to do")
	}
	for _, tc := range []struct {
		reason, annotation, answer, message string
	}{
		{reason: "Hold", annotation: `{"kind":"ControlPlaneRecovery","name":"x","uid":"u","mode":"Hold"}`, answer: "u/Hold",
			message: "ControlPlaneRecovery x holds the control plane: no Machine and no etcd member is changed until it completes or is deleted"},
		{reason: "Restore while there are Machines", annotation: `{"kind":"ControlPlaneRestore","name":"x","uid":"u","mode":"Restore","dataSecret":"s"}`,
			answer: "u/Restore", message: "ControlPlaneRestore x holds the control plane"},
		{reason: "an invalid annotation", annotation: `{"kind":"ControlPlaneRestore","name":"x","uid":"u","mode":"Reset"}`,
			message: "no Machine and no etcd member is changed: annotation fleet.cluster.x-k8s.io/operation: mode must be Hold"},
		{reason: "an annotation of something else", annotation: `true`, message: "annotation fleet.cluster.x-k8s.io/operation: "},
	} {
		t.Run(tc.reason, func(t *testing.T) {
			b, f = busy(t)
			before := len(f.Actions())
			b.KCP.Annotations = map[string]string{fleetv1.OperationAnnotation: tc.annotation, fleetv1.OperationObservedAnnotation: "earlier/Hold"}
			for range 2 {
				testenv.Must(t, b.reconcile(t))
			}
			if changes, actions := b.changes(), f.Actions()[before:]; len(changes) != 0 || len(actions) != 0 {
				t.Errorf("changes %q, in the workload cluster %q", changes, actions)
			}
			if answer := b.KCP.Annotations[fleetv1.OperationObservedAnnotation]; answer != tc.answer {
				t.Errorf("the answer is %q, want %q", answer, tc.answer)
			}
			if c := report.Get(b.KCP, clusterv1.RollingOutCondition); c == nil || !strings.Contains(c.Message, tc.message) {
				t.Errorf("condition RollingOut is %+v, want the message %q", c, tc.message)
			}
			if c := condition.Get(b.KCP, controlplanev1.MachinesSpecUpToDateV1Beta1Condition); c == nil || strings.Count(c.Message, tc.message) != 1 {
				t.Errorf("condition MachinesSpecUpToDate is %+v", c)
			}
			if b.KCP.Status.Replicas == nil || *b.KCP.Status.Replicas != 3 {
				t.Error("the status is not written")
			}
		})
	}
}

// The answer is removed, and written to the API server, before anything is changed again.
func TestReleasedControlPlane(t *testing.T) {
	b, _ := busy(t)
	b.KCP.Annotations = map[string]string{fleetv1.OperationObservedAnnotation: "u/Hold"}
	result, err := b.take(t.Context(), "hold")
	if err != nil || b.KCP.Annotations[fleetv1.OperationObservedAnnotation] != "" {
		t.Fatalf("%+v, %v, annotations %q", result, err, b.KCP.Annotations)
	}
	s, err := b.declared().Scope(t.Context(), b.KCP)
	testenv.Must(t, err)
	b.KCP.Annotations[fleetv1.OperationObservedAnnotation] = "u/Hold"
	isCheckpoint := func(r step.Result) bool { return reflect.DeepEqual(r, step.Checkpoint()) }
	if result, err := hold(t.Context(), s); err != nil || !isCheckpoint(result) {
		t.Errorf("%+v, %v, want a checkpoint", result, err)
	}
	if result, err := hold(t.Context(), s); err != nil || isCheckpoint(result) {
		t.Errorf("without an answer: %+v, %v, want no checkpoint", result, err)
	}
}

// restoring returns a control plane of an initialized cluster that has lost all its Machines, and a template.
func restoring(t *testing.T) *bench {
	t.Helper()
	b := newBench(t, machineTemplate()...)
	b.KCP.Spec.MachineTemplate.Spec.InfrastructureRef = *object.Reference(kind("TestMachineTemplate"), "small")
	b.KCP.Spec.Replicas = ptr.To[int32](3)
	b.Cluster.Status.Initialization.InfrastructureProvisioned = ptr.To(true)
	b.KCP.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(b.Cluster, clusterv1.GroupVersion.WithKind("Cluster"))}
	testenv.Must(t, b.API.Create(t.Context(), b.Cluster.DeepCopy()))
	if _, err := b.take(t.Context(), "certificates"); err != nil {
		t.Fatal(err)
	}
	b.KCP.Status.Initialization.ControlPlaneInitialized = ptr.To(true)
	b.API.Writes = nil
	return b
}

// Deleting a control plane, or its Cluster, does not wait for an operation.
func TestHeldControlPlaneIsDeleted(t *testing.T) {
	b, _ := three(t)
	b.hold(t, operation(fleetv1.OperationModeHold))
	b.KCP.Annotations[fleetv1.OperationObservedAnnotation] = "operation-uid/Hold"
	b.deleting()
	if _, err := b.remove(t.Context()); err != nil {
		t.Fatal(err)
	}
	staying, _ := b.Count(t)
	if held := b.Held(t); staying != 0 || len(held) != 0 {
		t.Errorf("%d Machines stay, %q are held", staying, held)
	}
	if answer, ok := b.KCP.Annotations[fleetv1.OperationObservedAnnotation]; ok {
		t.Errorf("the answer is still %q", answer)
	}
}
