package incluster

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	inclusterv1 "sigs.k8s.io/cluster-api/api/ipam/incluster/v1alpha2"
	ipamv1 "sigs.k8s.io/cluster-api/api/ipam/v1beta2"
	"sigs.k8s.io/cluster-api/providers/ipam-in-cluster/internal/address"
	"sigs.k8s.io/cluster-api/providers/ipam-in-cluster/internal/poolref"
	"sigs.k8s.io/cluster-api/sdk/testenv"
	"sigs.k8s.io/cluster-api/sdk/testenv/object"
)

// moved creates a claim as clusterctl move does: with its finalizer, and without its status.
func (w *world) moved(name string, labels map[string]string) *ipamv1.IPAddressClaim {
	w.t.Helper()
	c := w.claim(name)
	c.Labels, c.Finalizers = labels, []string{inclusterv1.ClaimFinalizer}
	testenv.Must(w.t, w.Update(w.t.Context(), c))
	return c
}

// movedAddress creates the IPAddress of a claim as clusterctl move does.
func (w *world) movedAddress(c *ipamv1.IPAddressClaim, text string) types.UID {
	w.t.Helper()
	key, _ := poolref.OfObject(c)
	a := address.New(c, key, w.pool(), text)
	a.UID = object.UID("moved", c.Name)
	testenv.Must(w.t, w.Create(w.t.Context(), a))
	return a.UID
}

// TestClusterOfClaim: the address of a claim that names its Cluster has the label of the Cluster, and gets it when the Cluster is resumed.
func TestClusterOfClaim(t *testing.T) {
	w := newWorld(t, 9)
	p := w.processes[0]
	cluster := object.Builder{ClusterName: "c"}.Cluster(object.Paused)
	testenv.Must(t, w.Create(t.Context(), cluster))
	claim := w.claim("a")
	claim.Spec.ClusterName = cluster.Name
	testenv.Must(t, w.Update(t.Context(), claim))
	w.settle(p)
	if got := w.read("a").Status.AddressRef.Name; got != "" {
		t.Fatalf("the Cluster is paused, but the claim has the address %s", got)
	}
	cluster.Spec.Paused = ptr.To(false)
	testenv.Must(t, w.Update(t.Context(), cluster))
	w.settle(p)
	a := &ipamv1.IPAddress{}
	testenv.Must(t, w.Get(t.Context(), client.ObjectKeyFromObject(claim), a))
	if a.Labels[clusterv1.ClusterNameLabel] != cluster.Name {
		t.Errorf("the labels of the IPAddress are %v", a.Labels)
	}
}

// TestMove creates a pool without status, claims, and then their IPAddresses, as clusterctl move does, with the controllers working after
// every step. Claims keep their IPAddresses, and none of these addresses is allocated to others.
func TestMove(t *testing.T) {
	ofCluster := map[string]string{clusterv1.ClusterNameLabel: "c"}
	for _, tc := range []struct {
		reason string
		labels map[string]string
		// pausePool is whether the user has paused the pool: claims without a Cluster are not paused by clusterctl.
		pausePool bool
		// process is the one that works: an old one has allocated addresses before the move.
		old bool
	}{
		{reason: "claims of a Cluster", labels: ofCluster},
		{reason: "claims of a Cluster, after an allocation", labels: ofCluster, old: true},
		{reason: "claims without a Cluster, of a pool that is paused", pausePool: true},
	} {
		t.Run(tc.reason, func(t *testing.T) {
			w := newWorld(t, 9, func(p *inclusterv1.InClusterIPPool) {
				if tc.pausePool {
					p.Annotations = map[string]string{clusterv1.PausedAnnotation: ""}
				}
			})
			p := w.processes[0]
			cluster := object.Builder{ClusterName: "c"}.Cluster(object.Paused)
			testenv.Must(t, w.Create(t.Context(), cluster))
			want := []string{"a=10.0.0.5", "b=10.0.0.4", "new=10.0.0.1"}
			if tc.old {
				w.claim("old")
				want = []string{"a=10.0.0.5", "b=10.0.0.4", "new=10.0.0.2", "old=10.0.0.1"}
			}
			w.settle(p)
			a, b := w.moved("a", tc.labels), w.moved("b", tc.labels)
			w.settle(p)
			uids := map[string]types.UID{"b": w.movedAddress(b, "10.0.0.4")}
			w.settle(p)
			uids["a"] = w.movedAddress(a, "10.0.0.5")
			w.settle(p)

			cluster.Spec.Paused = ptr.To(false)
			testenv.Must(t, w.Update(t.Context(), cluster))
			resumed := w.pool()
			resumed.Annotations = nil
			testenv.Must(t, w.Update(t.Context(), resumed))
			w.claim("new")
			w.settle(p)
			if diff := cmp.Diff(want, w.allocated()); diff != "" {
				t.Errorf("allocated (-want +got):\n%s", diff)
			}
			for _, one := range w.addresses() {
				if uid, is := uids[one.Name]; is && uid != one.UID {
					t.Errorf("IPAddress %s was created again", one.Name)
				}
			}
			w.checkAll("after the move")
		})
	}
}

// TestClaimsWithoutOwner checks that clusterctl moves claims that no machine owns, and their IPAddresses.
func TestClaimsWithoutOwner(t *testing.T) {
	w := newWorld(t, 3)
	w.claim("a")
	w.settle(w.processes[0])
	if diff := cmp.Diff(map[string]string{"clusterctl.cluster.x-k8s.io/move-hierarchy": ""}, w.read("a").Labels); diff != "" {
		t.Errorf("labels (-want +got):\n%s", diff)
	}
}
