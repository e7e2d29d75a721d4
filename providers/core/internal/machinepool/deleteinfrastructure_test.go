package machinepool

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/sdk/testenv"
	"sigs.k8s.io/cluster-api/sdk/testenv/object"
)

// TestDeletionOrder deletes the infrastructure before the bootstrap config, and waits until each is gone.
func TestDeletionOrder(t *testing.T) {
	p := pool(object.Deleting)
	p.Finalizers = []string{clusterv1.MachinePoolFinalizer}
	infra, config := infraWith(), provided(configKind, nil)
	infra.SetFinalizers([]string{"provider/x"})
	config.SetFinalizers([]string{"provider/x"})
	w := newWorld(t, p, build.Cluster(object.Initialized), infra, config)
	declared := w.declared()
	declared.Progress = nil
	runner := declared.Runner(w.Controller.Clients)
	for _, tc := range []struct {
		reason  string
		release client.Object
		want    []string
	}{
		{reason: "the infrastructure comes first", want: []string{"delete GenericMachinePool p", "patch MachinePool/status p"}},
		{reason: "its deletion is awaited"},
		{reason: "then the bootstrap config", release: infra, want: []string{"delete GenericConfig p", "patch MachinePool/status p"}},
		{reason: "then the finalizer", release: config, want: []string{"patch MachinePool p"}},
	} {
		w.Writes = nil
		if tc.release != nil {
			testenv.Must(t, w.Server.Client.Get(t.Context(), client.ObjectKeyFromObject(tc.release), tc.release))
			tc.release.SetFinalizers(nil)
			testenv.Must(t, w.Server.Client.Update(t.Context(), tc.release))
		}
		if _, err := runner.Reconcile(t.Context(), requestFor(p)); err != nil {
			t.Fatalf("%s: %v", tc.reason, err)
		}
		if diff := cmp.Diff(tc.want, w.Writes); diff != "" {
			t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
		}
	}
}
