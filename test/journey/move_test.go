package journey

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta1"
	inclusterv1 "sigs.k8s.io/cluster-api/api/ipam/incluster/v1alpha2"
	ipamv1 "sigs.k8s.io/cluster-api/api/ipam/v1beta1"
	"sigs.k8s.io/cluster-api/sdk/ownership"
	"sigs.k8s.io/cluster-api/sdk/testenv"
)

// killInterval is how much longer each run of a move that is killed may take than the one before, so that one ends.
const killInterval = 300 * time.Millisecond

// TestMove moves Clusters to another management cluster, one of them with a class of another namespace, while clusterctl is killed again and
// again. Soak tests move more, and move them back, undisturbed. Both management clusters keep running, so that a source that still reconciled would interfere. No object is created or
// replaced: Machines keep their names, provider IDs, Nodes and addresses.
func TestMove(t *testing.T) {
	t.Parallel()
	clusters := 2
	if testenv.Soaks() {
		clusters = 10
	}
	var sides [2]*Management
	for i := range sides {
		sides[i] = newSide(t)
	}
	w := sides[0].World(t)
	w.Patient()
	class, elsewhere := w.Class(w.Tools.ProjectTemplate()), sides[0].World(t)
	elsewhere.Class(w.Tools.ProjectTemplate())
	subjects := make([]*Subject, clusters)
	for i := range subjects {
		cluster := NewCluster(fmt.Sprintf("moved-%d", i), class).ControlPlanes(1).Workers(1).Build()
		if i == 0 {
			cluster.Spec.Topology.ClassNamespace = elsewhere.Namespace
		}
		subjects[i] = w.Subject(cluster)
	}
	for _, c := range subjects {
		c.Eventually("the Cluster becomes ready", Ready, ControlPlanes(1), Workers(1))
	}
	addresses := claimed(w)
	before, shares := w.Identity(), elsewhere.Identity()
	moves := []func(*World, *Management) *World{killedMove}
	if testenv.Soaks() {
		moves = append(moves, (*World).Move)
	}
	for i, move := range moves {
		from := w
		w = move(from, sides[1-i])
		for _, c := range subjects {
			moved := c.Moved(w)
			moved.Eventually("the Cluster is ready after the move", Ready, ControlPlanes(1), Workers(1), moved.WorkloadMatches)
		}
		if diff := cmp.Diff(before, w.Identity()); diff != "" {
			t.Errorf("after move %d: -before +after:\n%s", i+1, diff)
		}
		if left := from.Identity(); len(left.Objects) > 0 {
			t.Errorf("objects left in the source: %v", left.Objects)
		}
		if diff := cmp.Diff(shares, elsewhere.at(from.Management).Identity()); diff != "" {
			t.Errorf("the class of the other namespace stays in the source as it was, -before +after:\n%s", diff)
		}
		if diff := cmp.Diff(shares, elsewhere.at(w.Management).Identity()); diff != "" {
			t.Errorf("the class of the other namespace is copied with its templates, -source +target:\n%s", diff)
		}
		if diff := cmp.Diff(addresses, w.addresses(len(addresses))); diff != "" {
			t.Errorf("addresses after move %d: -before +after:\n%s", i+1, diff)
		}
	}
	w.anotherAddress(addresses)
}

// newSide returns a management cluster with the in-cluster IPAM provider, too.
func newSide(t *testing.T) *Management {
	t.Helper()
	tools := shared.Management(t).Tools
	s := NewStandalone(t, tools)
	testenv.Must(t, tools.install(t.Context(), s.kubeconfig()))
	if r := tools.Clusterctl(t.Context(), "", "init", "--kubeconfig", s.kubeconfig(), "--ipam", "in-cluster", "--wait-providers"); r.Failed {
		t.Fatal(r)
	}
	return s.Management()
}

// killedMove moves like World.Move, but kills clusterctl, and runs it again, until a run ends before it is killed.
func killedMove(w *World, to *Management) *World {
	w.t.Helper()
	for kills := 0; ; kills++ {
		ctx, cancel := context.WithTimeout(w.t.Context(), time.Duration(kills+1)*killInterval)
		r := w.Tools.Clusterctl(ctx, "", "move", "--kubeconfig", w.Kubeconfig, "--to-kubeconfig", to.Kubeconfig, "--namespace", w.Namespace)
		killed := r.Failed && ctx.Err() != nil
		cancel()
		switch {
		case killed:
			w.t.Logf("killed after %s:\n%s", time.Duration(kills+1)*killInterval, r.Err)
		case r.Failed:
			w.t.Fatal(r)
		case kills < 3:
			w.t.Fatalf("the move was killed %d times only", kills)
		default:
			return w.at(to)
		}
	}
}

// api returns a client for addresses.
func (w *World) api() client.Client {
	w.t.Helper()
	s := runtime.NewScheme()
	testenv.Must(w.t, errors.Join(clusterv1.AddToScheme(s), ipamv1.AddToScheme(s), inclusterv1.AddToScheme(s)))
	api, err := client.New(w.Config, client.Options{Scheme: s})
	testenv.Must(w.t, err)
	return api
}

// claimed creates a pool and a claim for each Machine, as an infrastructure provider does, and returns the addresses by claim.
func claimed(w *World) map[string]string {
	w.t.Helper()
	api := w.api()
	testenv.Must(w.t, api.Create(w.t.Context(), &inclusterv1.InClusterIPPool{
		ObjectMeta: metav1.ObjectMeta{Namespace: w.Namespace, Name: "pool"},
		Spec:       inclusterv1.InClusterIPPoolSpec{Addresses: []string{"10.0.0.10-10.0.0.99"}, Prefix: 24, Gateway: "10.0.0.1"},
	}))
	machines := &clusterv1.MachineList{}
	testenv.Must(w.t, w.Client.List(w.t.Context(), machines, client.InNamespace(w.Namespace)))
	for i := range machines.Items {
		testenv.Must(w.t, api.Create(w.t.Context(), claimFor(&machines.Items[i])))
	}
	return w.addresses(len(machines.Items))
}

func claimFor(m *clusterv1.Machine) *ipamv1.IPAddressClaim {
	return &ipamv1.IPAddressClaim{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: m.Namespace, Name: m.Name, Labels: map[string]string{clusterv1.ClusterNameLabel: m.Spec.ClusterName},
			OwnerReferences: []metav1.OwnerReference{ownership.Reference(m, clusterv1.GroupVersion.WithKind("Machine"), false)},
		},
		Spec: ipamv1.IPAddressClaimSpec{PoolRef: corev1.TypedLocalObjectReference{APIGroup: ptr.To("ipam.cluster.x-k8s.io"), Kind: "InClusterIPPool", Name: "pool"}},
	}
}

// addresses waits until this number of claims has an address, and returns the addresses by claim.
func (w *World) addresses(claims int) map[string]string {
	w.t.Helper()
	api := w.api()
	found := map[string]string{}
	testenv.Eventually(w.t, fmt.Sprintf("%d claims have addresses", claims), func() error {
		list, addresses := &ipamv1.IPAddressClaimList{}, &ipamv1.IPAddressList{}
		if err := errors.Join(api.List(w.t.Context(), list, client.InNamespace(w.Namespace)), api.List(w.t.Context(), addresses, client.InNamespace(w.Namespace))); err != nil {
			return err
		}
		clear(found)
		for _, claim := range list.Items {
			for _, a := range addresses.Items {
				if a.Name == claim.Status.AddressRef.Name && a.Spec.ClaimRef.Name == claim.Name {
					found[claim.Name] = a.Spec.Address
				}
			}
		}
		if len(found) != claims || len(addresses.Items) != claims {
			return fmt.Errorf("%d claims have %d addresses", len(found), len(addresses.Items))
		}
		return nil
	})
	return found
}

// anotherAddress checks that a new claim does not get an address that was moved.
func (w *World) anotherAddress(moved map[string]string) {
	w.t.Helper()
	machines := &clusterv1.MachineList{}
	testenv.Must(w.t, w.Client.List(w.t.Context(), machines, client.InNamespace(w.Namespace)))
	claim := claimFor(&machines.Items[0])
	claim.Name = "another"
	testenv.Must(w.t, w.api().Create(w.t.Context(), claim))
	address := w.addresses(len(moved) + 1)[claim.Name]
	if slices.Contains(slices.Collect(maps.Values(moved)), address) {
		w.t.Errorf("a new claim gets address %s, which another has", address)
	}
}
