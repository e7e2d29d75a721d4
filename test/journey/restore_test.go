package journey

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta1"
	fleetv1 "sigs.k8s.io/cluster-api/api/fleet/v1alpha1"
	"sigs.k8s.io/cluster-api/sdk/testenv"
)

// backup makes a backup of a Cluster with clusterctl, and returns it.
func (v *vault) backup(cluster string) *fleetv1.EtcdBackup {
	v.t.Helper()
	if r := v.clusterctl("backup", cluster, "--store", "bucket", "--identity-secret", "backup-key"); r.Failed {
		v.t.Fatal(r)
	}
	list := &fleetv1.EtcdBackupList{}
	testenv.Must(v.t, v.api.List(v.t.Context(), list, client.InNamespace(v.Namespace)))
	return slices.MaxFunc(slicesOf(list.Items), func(a, b *fleetv1.EtcdBackup) int {
		return strings.Compare(a.Name, b.Name)
	})
}

func slicesOf(items []fleetv1.EtcdBackup) []*fleetv1.EtcdBackup {
	var all []*fleetv1.EtcdBackup
	for i := range items {
		all = append(all, &items[i])
	}
	return all
}

// note writes an object to the workload cluster.
func (w *Workload) note(ctx context.Context, name string) error {
	return w.client.Create(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name}})
}

// noted returns an error unless exactly these objects of note exist.
func (w *Workload) noted(ctx context.Context, exist, lost string) error {
	var one corev1.ConfigMap
	if err := w.client.Get(ctx, client.ObjectKey{Namespace: "default", Name: exist}, &one); err != nil {
		return err
	}
	if err := w.client.Get(ctx, client.ObjectKey{Namespace: "default", Name: lost}, &one); !apierrors.IsNotFound(err) {
		return fmt.Errorf("what was written after the backup exists: %w", err)
	}
	return nil
}

// nodeUIDs returns the UIDs of the Nodes of Machines.
func nodeUIDs(t *testing.T, w *Workload, machines []clusterv1.Machine) map[string]string {
	t.Helper()
	nodes, err := w.Nodes(t.Context())
	testenv.Must(t, err)
	all := map[string]string{}
	for _, m := range machines {
		for i := range nodes {
			if m.Status.NodeRef != nil && nodes[i].Name == m.Status.NodeRef.Name {
				all[m.Name] = string(nodes[i].UID)
			}
		}
	}
	return all
}

// TestRestore loses all three control plane machines of a Cluster, and restores a backup: what was written before is there, what was written
// since is not, the workers are the same, and nothing is replaced afterwards.
func TestRestore(t *testing.T) {
	t.Parallel()
	v := newVault(t)
	c := v.Subject(NewCluster("restored", v.Class(v.Tools.ProjectTemplate())).ControlPlanes(3).Workers(2).Build())
	c.Eventually("the Cluster becomes ready", Ready, ControlPlanes(3), Workers(2), c.WorkloadMatches)
	w := c.Workload()
	testenv.Must(t, w.note(t.Context(), "before"))
	b := v.backup(c.Name)
	testenv.Must(t, w.note(t.Context(), "after"))
	before := c.Snapshot()
	nodes := nodeUIDs(t, w, before.Workers())
	var planes []string
	for _, m := range before.ControlPlane() {
		planes = append(planes, fmt.Sprintf("%q", m.Name))
	}
	c.faults(`{"deadMachines": [` + strings.Join(planes, ", ") + `]}`)
	still := c.Always("no worker is replaced", SameMachines((*Snapshot).Workers, before))

	began := time.Now()
	r := v.clusterctl("restore", c.Name, "--from", b.Name, "--yes")
	if r.Failed {
		t.Fatal(r)
	}
	t.Logf("restored in %s:\n%s", time.Since(began).Round(time.Millisecond), r.Err)
	c.faults("")
	c.Eventually("the Cluster becomes ready again", Ready, ControlPlanes(3), Workers(2), NewMachines((*Snapshot).ControlPlane, before),
		c.WorkloadMatches, func(*Snapshot) error { return w.noted(t.Context(), "before", "after") })
	t.Logf("ready after %s", time.Since(began).Round(time.Millisecond))
	after := c.Snapshot()
	if got := nodeUIDs(t, w, after.Workers()); fmt.Sprint(got) != fmt.Sprint(nodes) {
		t.Errorf("the Nodes of workers were %v, are %v", nodes, got)
	}
	planesStay := c.Always("no control plane Machine is replaced", SameMachines((*Snapshot).ControlPlane, after))
	if next := v.backup(c.Name); next.Status.Etcd.Revision <= b.Status.Etcd.Revision+1_000_000_000 {
		t.Errorf("a backup after the restore has revision %d", next.Status.Etcd.Revision)
	}
	planesStay()
	still()
	v.nothingLeft()
}

// TestRestoreClone restores the backup of a Cluster into another one. Its workers are not in the backup, so they are replaced.
func TestRestoreClone(t *testing.T) {
	testenv.Soak(t)
	t.Parallel()
	v := newVault(t)
	class := v.Class(v.Tools.ProjectTemplate())
	original := v.Subject(NewCluster("original", class).ControlPlanes(1).Workers(1).Build())
	clone := v.Subject(NewCluster("clone", class).ControlPlanes(1).Workers(1).Build())
	original.Eventually("the original becomes ready", Ready, original.WorkloadMatches)
	clone.Eventually("the clone becomes ready", Ready, clone.WorkloadMatches)
	testenv.Must(t, original.Workload().note(t.Context(), "before"), clone.Workload().note(t.Context(), "after"))
	testenv.Must(t, original.Workload().client.Create(t.Context(), &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "balanced"},
		Spec:       corev1.ServiceSpec{Type: corev1.ServiceTypeLoadBalancer, Ports: []corev1.ServicePort{{Port: 80}}},
	}))
	b := v.backup(original.Name)
	r := v.clusterctl("restore", clone.Name, "--from", b.Name, "--yes")
	if !r.Failed || !strings.Contains(r.Err, "--accept-other-cluster") || !strings.Contains(r.Err, "1 Services of type LoadBalancer") {
		t.Errorf("another Cluster's backup without consent: %s", r)
	}
	before := clone.Snapshot()
	// Otherwise the health check of the class may replace it first: its Node is not in the backup.
	worker := before.Workers()[0]
	clone.update(&worker, func() {
		metav1.SetMetaDataAnnotation(&worker.ObjectMeta, clusterv1.MachineSkipRemediationAnnotation, "")
	})
	if r := v.clusterctl("restore", clone.Name, "--from", b.Name, "--yes", "--accept-other-cluster"); r.Failed ||
		!strings.Contains(r.Err, worker.Name) {
		t.Fatal(r)
	}
	testenv.Must(t, clone.Client.Delete(t.Context(), &worker))
	clone.Eventually("the clone becomes ready with other Machines", Ready, ControlPlanes(1), Workers(1), NewMachines((*Snapshot).Workers, before),
		clone.WorkloadMatches, func(*Snapshot) error { return clone.Workload().noted(t.Context(), "before", "after") })
	v.nothingLeft()
}

// nothingLeft checks that nothing of restores is left in the bucket and in the namespace.
func (v *vault) nothingLeft() {
	v.t.Helper()
	for _, key := range v.keys() {
		if strings.Contains(key, "/restore-") {
			v.t.Errorf("the bucket has %s", key)
		}
	}
	secrets := &corev1.SecretList{}
	testenv.Must(v.t, v.api.List(v.t.Context(), secrets, client.InNamespace(v.Namespace)))
	for i := range secrets.Items {
		if _, found := secrets.Items[i].Data[fleetv1.RestoreConfigKey]; found {
			v.t.Error(errors.New("Secret " + secrets.Items[i].Name + " is left"))
		}
	}
}
