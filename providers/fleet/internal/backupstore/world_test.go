package backupstore

import (
	"fmt"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	fleetv1 "sigs.k8s.io/cluster-api/api/fleet/v1alpha1"
	"sigs.k8s.io/cluster-api/providers/fleet/internal/store"
	"sigs.k8s.io/cluster-api/sdk/report"
	"sigs.k8s.io/cluster-api/sdk/step"
	"sigs.k8s.io/cluster-api/sdk/testenv"
	"sigs.k8s.io/cluster-api/sdk/testenv/fakeapi"
	"sigs.k8s.io/cluster-api/sdk/testenv/object"
)

// world has a BackupStore in a directory.
type world struct {
	*fakeapi.Server
	dir    string
	runner *step.Runner[*fleetv1.BackupStore]
}

func meta(kind, name string) metav1.ObjectMeta {
	return object.Builder{ClusterName: "c"}.Meta(kind, name)
}

func newWorld(t *testing.T, objects ...client.Object) *world {
	t.Helper()
	of := &fleetv1.BackupStore{ObjectMeta: meta("BackupStore", "disk"), Spec: fleetv1.BackupStoreSpec{
		Directory: &fleetv1.DirectoryStore{Path: "nightly"},
	}}
	of.Finalizers = []string{fleetv1.BackupStoreFinalizer}
	w := &world{
		Server: fakeapi.New(t, fakeapi.Options{Kinds: []func(*runtime.Scheme) error{fleetv1.AddToScheme}, Objects: append(objects, of)}),
		dir:    t.TempDir(),
	}
	clients := w.ForController()
	c := &Controller{Clients: clients, opener: Opener{Stores: clients.Client, Secrets: clients.Live, DataDir: w.dir}}
	w.runner = c.declared().Runner(c.Clients)
	return w
}

func (w *world) store(t *testing.T) *fleetv1.BackupStore {
	t.Helper()
	of := &fleetv1.BackupStore{}
	testenv.Must(t, w.Get(t.Context(), client.ObjectKey{Namespace: meta("", "").Namespace, Name: "disk"}, of))
	return of
}

// opened returns the store itself.
func (w *world) opened(t *testing.T) store.Store {
	t.Helper()
	opened, err := Opener{DataDir: w.dir}.Open(t.Context(), w.store(t))
	testenv.Must(t, err)
	return opened
}

// reconcile returns when the next reconcile is due without an event.
func (w *world) reconcile(t *testing.T) time.Duration {
	t.Helper()
	key := client.ObjectKey{Namespace: meta("", "").Namespace, Name: "disk"}
	result, err := w.runner.Reconcile(t.Context(), ctrl.Request{NamespacedName: key})
	testenv.Must(t, err)
	return result.RequeueAfter
}

// state returns a condition as "False InUse message".
func (w *world) state(t *testing.T, condition string) string {
	t.Helper()
	c := report.Get(w.store(t), condition)
	if c == nil {
		return "none"
	}
	return fmt.Sprint(c.Status, " ", c.Reason, " ", c.Message)
}

// backups are the EtcdBackups, by name.
func (w *world) backups(t *testing.T) map[string]fleetv1.EtcdBackup {
	t.Helper()
	list := &fleetv1.EtcdBackupList{}
	testenv.Must(t, w.List(t.Context(), list))
	all := map[string]fleetv1.EtcdBackup{}
	for _, b := range list.Items {
		all[b.Name] = b
	}
	return all
}
