package controlplane

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	toolsrecord "k8s.io/client-go/tools/record"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	controlplanev1 "sigs.k8s.io/cluster-api/api/controlplane/v1beta1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta1"
	"sigs.k8s.io/cluster-api/controlplane/kubeadm/internal/plan"
	"sigs.k8s.io/cluster-api/provider/condition"
	"sigs.k8s.io/cluster-api/provider/step"
)

// drained plays the Machine controller, which has come to the pre-terminate hooks of a Machine that is being deleted.
func (b *bench) drained(t *testing.T, name string) {
	t.Helper()
	m := &clusterv1.Machine{}
	if err := b.Client.Get(t.Context(), client.ObjectKey{Namespace: "ns", Name: name}, m); err != nil {
		t.Fatal(err)
	}
	condition.Set(m, condition.False(clusterv1.PreTerminateDeleteHookSucceededCondition, clusterv1.ConditionSeverityInfo, clusterv1.WaitingExternalHookReason, ""))
	if err := b.Client.Status().Update(t.Context(), m); err != nil {
		t.Fatal(err)
	}
}

// deleted deletes Machines, as anybody can.
func (b *bench) deleted(t *testing.T, names ...string) {
	t.Helper()
	for _, name := range names {
		if err := b.Client.Delete(t.Context(), &clusterv1.Machine{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name}}); err != nil {
			t.Fatal(err)
		}
	}
}

// three is a bench with three healthy Machines of which one is too many.
func three(t *testing.T) (*bench, *fakeCluster) {
	t.Helper()
	f := newFakeCluster(client.ObjectKey{Namespace: "ns", Name: "c"})
	var objects []client.Object
	for _, name := range []string{"a", "b", "c"} {
		f.boot(name)
		m := &clusterv1.Machine{
			ObjectMeta: metav1.ObjectMeta{
				Namespace: "ns", Name: name, UID: types.UID("uid-" + name), Finalizers: []string{clusterv1.MachineFinalizer},
				Labels:          map[string]string{clusterv1.ClusterNameLabel: "c", clusterv1.MachineControlPlaneLabel: ""},
				Annotations:     map[string]string{controlplanev1.PreTerminateHookCleanupAnnotation: ""},
				OwnerReferences: []metav1.OwnerReference{{APIVersion: controlplanev1.GroupVersion.String(), Kind: "KubeadmControlPlane", Name: "cp", UID: "cp-uid", Controller: ptr.To(true)}},
			},
			Status: clusterv1.MachineStatus{NodeRef: &corev1.ObjectReference{Name: name}},
		}
		for _, kind := range healthTypes(true) {
			condition.Set(m, condition.True(kind))
		}
		objects = append(objects, m)
	}
	b := newBench(t, objects...)
	one := int32(1)
	b.kcp.Spec.Replicas, b.kcp.Status.Initialized = &one, true
	reload(t, b, f)
	return b, f
}

// reload is what the next reconcile, in this process or another one, begins with.
func reload(t *testing.T, b *bench, f *fakeCluster) {
	t.Helper()
	list := &clusterv1.MachineList{}
	if err := b.Client.List(t.Context(), list); err != nil {
		t.Fatal(err)
	}
	b.machines = nil
	for i := range list.Items {
		b.machines = append(b.machines, &machine{Machine: &list.Items[i]})
	}
	b.workload = f
	observed, err := observe(t.Context(), b.scope)
	if err != nil {
		t.Fatal(err)
	}
	b.observed = observed
}

// play is what the next reconcile does about Machines that are being deleted, and then about their number.
func (b *bench) play(t *testing.T, f *fakeCluster) {
	t.Helper()
	reload(t, b, f)
	declared := b.declared()
	if _, err := step.Try(t.Context(), b.kcp, b.scope, step.All(declared.Step("terminate"), declared.Step("act"))); err != nil {
		t.Fatal(err)
	}
	reload(t, b, f)
}

// Whatever is interrupted after it was decided that a Machine goes, that Machine goes and no other.
func TestAnInterruptedScaleDownIsContinuedWithTheSameMachine(t *testing.T) {
	b, f := three(t)
	first := plan.Next(b.planned())
	if first.Kind != plan.ScaleDown || len(first.Blocked) > 0 {
		t.Fatalf("the plan is %+v", first)
	}
	b.play(t, f)
	if m := b.named(first.Machine); !m.deleting() || len(f.actions()) != 0 {
		t.Fatalf("Machine %s is being deleted: %t, actions %q: it goes before its member", m.Name, m.deleting(), f.actions())
	}
	b.drained(t, first.Machine)
	real := b.Client
	withWatch, ok := real.(client.WithWatch)
	if !ok {
		t.Fatalf("a %T cannot be intercepted", real)
	}
	b.Client = interceptor.NewClient(withWatch, interceptor.Funcs{
		Patch: func(context.Context, client.WithWatch, client.Object, client.Patch, ...client.PatchOption) error {
			return errors.New("killed")
		},
	})
	reload(t, b, f)
	if _, err := b.terminate(t.Context(), b.scope); err == nil {
		t.Fatal("the interruption is not seen")
	}
	if want := "remove " + first.Machine; !slices.Contains(f.actions(), want) {
		t.Fatalf("actions %q, want %q among them", f.actions(), want)
	}
	b.Client = real
	// Everything that is decided anew now speaks for another Machine.
	two := int32(2)
	b.kcp.Spec.Replicas = &two
	b.play(t, f)
	if m := b.named(first.Machine); hooked(m.Machine) {
		t.Error("its member has left, and it is still held")
	}
	for _, m := range b.machines {
		if m.Name != first.Machine && m.deleting() {
			t.Errorf("Machine %s goes, too", m.Name)
		}
	}
	if len(f.members()) != 2 || len(f.quorumLost) != 0 {
		t.Errorf("%d etcd members are left, want 2; quorum lost: %q", len(f.members()), f.quorumLost)
	}
}

// Members are asked immediately before one of them goes, whatever was seen when the reconcile began.
func TestAMemberThatFailsInBetweenKeepsTheOthers(t *testing.T) {
	b, f := three(t)
	f.mu.Lock()
	f.etcd["c"] = false
	f.mu.Unlock()
	result, err := b.act(t.Context(), b.scope)
	if err != nil || result.After() != etcdBackstop {
		t.Errorf("result %+v, error %v, want to look again in %s", result, err, etcdBackstop)
	}
	if slices.ContainsFunc(f.actions(), func(a string) bool { return a[:6] == "remove" }) {
		t.Errorf("a member was removed: %q", f.actions())
	}
}

// A Machine that lost our hook gets it back before it is deleted: its infrastructure could go before its member.
func TestNoMachineIsDeletedWithoutTheHook(t *testing.T) {
	b, f := three(t)
	name := plan.Next(b.planned()).Machine
	b.annotate(t, name, nil)
	reload(t, b, f)
	b.play(t, f)
	if m := b.named(name); !m.deleting() || !hooked(m.Machine) {
		t.Errorf("Machine %s is being deleted: %t, with our hook: %t; want both", name, m.deleting(), hooked(m.Machine))
	}
}

// Remediation marks the Machine before anything happens to its etcd member, so that a manager that is killed in between goes on
// with the same Machine.
func TestRemediationMarksFirst(t *testing.T) {
	b, f := three(t)
	b.kcp.Spec.Replicas = ptr.To[int32](3)
	f.etcd["b"] = false
	reload(t, b, f)
	for _, kind := range []clusterv1.ConditionType{clusterv1.MachineHealthCheckSucceededCondition, clusterv1.MachineOwnerRemediatedCondition} {
		condition.Set(b.named("b"), condition.False(kind, clusterv1.ConditionSeverityWarning, "", ""))
	}
	if _, err := b.remediate(t.Context(), b.scope); err != nil {
		t.Fatal(err)
	}
	reload(t, b, f)
	if m := b.named("b"); !m.deleting() || len(f.actions()) != 0 {
		t.Errorf("the Machine is being deleted: %t, etcd: %q; want the deletion alone", m.deleting(), f.actions())
	}
}

// What is under way is in the API server before the Machine is touched, so that the next process does not count it as new.
func TestRemediationIsOnRecordFirst(t *testing.T) {
	b, f := three(t)
	b.kcp.Spec.Replicas = ptr.To[int32](3)
	f.etcd["b"] = false
	failing(t, b, "b")
	if err := b.Client.Create(t.Context(), b.kcp); err != nil {
		t.Fatal(err)
	}
	recorded := ""
	b.Client = interceptor.NewClient(b.Client.(client.WithWatch), interceptor.Funcs{
		Delete: func(ctx context.Context, c client.WithWatch, obj client.Object, _ ...client.DeleteOption) error {
			live := &controlplanev1.KubeadmControlPlane{}
			err := c.Get(ctx, client.ObjectKeyFromObject(b.kcp), live)
			recorded = obj.GetName() + " " + live.Annotations[controlplanev1.RemediationInProgressAnnotation]
			return errors.Join(err, errors.New("killed"))
		},
	})
	declared := b.declared()
	declared.Paused = nil
	declared.Scope = func(_ context.Context, kcp *controlplanev1.KubeadmControlPlane) (*scope, error) {
		b.kcp = kcp
		b.live = kcp.DeepCopy()
		reload(t, b, f)
		return b.scope, nil
	}
	declared.Steps, declared.Report = []step.Step[*scope]{declared.Step("remediate")}, nil
	runner := declared.Runner(step.Outside{Client: b.Client, Live: b.Client, Recorder: toolsrecord.NewFakeRecorder(10), Clock: b.Clock})
	if _, err := runner.Reconcile(t.Context(), ctrl.Request{NamespacedName: client.ObjectKeyFromObject(b.kcp)}); err == nil {
		t.Error("the interruption is not seen")
	}
	if !strings.HasPrefix(recorded, `b {"machine":"b"`) {
		t.Errorf("when a Machine was deleted, this was on record: %q", recorded)
	}
}

// A patch that is refused for one Machine does not keep the others from theirs.
func TestARefusedPatchConcernsOneMachine(t *testing.T) {
	b, f := three(t)
	reload(t, b, f)
	b.kcp.Spec.MachineTemplate.ObjectMeta.Labels = map[string]string{"new": "label"}
	b.Client = interceptor.NewClient(b.Client.(client.WithWatch), interceptor.Funcs{
		Patch: func(ctx context.Context, c client.WithWatch, obj client.Object, p client.Patch, opts ...client.PatchOption) error {
			if obj.GetName() == "a" {
				return errors.New("refused")
			}
			return c.Patch(ctx, obj, p, opts...)
		},
	})
	b.writes = nil
	if _, err := b.sync(t.Context(), b.scope); err == nil {
		t.Error("the refusal is not reported")
	}
	if want := []string{"patch b", "patch c"}; !slices.Equal(b.writes, want) {
		t.Errorf("writes %q, want %q", b.writes, want)
	}
}

// Whether the first Machine is the first is confirmed before its KubeadmConfig is made. That the cache is too old for it
// is nothing to report: it is retried, and others fail only for reasons of their own.
func TestAnInterruptedInitialisationOnAnOldCache(t *testing.T) {
	b, _ := three(t)
	b.kcp.Status.Initialized = false
	b.live = b.kcp.DeepCopy()
	b.live.Status.Initialized = true // by another leader
	first := b.machines[:1]
	first[0].Spec.Bootstrap.ConfigRef = &corev1.ObjectReference{Kind: "KubeadmConfig", Name: first[0].Name}
	b.machines, b.writes = first, nil
	_, err := b.complete(t.Context(), b.scope)
	if err == nil || !step.IsStale(err) {
		t.Errorf("error %v, want one of an old cache", err)
	}
	if len(b.writes) > 0 || condition.Has(b.kcp, controlplanev1.MachinesCreatedCondition) {
		t.Errorf("writes %q, conditions %+v: nothing is made", b.writes, b.kcp.Status.Conditions)
	}
}
