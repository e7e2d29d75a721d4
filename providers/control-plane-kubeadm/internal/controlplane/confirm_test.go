package controlplane

import (
	"slices"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	controlplanev1 "sigs.k8s.io/cluster-api/api/controlplane/v1beta2"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/providers/control-plane-kubeadm/internal/kcptest"
	"sigs.k8s.io/cluster-api/providers/control-plane-kubeadm/internal/scale"
	"sigs.k8s.io/cluster-api/providers/control-plane-kubeadm/internal/snapshot"
	"sigs.k8s.io/cluster-api/sdk/condition"
	"sigs.k8s.io/cluster-api/sdk/testenv"
	"sigs.k8s.io/cluster-api/sdk/testenv/object"
)

// Before a Machine is created or deleted, the decision is checked against the API server.
func TestDecisionsWithAStaleCache(t *testing.T) {
	live := func(change func(*controlplanev1.KubeadmControlPlane)) func(*testing.T, *bench) {
		return func(_ *testing.T, b *bench) {
			b.Diverge()
			change(b.LiveKCP)
		}
	}
	written := func(t *testing.T, b *bench) {
		m := &clusterv1.Machine{}
		testenv.Must(t, b.API.Get(t.Context(), client.ObjectKey{Namespace: "ns", Name: "a"}, m))
		m.Labels["new"] = ""
		testenv.Must(t, b.API.Update(t.Context(), m))
	}
	unhooked := func(t *testing.T, b *bench) {
		b.Annotate(t, "a", nil)
		testenv.Must(t, b.API.Get(t.Context(), client.ObjectKey{Namespace: "ns", Name: "a"}, b.Named("a").Machine))
	}
	cases := []struct {
		reason string
		stale  func(*testing.T, *bench)
		acts   bool
	}{
		{reason: "the cache is up to date", stale: func(*testing.T, *bench) {}, acts: true},
		{reason: "it is, and the Machine does not have our hook yet", stale: unhooked, acts: true},
		{reason: "such a Machine has changed since", stale: func(t *testing.T, b *bench) {
			unhooked(t, b)
			written(t, b)
		}},
		{reason: "the number of replicas has changed again", stale: live(func(k *controlplanev1.KubeadmControlPlane) { k.Spec.Replicas = ptr.To[int32](3) })},
		{reason: "the version has changed", stale: live(func(k *controlplanev1.KubeadmControlPlane) { k.Spec.Version = "v1.31.0" })},
		{reason: "the control plane is being deleted", stale: live(func(k *controlplanev1.KubeadmControlPlane) { k.DeletionTimestamp = &metav1.Time{Time: object.Now()} })},
		{reason: "it is paused", stale: live(func(k *controlplanev1.KubeadmControlPlane) {
			k.Annotations = map[string]string{clusterv1.PausedAnnotation: ""}
		})},
		{reason: "its Cluster is paused", stale: func(_ *testing.T, b *bench) {
			b.Diverge()
			b.LiveCluster.Spec.Paused = ptr.To(true)
		}},
		{reason: "it was deleted and created again", stale: live(func(k *controlplanev1.KubeadmControlPlane) { k.UID = "another" })},
		{reason: "another leader remediates", stale: live(func(k *controlplanev1.KubeadmControlPlane) {
			k.Annotations = map[string]string{controlplanev1.RemediationInProgressAnnotation: "{}"}
		})},
		{reason: "another leader has deleted a Machine", stale: func(t *testing.T, b *bench) { b.Deleted(t, "c") }},
		{reason: "a Machine is gone", stale: func(t *testing.T, b *bench) {
			gone := b.Named("c").DeepCopy()
			gone.Name, gone.UID, gone.ResourceVersion = "d", "machine-d", ""
			b.Machines = append(b.Machines, &snapshot.Machine{Machine: gone})
		}},
		{reason: "another leader has created a Machine", stale: func(t *testing.T, b *bench) {
			b.Machines = slices.DeleteFunc(b.Machines, func(m *snapshot.Machine) bool { return m.Name == "c" })
		}},
		{reason: "a Machine was deleted and created again with the same name", stale: func(t *testing.T, b *bench) { b.Named("c").UID = "old" }},
		{reason: "the Machine itself has changed since", stale: written},
	}
	for _, tc := range cases {
		t.Run(tc.reason, func(t *testing.T) {
			b, _ := three(t)
			tc.stale(t, b)
			before, all := b.Count(t)
			if action := b.next(); action.Kind != scale.ScaleDown || len(action.Blocked) > 0 {
				t.Fatalf("the plan is %+v", action)
			}
			_, err := b.take(t.Context(), "plan", "scale")
			staying, total := b.Count(t)
			if acted := staying != before; acted != tc.acts || total != all {
				t.Errorf("it acted: %t, want %t; error %v", acted, tc.acts, err)
			}
		})
	}
}

// A cluster is initialized once.
func TestInitializationWithAStaleCache(t *testing.T) {
	cases := []struct {
		reason string
		live   func(*bench)
	}{
		{"another leader has initialized the cluster", func(b *bench) { b.LiveKCP.Status.Initialization.ControlPlaneInitialized = ptr.To(true) }},
		{"the Cluster is initialized", func(b *bench) {
			condition.Set(b.LiveCluster, condition.True(clusterv1.ControlPlaneInitializedV1Beta1Condition))
		}},
		{"the Cluster is being deleted", func(b *bench) {
			b.LiveCluster.DeletionTimestamp = &metav1.Time{Time: object.Now()}
		}},
	}
	for _, tc := range cases {
		t.Run(tc.reason, func(t *testing.T) {
			b := newBench(t)
			b.Diverge()
			tc.live(b)
			if action := b.next(); action.Kind != scale.Initialize {
				t.Fatalf("the plan is %+v", action)
			}
			result, err := b.take(t.Context(), "plan", "scale")
			if err != nil || result.After() != snapshot.StaleRetry {
				t.Errorf("result %+v, error %v, want to wait for the cache", result, err)
			}
			if _, all := b.Count(t); all != 0 {
				t.Error("a Machine was created")
			}
		})
	}
}

// machineTemplate returns a template for Machines, with its CRDs.
func machineTemplate() []client.Object {
	template := kind("TestMachineTemplate")
	return []client.Object{kcptest.Build().Template(template, "small"), object.CRD(kind("TestMachine")), object.CRD(template)}
}

// A new cluster CA proves that the cluster has not been initialized.
func TestInitializationWithANewCANeedsNoReads(t *testing.T) {
	newCA := func(t *testing.T) *bench {
		t.Helper()
		b := newBench(t, machineTemplate()...)
		b.KCP.Spec.MachineTemplate.Spec.InfrastructureRef = *object.Reference(kind("TestMachineTemplate"), "small")
		b.Diverge()
		if _, err := b.take(t.Context(), "certificates"); err != nil {
			t.Fatal(err)
		}
		return b
	}
	initialize := func(t *testing.T, b *bench) (reads, machines int) {
		t.Helper()
		if action := b.next(); action.Kind != scale.Initialize {
			t.Fatalf("the plan is %+v", action)
		}
		b.API.LiveReads = nil
		if _, err := b.take(t.Context(), "plan", "scale"); err != nil {
			t.Fatal(err)
		}
		_, machines = b.Count(t)
		return len(b.API.LiveReads), machines
	}
	t.Run("the reconcile that creates it", func(t *testing.T) {
		if reads, machines := initialize(t, newCA(t)); reads != 0 || machines != 1 {
			t.Errorf("%d reads past the cache, %d Machines, want none and one", reads, machines)
		}
	})
	t.Run("the one after an interruption", func(t *testing.T) {
		b := newCA(t)
		b.s = &scope{}
		if _, err := b.take(t.Context(), "certificates"); err != nil {
			t.Fatal(err)
		}
		if reads, machines := initialize(t, b); reads != 3 || machines != 1 {
			t.Errorf("%d reads past the cache, %d Machines, want Cluster, control plane and Machines read, and one", reads, machines)
		}
	})
	t.Run("one whose cache lacks the CA of a running cluster", func(t *testing.T) {
		b := newCA(t)
		b.Secrets = newBench(t).Client // empty, like the rest of the cache
		b.LiveKCP.Status.Initialization.ControlPlaneInitialized = ptr.To(true)
		b.s = &scope{}
		if _, err := b.take(t.Context(), "certificates"); err != nil {
			t.Fatal(err)
		}
		if _, machines := initialize(t, b); machines != 0 {
			t.Errorf("%d Machines are created for a cluster that is initialized", machines)
		}
	})
}

// Remediation deletes Machines, too.
func TestRemediationWithAStaleCache(t *testing.T) {
	for reason, stale := range map[string]func(*testing.T, *bench){
		"the cache is up to date":            func(*testing.T, *bench) {},
		"another leader has deleted another": func(t *testing.T, b *bench) { b.Deleted(t, "c") },
		"another leader remediates another": func(t *testing.T, b *bench) {
			b.LiveKCP.Annotations = map[string]string{controlplanev1.RemediationInProgressAnnotation: "{}"}
		},
		"the control plane is being deleted":  func(t *testing.T, b *bench) { b.LiveKCP.DeletionTimestamp = &metav1.Time{Time: object.Now()} },
		"the Machine is healthy again by now": func(t *testing.T, b *bench) { b.Drained(t, "b") }, // or any other change
	} {
		t.Run(reason, func(t *testing.T) {
			b, f := three(t)
			b.Diverge()
			f.Members["b"] = false
			reload(t, b, f)
			condition.Set(b.Named("b"), condition.False(clusterv1.MachineHealthCheckSucceededV1Beta1Condition, clusterv1.ConditionSeverityWarning, "", ""))
			condition.Set(b.Named("b"), condition.False(clusterv1.MachineOwnerRemediatedV1Beta1Condition, clusterv1.ConditionSeverityWarning, "", ""))
			stale(t, b)
			before, _ := b.Count(t)
			_, err := b.take(t.Context(), "remediate")
			staying, _ := b.Count(t)
			if acted := staying != before; acted != (reason == "the cache is up to date") {
				t.Errorf("it acted: %t, error %v", acted, err)
			}
		})
	}
}

// The end of a remediation must not remove the record of the next one.
func TestTheEndOfARemediationWithAStaleCache(t *testing.T) {
	for reason, stale := range map[string]bool{"the cache is up to date": false, "another leader has recorded the next one": true} {
		t.Run(reason, func(t *testing.T) {
			b, _ := three(t)
			b.Remediation = `{"machine":"x","timestamp":"2026-01-01T00:00:00Z","retryCount":0}`
			b.KCP.Annotations = map[string]string{controlplanev1.RemediationInProgressAnnotation: b.Remediation}
			b.Diverge()
			if stale {
				b.LiveKCP.Annotations[controlplanev1.RemediationInProgressAnnotation] = `{"machine":"y"}`
			}
			if _, err := b.take(t.Context(), "remediate"); err != nil {
				t.Fatal(err)
			}
			if _, kept := b.KCP.Annotations[controlplanev1.RemediationInProgressAnnotation]; kept != stale {
				t.Errorf("the record is kept: %t, want %t", kept, stale)
			}
		})
	}
}

// Only decisions cost live reads.
func TestWhatConfirmationCosts(t *testing.T) {
	b, f := three(t)
	b.KCP.Spec.Replicas = ptr.To[int32](3)
	b.play(t, f)
	if len(b.API.LiveReads) != 0 {
		t.Errorf("at rest there are %d reads past the cache, want none", len(b.API.LiveReads))
	}
	b.KCP.Spec.Replicas = ptr.To[int32](1)
	b.play(t, f)
	if len(b.API.LiveReads) != 3 {
		t.Errorf("deleting a Machine costs %d reads past the cache, want the control plane, its Cluster and its Machines", len(b.API.LiveReads))
	}
	if snapshot.StaleRetry < time.Second {
		t.Errorf("with a stale cache, reconciles are retried every %s", snapshot.StaleRetry)
	}
}
