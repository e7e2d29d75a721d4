package restore

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	fleetv1 "sigs.k8s.io/cluster-api/api/fleet/v1alpha1"
	"sigs.k8s.io/cluster-api/clusterctl/command/oncluster"
	"sigs.k8s.io/cluster-api/clusterctl/iostreams"
	"sigs.k8s.io/cluster-api/clusterctl/management"
	"sigs.k8s.io/cluster-api/sdk/testenv"
)

const namespace = "ns"

func connect(t *testing.T, objects ...client.Object) *management.Cluster {
	t.Helper()
	scheme, err := management.Scheme()
	testenv.Must(t, err)
	return &management.Cluster{Client: fake.NewClientBuilder().WithScheme(scheme).WithObjects(objects...).Build(), Namespace: namespace}
}

func TestObject(t *testing.T) {
	tests := []struct {
		reason  string
		options Options
		want    fleetv1.ControlPlaneRestoreSpec
	}{
		{"an EtcdBackup", Options{From: "b"}, fleetv1.ControlPlaneRestoreSpec{ClusterName: "c", BackupName: "b"}},
		{"an archive", Options{Store: "s", Key: "k", IdentitySecret: "i"}, fleetv1.ControlPlaneRestoreSpec{
			ClusterName: "c", Archive: &fleetv1.ArchiveReference{StoreRef: fleetv1.LocalReference{Name: "s"}, Key: "k"},
			IdentitySecretRef: &fleetv1.LocalReference{Name: "i"},
		}},
		{"what is confirmed", Options{From: "b", Confirm: "c@1", AcceptOtherCluster: true, Fenced: true}, fleetv1.ControlPlaneRestoreSpec{
			ClusterName: "c", BackupName: "b", Confirm: "c@1", AcceptOtherCluster: ptr.To(true), Fenced: ptr.To(true),
		}},
	}
	for _, tt := range tests {
		t.Run(tt.reason, func(t *testing.T) {
			tt.options.Clock = clock.RealClock{}
			got := tt.options.object(types.NamespacedName{Namespace: namespace, Name: "c"})
			if diff := cmp.Diff(tt.want, got.Spec); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

// TestDescribe: a backup that cannot be restored is refused before anything is created.
func TestDescribe(t *testing.T) {
	running := &fleetv1.EtcdBackup{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "running"}}
	tests := []struct{ reason, from, want string }{
		{"it does not exist", "absent", "there is no EtcdBackup absent in namespace ns: see `clusterctl get backups c -n ns`"},
		{"it is not complete", "running", "EtcdBackup running is Pending: only one that is Completed can be restored"},
	}
	for _, tt := range tests {
		t.Run(tt.reason, func(t *testing.T) {
			streams, _ := iostreams.Test()
			o := &Options{Options: oncluster.Options{IO: streams, Clock: clock.RealClock{}}, From: tt.from}
			err := o.describe(t.Context(), connect(t, running), types.NamespacedName{Namespace: namespace, Name: "c"})
			if err == nil || err.Error() != tt.want {
				t.Errorf("got %v, want %s", err, tt.want)
			}
		})
	}
}

func TestLatest(t *testing.T) {
	of := func(name string, phase fleetv1.BackupPhase, started int64) *fleetv1.EtcdBackup {
		b := &fleetv1.EtcdBackup{ObjectMeta: metav1.ObjectMeta{
			Namespace: namespace, Name: name, Labels: map[string]string{clusterv1.ClusterNameLabel: "c"},
		}}
		b.Status.Phase, b.Status.StartTime = phase, ptr.To(metav1.Unix(started, 0))
		return b
	}
	key := types.NamespacedName{Namespace: namespace, Name: "c"}
	m := connect(t, of("old", fleetv1.BackupPhaseCompleted, 1), of("new", fleetv1.BackupPhaseCompleted, 2), of("next", fleetv1.BackupPhaseRunning, 3))
	if got, err := latest(t.Context(), m, key); got != "new" || err != nil {
		t.Errorf("got %s, %v, want the latest one that is complete", got, err)
	}
	if _, err := latest(t.Context(), connect(t), key); err == nil || !strings.HasPrefix(err.Error(), "there is no complete EtcdBackup of cluster ns/c") {
		t.Errorf("got %v", err)
	}
}
