package controlplane

import (
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	controlplanev1 "sigs.k8s.io/cluster-api/api/controlplane/v1beta1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta1"
	"sigs.k8s.io/cluster-api/controlplane/kubeadm/internal/plan"
	"sigs.k8s.io/cluster-api/provider/condition"
)

// count is the number of Machines that are not being deleted, as the API server has it, and of all.
func (b *bench) count(t *testing.T) (staying, all int) {
	t.Helper()
	list := &clusterv1.MachineList{}
	if err := b.Client.List(t.Context(), list); err != nil {
		t.Fatal(err)
	}
	for _, m := range list.Items {
		if m.DeletionTimestamp == nil {
			staying++
		}
	}
	return staying, len(list.Items)
}

// What makes or deletes a Machine is decided on what the API server has, however old the cache is.
func TestDecisionsOnAnOldCache(t *testing.T) {
	live := func(change func(*controlplanev1.KubeadmControlPlane)) func(*testing.T, *bench) {
		return func(_ *testing.T, b *bench) {
			b.live = b.kcp.DeepCopy()
			change(b.live)
		}
	}
	written := func(t *testing.T, b *bench) {
		m := &clusterv1.Machine{}
		if err := b.Client.Get(t.Context(), client.ObjectKey{Namespace: "ns", Name: "a"}, m); err != nil {
			t.Fatal(err)
		}
		m.Labels["new"] = ""
		if err := b.Client.Update(t.Context(), m); err != nil {
			t.Fatal(err)
		}
	}
	unhooked := func(t *testing.T, b *bench) {
		b.annotate(t, "a", nil)
		if err := b.Client.Get(t.Context(), client.ObjectKey{Namespace: "ns", Name: "a"}, b.named("a").Machine); err != nil {
			t.Fatal(err)
		}
	}
	cases := []struct {
		reason string
		old    func(*testing.T, *bench)
		acts   bool
	}{
		{reason: "the cache is right", old: func(*testing.T, *bench) {}, acts: true},
		{reason: "it is right, and the Machine does not have our hook yet", old: unhooked, acts: true},
		{reason: "such a Machine was written since", old: func(t *testing.T, b *bench) {
			unhooked(t, b)
			written(t, b)
		}},
		{reason: "the Machines are wanted again", old: live(func(k *controlplanev1.KubeadmControlPlane) { k.Spec.Replicas = ptr.To[int32](3) })},
		{reason: "another version is wanted", old: live(func(k *controlplanev1.KubeadmControlPlane) { k.Spec.Version = "v1.31.0" })},
		{reason: "the control plane is being deleted", old: live(func(k *controlplanev1.KubeadmControlPlane) { k.DeletionTimestamp = &metav1.Time{Time: now} })},
		{reason: "it is paused", old: live(func(k *controlplanev1.KubeadmControlPlane) {
			k.Annotations = map[string]string{clusterv1.PausedAnnotation: ""}
		})},
		{reason: "it was created anew", old: live(func(k *controlplanev1.KubeadmControlPlane) { k.UID = "another" })},
		{reason: "another leader remediates", old: live(func(k *controlplanev1.KubeadmControlPlane) {
			k.Annotations = map[string]string{controlplanev1.RemediationInProgressAnnotation: "{}"}
		})},
		{reason: "another leader has deleted a Machine", old: func(t *testing.T, b *bench) { b.deleted(t, "c") }},
		{reason: "a Machine is gone", old: func(t *testing.T, b *bench) {
			gone := b.named("c").DeepCopy()
			gone.Name, gone.UID, gone.ResourceVersion = "d", "uid-d", ""
			b.machines = append(b.machines, &machine{Machine: gone})
		}},
		{reason: "another leader has made a Machine", old: func(t *testing.T, b *bench) {
			b.machines = slices.DeleteFunc(b.machines, func(m *machine) bool { return m.Name == "c" })
		}},
		{reason: "somebody has made a Machine anew under its name", old: func(t *testing.T, b *bench) { b.named("c").UID = "old" }},
		{reason: "the Machine itself was written since", old: written},
	}
	for _, tc := range cases {
		t.Run(tc.reason, func(t *testing.T) {
			b, _ := three(t)
			tc.old(t, b)
			before, all := b.count(t)
			if action := plan.Next(b.planned()); action.Kind != plan.ScaleDown || len(action.Blocked) > 0 {
				t.Fatalf("the plan is %+v", action)
			}
			_, err := b.act(t.Context(), b.scope)
			staying, total := b.count(t)
			if acted := staying != before; acted != tc.acts || total != all {
				t.Errorf("it acted: %t, want %t; error %v", acted, tc.acts, err)
			}
		})
	}
}

// A cluster is initialised once.
func TestInitialisationOnAnOldCache(t *testing.T) {
	cases := []struct {
		reason string
		live   func(*bench)
	}{
		{"another leader has initialised it", func(b *bench) { b.live.Status.Initialized = true }},
		{"the Cluster remembers", func(b *bench) {
			b.liveCluster = b.cluster.DeepCopy()
			condition.Set(b.liveCluster, condition.True(clusterv1.ControlPlaneInitializedCondition))
		}},
		{"the Cluster is being deleted", func(b *bench) {
			b.liveCluster = b.cluster.DeepCopy()
			b.liveCluster.DeletionTimestamp = &metav1.Time{Time: now}
		}},
	}
	for _, tc := range cases {
		t.Run(tc.reason, func(t *testing.T) {
			b := newBench(t)
			b.live = b.kcp.DeepCopy()
			tc.live(b)
			if action := plan.Next(b.planned()); action.Kind != plan.Initialise {
				t.Fatalf("the plan is %+v", action)
			}
			result, err := b.act(t.Context(), b.scope)
			if err != nil || result.After() != staleRetry {
				t.Errorf("result %+v, error %v, want to wait for the cache", result, err)
			}
			// Nor is a Machine whose KubeadmConfig the cache does not show.
			m := &clusterv1.Machine{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "m", UID: "m"}}
			stale, err := b.confirmFirst(t.Context(), &scope{kcp: b.kcp, cluster: b.cluster, machines: []*machine{{Machine: m}}}, &machine{Machine: m})
			if err != nil || stale != "" {
				t.Errorf("a Machine that joins needs no confirmation: %q, %v", stale, err)
			}
			first := &machine{Machine: m}
			if stale, err = b.confirmFirst(t.Context(), &scope{kcp: b.kcp, cluster: b.cluster, machines: []*machine{first}}, first); err != nil || stale == "" {
				t.Errorf("the first Machine is confirmed: %v", err)
			}
			if _, all := b.count(t); all != 0 {
				t.Error("a Machine was made")
			}
		})
	}
}

// machineTemplate is a template that Machines can be made of.
func machineTemplate() []client.Object {
	template := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": provider + "/v1", "kind": "TestMachineTemplate", "metadata": map[string]any{"namespace": "ns", "name": "small"},
		"spec": map[string]any{"template": map[string]any{"spec": map[string]any{}}},
	}}
	objects := []client.Object{template}
	for _, plural := range []string{"testmachines", "testmachinetemplates"} {
		objects = append(objects, &apiextensionsv1.CustomResourceDefinition{ObjectMeta: metav1.ObjectMeta{
			Name: plural + "." + provider, Labels: map[string]string{"cluster.x-k8s.io/v1beta1": "v1"},
		}})
	}
	return objects
}

// Whoever creates the certificate authority knows that nobody was there before.
func TestFoundingNeedsNoReads(t *testing.T) {
	founded := func(t *testing.T) *bench {
		t.Helper()
		b := newBench(t, machineTemplate()...)
		b.kcp.Spec.MachineTemplate.InfrastructureRef = corev1.ObjectReference{APIVersion: provider + "/v1", Kind: "TestMachineTemplate", Name: "small"}
		b.live = b.kcp.DeepCopy()
		if _, err := b.take(t.Context(), "certificates"); err != nil {
			t.Fatal(err)
		}
		return b
	}
	initialise := func(t *testing.T, b *bench) (reads, machines int) {
		t.Helper()
		if action := plan.Next(b.planned()); action.Kind != plan.Initialise {
			t.Fatalf("the plan is %+v", action)
		}
		b.liveReads = 0
		if _, err := b.act(t.Context(), b.scope); err != nil {
			t.Fatal(err)
		}
		_, machines = b.count(t)
		return b.liveReads, machines
	}
	t.Run("the reconcile that creates it", func(t *testing.T) {
		if reads, machines := initialise(t, founded(t)); reads != 0 || machines != 1 {
			t.Errorf("%d reads past the cache, %d Machines, want none and one", reads, machines)
		}
	})
	t.Run("the one after an interruption", func(t *testing.T) {
		b := founded(t)
		b.scope = &scope{kcp: b.kcp, cluster: b.cluster}
		if _, err := b.take(t.Context(), "certificates"); err != nil {
			t.Fatal(err)
		}
		if reads, machines := initialise(t, b); reads != 3 || machines != 1 {
			t.Errorf("%d reads past the cache, %d Machines, want Cluster, control plane and Machines read, and one", reads, machines)
		}
	})
	t.Run("one whose cache lacks the authority of a cluster that runs", func(t *testing.T) {
		b := founded(t)
		b.Secrets = newBench(t).Client // as empty as the rest of the cache
		b.live.Status.Initialized = true
		b.scope = &scope{kcp: b.kcp, cluster: b.cluster}
		if _, err := b.take(t.Context(), "certificates"); err != nil {
			t.Fatal(err)
		}
		if _, machines := initialise(t, b); machines != 0 {
			t.Errorf("%d Machines are made for a cluster that is initialised", machines)
		}
	})
}

// Remediation deletes, too.
func TestRemediationOnAnOldCache(t *testing.T) {
	for reason, old := range map[string]func(*testing.T, *bench){
		"the cache is right":                 func(*testing.T, *bench) {},
		"another leader has deleted another": func(t *testing.T, b *bench) { b.deleted(t, "c") },
		"another leader remediates another": func(t *testing.T, b *bench) {
			b.live.Annotations = map[string]string{controlplanev1.RemediationInProgressAnnotation: "{}"}
		},
		"the control plane is being deleted":  func(t *testing.T, b *bench) { b.live.DeletionTimestamp = &metav1.Time{Time: now} },
		"the Machine is healthy again by now": func(t *testing.T, b *bench) { b.drained(t, "b") }, // any write of it
	} {
		t.Run(reason, func(t *testing.T) {
			b, f := three(t)
			b.live = b.kcp.DeepCopy()
			f.etcd["b"] = false
			reload(t, b, f)
			condition.Set(b.named("b"), condition.False(clusterv1.MachineHealthCheckSucceededCondition, clusterv1.ConditionSeverityWarning, "", ""))
			condition.Set(b.named("b"), condition.False(clusterv1.MachineOwnerRemediatedCondition, clusterv1.ConditionSeverityWarning, "", ""))
			old(t, b)
			before, _ := b.count(t)
			_, err := b.remediate(t.Context(), b.scope)
			staying, _ := b.count(t)
			if acted := staying != before; acted != (reason == "the cache is right") {
				t.Errorf("it acted: %t, error %v", acted, err)
			}
		})
	}
}

// The record of an old remediation must not take that of a new one away.
func TestTheEndOfARemediationOnAnOldCache(t *testing.T) {
	for reason, stale := range map[string]bool{"the cache is right": false, "another leader has recorded the next one": true} {
		t.Run(reason, func(t *testing.T) {
			b, _ := three(t)
			b.remediating = `{"machine":"x","timestamp":"2026-01-01T00:00:00Z","retryCount":0}`
			b.kcp.Annotations = map[string]string{controlplanev1.RemediationInProgressAnnotation: b.remediating}
			b.live = b.kcp.DeepCopy()
			if stale {
				b.live.Annotations[controlplanev1.RemediationInProgressAnnotation] = `{"machine":"y"}`
			}
			if err := b.recovered(t.Context(), b.scope); err != nil {
				t.Fatal(err)
			}
			if _, kept := b.kcp.Annotations[controlplanev1.RemediationInProgressAnnotation]; kept != stale {
				t.Errorf("the record is kept: %t, want %t", kept, stale)
			}
		})
	}
}

// Decisions cost reads past the cache; a control plane at rest costs none.
func TestWhatConfirmationCosts(t *testing.T) {
	b, f := three(t)
	b.kcp.Spec.Replicas = ptr.To[int32](3)
	b.play(t, f)
	if b.liveReads != 0 {
		t.Errorf("at rest there are %d reads past the cache, want none", b.liveReads)
	}
	b.kcp.Spec.Replicas = ptr.To[int32](1)
	b.play(t, f)
	if b.liveReads != 2 {
		t.Errorf("deleting a Machine costs %d reads past the cache, want the control plane and its Machines", b.liveReads)
	}
	if staleRetry < time.Second {
		t.Errorf("an old cache is looked at again every %s", staleRetry)
	}
}
