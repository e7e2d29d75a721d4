package restore

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"filippo.io/age"
	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	controlplanev1 "sigs.k8s.io/cluster-api/api/controlplane/v1beta2"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	fleetv1 "sigs.k8s.io/cluster-api/api/fleet/v1alpha1"
	"sigs.k8s.io/cluster-api/providers/fleet/internal/content"
	"sigs.k8s.io/cluster-api/providers/fleet/internal/fence"
	"sigs.k8s.io/cluster-api/providers/fleet/internal/operation"
	"sigs.k8s.io/cluster-api/sdk/testenv"
	"sigs.k8s.io/cluster-api/sdk/testenv/fakeapi"
	"sigs.k8s.io/cluster-api/sdk/testenv/object"
)

func TestStepsAreDocumented(t *testing.T) {
	testenv.StepsDocumented(t, (&Controller{}).declared().Names())
}

// check checks that a control plane was restored, once.
func (w *world) check(t *testing.T) {
	t.Helper()
	r := w.restore(t)
	if r.Status.Phase != fleetv1.OperationPhaseCompleted {
		t.Fatalf("phase %s: %s", r.Status.Phase, w.state(t))
	}
	if planes := w.planes(t); len(planes) != 1 || planes[0].Name != "new-1" || w.created != 1 {
		t.Errorf("the control plane has %d Machines, %d were created", len(planes), w.created)
	}
	if diff := cmp.Diff([]string{"new-1", "stranger", "w-1"}, w.nodeNames(t)); diff != "" {
		t.Errorf("Nodes, -want +got:\n%s", diff)
	}
	if left := w.leftovers(t); len(left) > 0 || w.held(t) {
		t.Errorf("left: %v, held: %v", left, w.held(t))
	}
	if w.fake.peer != "https://10.0.0.9:2380" {
		t.Errorf("the peer URL is %s", w.fake.peer)
	}
	if len(r.Finalizers) > 0 || r.Annotations[fleetv1.OperationEndedAnnotation] != "Completed" {
		t.Errorf("metadata is %v", r.ObjectMeta)
	}
}

func TestRestore(t *testing.T) {
	w := newWorld(t, newRestore(nil))
	w.finish(t)
	w.check(t)
	r := w.restore(t)
	if got := r.Status.Backup; got.Revision != revision || got.LoadBalancers != 1 || got.PersistentVolumes != 1 || got.OtherCluster {
		t.Errorf("the backup is %+v", got)
	}
	var steps []string
	for _, m := range r.Status.Steps {
		if m.CompletionTime == nil {
			t.Errorf("step %s is not complete", m.Name)
		}
		steps = append(steps, m.Name)
	}
	if diff := cmp.Diff([]string{"Inspect", "Hold", "Prepare", "Fence", "Create", "Member", "Nodes", "Release"}, steps); diff != "" {
		t.Errorf("steps, -want +got:\n%s", diff)
	}
	want := "True Completed these Machines are newer than the backup, so that the cluster does not know their Nodes: w-2."
	if got := w.state(t); !strings.HasPrefix(got, want) || !strings.Contains(got, "never had one: stranger") {
		t.Errorf("got %s", got)
	}
	w.Writes = nil
	testenv.Must(t, w.reconcile(t), w.reconcile(t))
	if len(w.Writes) > 0 {
		t.Errorf("a restore that has completed is left alone, but: %v", w.Writes)
	}
}

// TestKilled ends the process after each write: the control plane is restored, once.
func TestKilled(t *testing.T) {
	killed := errors.New("killed")
	for n := 1; ; n++ {
		w := newWorld(t, newRestore(nil))
		writes, over := 0, false
		fault := func(r fakeapi.Request, err error) error {
			if !r.IsWrite() || over {
				return err
			}
			if writes++; writes < n {
				return err
			}
			return killed
		}
		w.After, w.workload.After = fault, fault
		for range 60 {
			if err := w.reconcile(t); err != nil && !errors.Is(err, killed) {
				t.Fatal(err)
			}
			if writes >= n && !over {
				over = true
				w.restart(t)
			}
		}
		w.check(t)
		if t.Failed() {
			t.Fatalf("killed after write %d", n)
		}
		if writes < n {
			t.Logf("%d writes", n)
			return
		}
	}
}

// TestStaleCache: an old copy of the restore in the cache deletes no Machine of the new control plane.
func TestStaleCache(t *testing.T) {
	w := newWorld(t, newRestore(nil))
	for range 60 {
		testenv.Must(t, w.reconcile(t))
		if m := (*operation.Steps)(&w.restore(t).Status.Steps).Find(fleetv1.RestoreStepFence); m != nil && m.CompletionTime == nil {
			break
		}
	}
	old := w.NewCache()
	old.Freeze(&fleetv1.ControlPlaneRestoreList{})
	w.finish(t)
	w.check(t)
	w.Cache = old
	w.restart(t)
	w.Writes = nil
	testenv.Must(t, w.reconcile(t), w.reconcile(t))
	if len(w.Writes) > 0 {
		t.Errorf("a process with an old cache writes %v", w.Writes)
	}
}

// changing returns a function that changes objects of type T, and no others.
func changing[T client.Object](change func(T)) func(client.Object) {
	return func(o client.Object) {
		if obj, ok := o.(T); ok {
			change(obj)
		}
	}
}

func TestRefusals(t *testing.T) {
	cluster, kcp, backup := changing[*clusterv1.Cluster], changing[*controlplanev1.KubeadmControlPlane], changing[*fleetv1.EtcdBackup]
	stranger, err := age.GenerateX25519Identity()
	testenv.Must(t, err)
	tests := []struct {
		reason string
		spec   func(*fleetv1.ControlPlaneRestore)
		change func(client.Object)
		broken func(t *testing.T, w *world)
		want   string
	}{
		{reason: "no Cluster", spec: func(r *fleetv1.ControlPlaneRestore) { r.Spec.ClusterName = "x" }, want: "Cluster x does not exist in namespace default"},
		{reason: "a Cluster that is deleted", change: cluster(object.Deleting[*clusterv1.Cluster]), want: "Cluster c is being deleted"},
		{reason: "a paused Cluster", change: cluster(object.Paused), want: "Cluster c is paused"},
		{reason: "another control plane", change: cluster(func(c *clusterv1.Cluster) { c.Spec.ControlPlaneRef.Kind = "Other" }),
			want: "the control plane of Cluster c is not a KubeadmControlPlane"},
		{reason: "an endpoint that does not follow", change: func(o client.Object) {
			if m, ok := o.(*clusterv1.Machine); ok && m.Name == "cp-2" {
				m.Status.Addresses = clusterv1.MachineAddresses{{Type: clusterv1.MachineInternalIP, Address: "vip.example.com"}}
			}
		}, want: "the endpoint of the control plane, vip.example.com, is an address of Machine cp-2"},
		{reason: "external etcd", want: "KubeadmControlPlane kcp has an external etcd", change: kcp(func(k *controlplanev1.KubeadmControlPlane) {
			k.Spec.KubeadmConfigSpec.ClusterConfiguration.Etcd.External.Endpoints = []string{"https://x"}
		})},
		{reason: "another operation", want: "another operation is in progress: ControlPlaneRecovery x on KubeadmControlPlane kcp", change: kcp(func(k *controlplanev1.KubeadmControlPlane) {
			k.Annotations = map[string]string{fleetv1.OperationAnnotation: `{"kind":"ControlPlaneRecovery","name":"x","uid":"y","mode":"Hold"}`}
		})},
		{reason: "a newer Kubernetes", change: backup(func(b *fleetv1.EtcdBackup) { b.Status.KubernetesVersion = "v1.37.0" }),
			want: "the backup is of Kubernetes v1.37.0, newer than KubeadmControlPlane kcp with v1.36.3"},
		{reason: "a Kubernetes that is too old", change: backup(func(b *fleetv1.EtcdBackup) { b.Status.KubernetesVersion = "v1.34.0" }),
			want: "the backup is of Kubernetes v1.34.0, more than one minor version older"},
		{reason: "an etcd that is too old", want: "the backup is of etcd 3.6.4, newer than 3.5.21-0", change: kcp(func(k *controlplanev1.KubeadmControlPlane) {
			k.Spec.KubeadmConfigSpec.ClusterConfiguration.Etcd.Local.ImageTag = "3.5.21-0"
		})},
		{reason: "no backup", spec: func(r *fleetv1.ControlPlaneRestore) { r.Spec.BackupName = "x" }, want: "EtcdBackup x does not exist"},
		{reason: "a backup that failed", change: backup(func(b *fleetv1.EtcdBackup) { b.Status.Phase = fleetv1.BackupPhaseFailed }),
			want: "EtcdBackup b has failed or is damaged"},
		{reason: "a backup that is not complete", change: backup(func(b *fleetv1.EtcdBackup) { b.Status.Phase = fleetv1.BackupPhaseRunning }),
			want: "EtcdBackup b is not complete"},
		{reason: "no key", change: backup(func(b *fleetv1.EtcdBackup) { b.Spec.Encryption.IdentitySecretRef.Name = "x" }), want: "spec.encryption is invalid: Secret x"},
		{reason: "another key", want: "Secret key does not have the key of the archive", broken: func(t *testing.T, w *world) {
			t.Helper()
			w.write(t, archiveKey, func(*content.Metadata) {}, stranger.Recipient())
		}},
		{reason: "no archive", want: "archive default/c/b.age does not exist in BackupStore disk", broken: func(t *testing.T, w *world) {
			t.Helper()
			testenv.Must(t, os.Remove(filepath.Join(w.dir, "d", archiveKey)))
		}},
		{reason: "a truncated archive", want: "the archive is damaged: the archive is truncated", broken: func(t *testing.T, w *world) {
			t.Helper()
			testenv.Must(t, os.Truncate(filepath.Join(w.dir, "d", archiveKey), 1000))
		}},
		{reason: "an archive of a newer version", want: "the archive has format 2, which is newer", broken: func(t *testing.T, w *world) {
			t.Helper()
			w.write(t, archiveKey, func(m *content.Metadata) { m.FormatVersion = 2 }, w.key.Recipient())
		}},
		{reason: "no store", want: "BackupStore x does not exist", change: backup(func(b *fleetv1.EtcdBackup) { b.Spec.StoreRef.Name = "x" })},
	}
	for _, tt := range tests {
		t.Run(tt.reason, func(t *testing.T) {
			var changes []func(client.Object)
			if tt.change != nil {
				changes = append(changes, tt.change)
			}
			w := newWorld(t, newRestore(tt.spec), changes...)
			if tt.broken != nil {
				tt.broken(t, w)
			}
			w.finish(t)
			if got := w.state(t); !strings.HasPrefix(got, "False Refused "+tt.want) {
				t.Errorf("got  %s\nwant %s", got, tt.want)
			}
			if got := w.restore(t).Status.Phase; got != fleetv1.OperationPhaseFailed {
				t.Errorf("phase %s, want one that does not begin by surprise", got)
			}
			for _, write := range w.Writes {
				if !strings.Contains(write, fleetv1.ControlPlaneRestoreKind) {
					t.Errorf("something was changed: %s", write)
				}
			}
		})
	}
}

func TestConfirmation(t *testing.T) {
	w := newWorld(t, newRestore(func(r *fleetv1.ControlPlaneRestore) { r.Spec.Confirm = "" }))
	w.finish(t)
	if got, want := w.state(t), "False NotConfirmed To go on, set spec.confirm to c@6. What was written to Cluster c since 2026-01-02 02:04:05 UTC, "+
		"when the backup was made, is lost; its control plane Machines are deleted: cp-1, cp-2, cp-3."; got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	if w.held(t) || len(w.planes(t)) != 3 {
		t.Error("something was changed")
	}
	w.write(t, "other/x/a.age", func(m *content.Metadata) { m.Namespace, m.Cluster = "other", "x" }, w.key.Recipient())
	other := newRestore(func(r *fleetv1.ControlPlaneRestore) {
		r.Spec.BackupName = ""
		r.Spec.Archive = &fleetv1.ArchiveReference{StoreRef: fleetv1.LocalReference{Name: "disk"}, Key: "other/x/a.age"}
		r.Spec.IdentitySecretRef = &fleetv1.LocalReference{Name: "key"}
	})
	testenv.Must(t, w.Delete(t.Context(), w.restore(t)))
	w.finish(t)
	testenv.Must(t, w.Create(t.Context(), other))
	w.finish(t)
	if got, want := w.state(t), "False NotConfirmed To go on, set spec.acceptOtherCluster to true. "; !strings.HasPrefix(got, want) ||
		!strings.Contains(got, "1 Services of type LoadBalancer and 1 PersistentVolumes") {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	r := w.restore(t)
	r.Spec.AcceptOtherCluster = ptr.To(true)
	r.Generation++
	testenv.Must(t, w.Update(t.Context(), r))
	w.finish(t)
	w.check(t)
}

// TestOldController: a control plane whose controller does not know operations is not changed.
func TestOldController(t *testing.T) {
	w := newWorld(t, newRestore(nil))
	w.deaf = true
	w.finish(t)
	if got := w.state(t); !strings.HasPrefix(got, "False Waiting Step Hold: waiting for the controller of KubeadmControlPlane kcp to answer") || len(w.planes(t)) != 3 {
		t.Errorf("got %s", got)
	}
	testenv.Must(t, w.Delete(t.Context(), w.restore(t)))
	w.finish(t)
	if w.restore(t) != nil || w.held(t) || len(w.leftovers(t)) > 0 {
		t.Error("it is not undone")
	}
}

// TestLostHardware: Machines that cannot be deleted are removed once a user has said that they do not run.
func TestLostHardware(t *testing.T) {
	w := newWorld(t, newRestore(nil))
	w.stuck = true
	w.finish(t)
	w.Clock.Step(2 * fence.LostAfter)
	testenv.Must(t, w.reconcile(t))
	if got := w.state(t); !strings.HasPrefix(got, "False Waiting Step Fence: waiting for control plane Machines to be deleted: cp-1; cp-2; cp-3") {
		t.Fatalf("got %s", got)
	}
	r := w.restore(t)
	r.Spec.Fenced = ptr.To(true)
	r.Generation++
	testenv.Must(t, w.Update(t.Context(), r))
	w.Clock.Step(time.Until(object.Now()) + 10*365*24*time.Hour) // The API server in memory has another clock.
	w.finish(t)
	if len(w.planes(t)) > 1 || w.restore(t).Status.Phase == fleetv1.OperationPhaseFailed {
		t.Errorf("got %s", w.state(t))
	}
}

// TestDeletedMidway: once Machines are deleted, a restore that is deleted completes first, unless it is abandoned.
func TestDeletedMidway(t *testing.T) {
	for _, abandon := range []bool{false, true} {
		t.Run(fmt.Sprint("abandoned: ", abandon), func(t *testing.T) {
			w := newWorld(t, newRestore(nil))
			w.fake.down = errors.New("connection refused")
			w.finish(t)
			if got := w.state(t); !strings.HasPrefix(got, "False Waiting Step Create: connection refused") {
				t.Fatalf("got %s", got)
			}
			testenv.Must(t, w.Delete(t.Context(), w.restore(t)))
			for range 12 {
				testenv.Must(t, w.reconcile(t))
			}
			if got := w.state(t); !strings.Contains(got, "It is deleted once the restore has completed") {
				t.Errorf("got %s", got)
			}
			if abandon {
				r := w.restore(t)
				r.Annotations[fleetv1.AbandonAnnotation] = ""
				testenv.Must(t, w.Update(t.Context(), r))
			} else {
				w.fake.down = nil
			}
			w.finish(t)
			if w.restore(t) != nil || w.held(t) || len(w.leftovers(t)) > 0 {
				t.Error("it still exists, or something is left")
			}
		})
	}
}

// TestClusterDeleted: a restore ends with its Cluster, and keeps nothing from being deleted.
func TestClusterDeleted(t *testing.T) {
	w := newWorld(t, newRestore(nil))
	w.fake.down = errors.New("connection refused")
	w.finish(t)
	testenv.Must(t, w.Delete(t.Context(), &clusterv1.Cluster{ObjectMeta: meta("Cluster", "c")}), w.Delete(t.Context(), w.restore(t)))
	w.finish(t)
	if w.restore(t) != nil || len(w.leftovers(t)) > 0 {
		t.Errorf("it still exists, or something is left: %v", w.leftovers(t))
	}
}

// TestCopies: a copy of a restore that has ended, without its status, does nothing.
func TestCopies(t *testing.T) {
	w := newWorld(t, newRestore(func(r *fleetv1.ControlPlaneRestore) {
		r.Annotations = map[string]string{fleetv1.OperationEndedAnnotation: string(fleetv1.OperationPhaseCompleted)}
	}))
	w.finish(t)
	if got := w.restore(t).Status.Phase; got != fleetv1.OperationPhaseCompleted || w.held(t) || len(w.planes(t)) != 3 {
		t.Errorf("phase %s, held %v", got, w.held(t))
	}
}

// TestCertificates: CAs that are missing are restored, others are kept.
func TestCertificates(t *testing.T) {
	w := newWorld(t, newRestore(nil), func(o client.Object) {
		if s, ok := o.(*corev1.Secret); ok && s.Name == "c-sa" {
			s.Data["tls.key"] = []byte("another")
		}
	})
	testenv.Must(t, w.Delete(t.Context(), &corev1.Secret{ObjectMeta: meta("Secret", "c-proxy")}))
	w.finish(t)
	w.check(t)
	restored := &corev1.Secret{}
	testenv.Must(t, w.Get(t.Context(), client.ObjectKey{Namespace: "default", Name: "c-proxy"}, restored))
	if string(restored.Data["tls.key"]) != "k" {
		t.Errorf("the Secret is %v", restored)
	}
	got := w.restore(t).Status.Warnings
	for _, want := range []string{"are restored from the archive: c-proxy", "differ from those of the backup: c-sa"} {
		if !slices.ContainsFunc(got, func(s string) bool { return strings.Contains(s, want) }) {
			t.Errorf("warnings are %q, want %q", got, want)
		}
	}
}
