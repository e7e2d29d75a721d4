package controlplane

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	controlplanev1 "sigs.k8s.io/cluster-api/api/controlplane/v1beta2"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/providers/control-plane-kubeadm/internal/health"
	"sigs.k8s.io/cluster-api/providers/control-plane-kubeadm/internal/membership"
	"sigs.k8s.io/cluster-api/providers/control-plane-kubeadm/internal/scale"
	"sigs.k8s.io/cluster-api/sdk/condition"
	"sigs.k8s.io/cluster-api/sdk/step"
	"sigs.k8s.io/cluster-api/sdk/testenv"
	"sigs.k8s.io/cluster-api/sdk/testenv/fakeapi"
)

// After an interrupted deletion of a Machine, that Machine is deleted and no other.
func TestAnInterruptedScaleDownIsContinuedWithTheSameMachine(t *testing.T) {
	b, f := three(t)
	first := b.next()
	if first.Kind != scale.ScaleDown || len(first.Blocked) > 0 {
		t.Fatalf("the plan is %+v", first)
	}
	b.play(t, f)
	if m := b.Named(first.Machine); !m.Deleting() || len(f.Actions()) != 0 {
		t.Fatalf("Machine %s is being deleted: %t, actions %q: it must be deleted before its member is removed", m.Name, m.Deleting(), f.Actions())
	}
	b.Drained(t, first.Machine)
	b.API.Before = func(r fakeapi.Request) error {
		if r.Verb == "patch" && r.Subresource == "" {
			return errors.New("killed")
		}
		return nil
	}
	reload(t, b, f)
	if _, err := b.take(t.Context(), "pre-terminate"); err == nil {
		t.Fatal("the interruption has no effect")
	}
	if want := "remove " + first.Machine; !slices.Contains(f.Actions(), want) {
		t.Fatalf("actions %q, want %q among them", f.Actions(), want)
	}
	b.API.Before = nil
	// Another decision would now select another Machine.
	two := int32(2)
	b.KCP.Spec.Replicas = &two
	b.play(t, f)
	if m := b.Named(first.Machine); membership.HasHook(m.Machine) {
		t.Error("its member is removed, and it is still held")
	}
	for _, m := range b.Machines {
		if m.Name != first.Machine && m.Deleting() {
			t.Errorf("Machine %s is deleted, too", m.Name)
		}
	}
	if len(f.MemberNames()) != 2 || len(f.QuorumLost) != 0 {
		t.Errorf("%d etcd members are left, want 2; quorum lost: %q", len(f.MemberNames()), f.QuorumLost)
	}
}

// Members are queried immediately before one of them is removed, regardless of the observation.
func TestAMemberFailsAfterTheObservation(t *testing.T) {
	b, f := three(t)
	f.Mu.Lock()
	f.Members["c"] = false
	f.Mu.Unlock()
	result, err := b.take(t.Context(), "plan", "scale")
	if err != nil || result.After() != health.EtcdBackstop {
		t.Errorf("result %+v, error %v, want a retry in %s", result, err, health.EtcdBackstop)
	}
	if slices.ContainsFunc(f.Actions(), func(a string) bool { return a[:6] == "remove" }) {
		t.Errorf("a member was removed: %q", f.Actions())
	}
}

// A Machine that has lost our hook gets it again before it is deleted: otherwise its infrastructure could be deleted before its
// member is removed.
func TestNoMachineIsDeletedWithoutTheHook(t *testing.T) {
	b, f := three(t)
	name := b.next().Machine
	b.Annotate(t, name, nil)
	reload(t, b, f)
	b.play(t, f)
	if m := b.Named(name); !m.Deleting() || !membership.HasHook(m.Machine) {
		t.Errorf("Machine %s is being deleted: %t, with our hook: %t; want both", name, m.Deleting(), membership.HasHook(m.Machine))
	}
}

// Remediation deletes the Machine before its etcd member is removed, so that after an interruption the same Machine is
// continued.
func TestRemediationDeletesFirst(t *testing.T) {
	b, f := three(t)
	b.KCP.Spec.Replicas = ptr.To[int32](3)
	f.Members["b"] = false
	reload(t, b, f)
	for _, kind := range []clusterv1.ConditionType{clusterv1.MachineHealthCheckSucceededV1Beta1Condition, clusterv1.MachineOwnerRemediatedV1Beta1Condition} {
		condition.Set(b.Named("b"), condition.False(kind, clusterv1.ConditionSeverityWarning, "", ""))
	}
	if _, err := b.take(t.Context(), "remediate"); err != nil {
		t.Fatal(err)
	}
	reload(t, b, f)
	if m := b.Named("b"); !m.Deleting() || len(f.Actions()) != 0 {
		t.Errorf("the Machine is being deleted: %t, etcd: %q; want the deletion alone", m.Deleting(), f.Actions())
	}
}

// The record of the remediation is in the API server before the Machine is deleted, so that after an interruption it does not
// count as another one.
func TestRemediationIsRecordedFirst(t *testing.T) {
	b, f := three(t)
	b.KCP.Spec.Replicas = ptr.To[int32](3)
	f.Members["b"] = false
	b.Unhealthy(t, "b")
	testenv.Must(t, b.API.Create(t.Context(), b.KCP))
	recorded := ""
	b.API.Before = func(r fakeapi.Request) error {
		if r.Verb != "delete" {
			return nil
		}
		live := &controlplanev1.KubeadmControlPlane{}
		err := b.API.Get(t.Context(), client.ObjectKeyFromObject(b.KCP), live)
		recorded = r.Name + " " + live.Annotations[controlplanev1.RemediationInProgressAnnotation]
		return errors.Join(err, errors.New("killed"))
	}
	declared := b.declared()
	declared.Paused = nil
	declared.Scope = func(_ context.Context, kcp *controlplanev1.KubeadmControlPlane) (*scope, error) {
		b.KCP = kcp
		b.Diverge()
		reload(t, b, f)
		b.s.ControlPlane = b.ControlPlane
		return b.s, nil
	}
	declared.Steps, declared.Report = []step.Step[*scope]{declared.Step("remediate")}, nil
	runner := declared.Runner(step.Clients{Client: b.Client, Live: b.API, Recorder: b.Recorder, Clock: b.Clock})
	if _, err := runner.Reconcile(t.Context(), ctrl.Request{NamespacedName: client.ObjectKeyFromObject(b.KCP)}); err == nil {
		t.Error("the interruption has no effect")
	}
	if !strings.HasPrefix(recorded, `b {"machine":"b"`) {
		t.Errorf("when a Machine was deleted, the record was %q", recorded)
	}
}

// If a user deletes all Machines, the last member is not removed until another one has joined.
func TestTheLastMachineIsReplacedBeforeItIsDeleted(t *testing.T) {
	b, f := three(t)
	b.Deleted(t, "a", "b", "c")
	for _, name := range []string{"a", "b", "c"} {
		b.Drained(t, name)
	}
	b.play(t, f) // all but one are released
	for _, name := range []string{"a", "b", "c"} {
		if m := b.Named(name); !membership.HasHook(m.Machine) { // as the Machine controller does
			m.Finalizers = nil
			testenv.Must(t, b.API.Update(t.Context(), m.Machine))
		}
	}
	reload(t, b, f)
	if len(b.Machines) != 1 || len(f.MemberNames()) != 1 {
		t.Fatalf("%d Machines and members %q are left, want one of each", len(b.Machines), f.MemberNames())
	}
	if action := b.next(); action.Kind != scale.ScaleUp || len(action.Blocked) > 0 {
		t.Errorf("the plan is %+v, want another Machine", action)
	}
	if len(f.QuorumLost) > 0 {
		t.Errorf("the quorum was lost: %q", f.QuorumLost)
	}
}
