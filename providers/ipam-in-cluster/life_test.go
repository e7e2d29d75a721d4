package incluster

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	inclusterv1 "sigs.k8s.io/cluster-api/api/ipam/incluster/v1alpha2"
	ipamv1 "sigs.k8s.io/cluster-api/api/ipam/v1beta2"
	"sigs.k8s.io/cluster-api/providers/ipam-in-cluster/internal/ledger"
	"sigs.k8s.io/cluster-api/sdk/condition"
	"sigs.k8s.io/cluster-api/sdk/testenv"
)

// state returns the condition Ready in short.
func state(on condition.Getter) string {
	c := condition.Get(on, clusterv1.ReadyV1Beta1Condition)
	if c == nil {
		return ""
	}
	return strings.TrimSpace(strings.Join([]string{string(c.Status), c.Reason, c.Message}, " "))
}

func (w *world) read(name string) *ipamv1.IPAddressClaim {
	w.t.Helper()
	c := &ipamv1.IPAddressClaim{}
	testenv.Must(w.t, w.Get(w.t.Context(), types.NamespacedName{Namespace: "default", Name: name}, c))
	return c
}

// TestAllocation is the life of a claim, with all requests.
func TestAllocation(t *testing.T) {
	w := newWorld(t, 3)
	p := w.processes[0]
	w.settle(p)
	w.Writes, w.LiveReads = nil, nil
	c := w.claim("a")
	w.settle(p)
	if diff := cmp.Diff([]string{"patch IPAddressClaim a", "patch InClusterIPPool/status p", "create IPAddress a", "patch IPAddressClaim/status a"}, w.Writes); diff != "" {
		t.Errorf("writes (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"list IPAddress"}, w.LiveReads); diff != "" {
		t.Errorf("live reads of the first allocation of a process (-want +got):\n%s", diff)
	}
	group := "ipam.cluster.x-k8s.io"
	yes := true
	want := []ipamv1.IPAddress{{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "default", Name: "a", Finalizers: []string{"ipam.cluster.x-k8s.io/ProtectAddress"},
			OwnerReferences: []metav1.OwnerReference{
				{APIVersion: group + "/v1beta2", Kind: "IPAddressClaim", Name: "a", UID: c.UID, Controller: &yes, BlockOwnerDeletion: &yes},
				{APIVersion: group + "/v1alpha2", Kind: "InClusterIPPool", Name: "p", UID: "inclusterippool-p"},
			},
		},
		Spec: ipamv1.IPAddressSpec{
			ClaimRef: ipamv1.IPAddressClaimReference{Name: "a"}, PoolRef: ipamv1.IPPoolReference{APIGroup: group, Kind: "InClusterIPPool", Name: "p"},
			Address: "10.0.0.1", Prefix: ptr.To[int32](8), Gateway: "10.0.255.254",
		},
	}}
	if diff := cmp.Diff(want, w.addresses(), cmpopts.IgnoreFields(metav1.ObjectMeta{}, "UID", "ResourceVersion")); diff != "" {
		t.Errorf("IPAddress (-want +got):\n%s", diff)
	}
	claimed := w.read("a")
	if claimed.Status.AddressRef.Name != "a" || state(claimed) != "True" {
		t.Errorf("status = %+v", claimed.Status)
	}
	if diff := cmp.Diff(inclusterv1.InClusterIPPoolStatusIPAddresses{Total: 3, Free: 2, Used: 1}, *w.pool().Status.Addresses); diff != "" {
		t.Errorf("numbers (-want +got):\n%s", diff)
	}

	w.Writes, w.LiveReads = nil, nil
	w.claim("b")
	w.settle(p)
	if len(w.LiveReads) > 0 {
		t.Errorf("live reads of later allocations: %v", w.LiveReads)
	}
	w.Writes = nil
	w.release("a")
	w.settle(p)
	if diff := cmp.Diff([]string{"patch IPAddress a", "delete IPAddress a", "patch IPAddressClaim a", "patch InClusterIPPool/status p"}, w.Writes); diff != "" {
		t.Errorf("writes of a release (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(inclusterv1.InClusterIPPoolStatusIPAddresses{Total: 3, Free: 2, Used: 1}, *w.pool().Status.Addresses); diff != "" {
		t.Errorf("numbers (-want +got):\n%s", diff)
	}
	w.claim("c")
	w.settle(p)
	if diff := cmp.Diff([]string{"b=10.0.0.2", "c=10.0.0.1"}, w.allocated()); diff != "" {
		t.Errorf("the lowest free address comes first (-want +got):\n%s", diff)
	}
}

// TestExhaustion checks that claims wait for a release, first come first served.
func TestExhaustion(t *testing.T) {
	w := newWorld(t, 2)
	p := w.processes[0]
	for _, name := range []string{"d", "c", "b", "a"} { // In the order of their creation.
		w.claim(name)
	}
	w.settle(p)
	if diff := cmp.Diff([]string{"c=10.0.0.2", "d=10.0.0.1"}, w.allocated()); diff != "" {
		t.Errorf("first come first served (-want +got):\n%s", diff)
	}
	if got, want := state(w.read("b")), "False PoolExhausted Waiting for a free address of InClusterIPPool p"; got != want {
		t.Errorf("condition = %s, want %s", got, want)
	}
	w.release("d")
	w.settle(p)
	if diff := cmp.Diff([]string{"b=10.0.0.1", "c=10.0.0.2"}, w.allocated()); diff != "" {
		t.Errorf("after a release (-want +got):\n%s", diff)
	}
	grown := w.pool()
	grown.Spec.Addresses = append(grown.Spec.Addresses, "10.0.0.9")
	testenv.Must(t, w.Update(t.Context(), grown))
	w.settle(p)
	if diff := cmp.Diff([]string{"a=10.0.0.9", "b=10.0.0.1", "c=10.0.0.2"}, w.allocated()); diff != "" {
		t.Errorf("after the pool has grown (-want +got):\n%s", diff)
	}
}

// TestOutOfRange checks that addresses that left the range stay allocated, and are not allocated again.
func TestOutOfRange(t *testing.T) {
	w := newWorld(t, 2)
	p := w.processes[0]
	w.claim("a")
	w.claim("b")
	w.settle(p)
	changed := w.pool()
	changed.Spec.Addresses = []string{"10.0.0.2-10.0.0.4"}
	testenv.Must(t, w.Update(t.Context(), changed))
	w.settle(p)
	if diff := cmp.Diff(inclusterv1.InClusterIPPoolStatusIPAddresses{Total: 3, Free: 2, Used: 2, OutOfRange: 1}, *w.pool().Status.Addresses); diff != "" {
		t.Errorf("numbers (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"a=10.0.0.1", "b=10.0.0.2"}, w.allocated()); diff != "" {
		t.Errorf("allocated (-want +got):\n%s", diff)
	}
	w.release("a")
	w.claim("c")
	w.settle(p)
	if diff := cmp.Diff([]string{"b=10.0.0.2", "c=10.0.0.3"}, w.allocated()); diff != "" {
		t.Errorf("allocated (-want +got):\n%s", diff)
	}
}

// TestDeletionOfAPool checks that a pool is deleted only after its addresses are released, and allocates none meanwhile.
func TestDeletionOfAPool(t *testing.T) {
	w := newWorld(t, 3)
	p := w.processes[0]
	w.claim("a")
	w.settle(p)
	testenv.Must(t, w.Delete(t.Context(), w.pool()))
	w.claim("b")
	w.settle(p)
	if got, want := state(w.pool()), "False PoolInUse Waiting for the IPAddresses of the pool to be released (1 left): delete their IPAddressClaims"; got != want {
		t.Errorf("condition of the pool = %s, want %s", got, want)
	}
	if got, want := state(w.read("b")), "False PoolNotReady Waiting for InClusterIPPool p to be recreated, because it is being deleted"; got != want {
		t.Errorf("condition of a new claim = %s, want %s", got, want)
	}
	w.release("a")
	w.settle(p)
	if err := w.Get(t.Context(), types.NamespacedName{Namespace: "default", Name: "p"}, &inclusterv1.InClusterIPPool{}); !apierrors.IsNotFound(err) {
		t.Errorf("the pool still exists: %v", err)
	}
	if got, want := state(w.read("b")), "False PoolNotReady Waiting for InClusterIPPool p to exist"; got != want {
		t.Errorf("condition of the claim = %s, want %s", got, want)
	}
	w.release("b")
	w.settle(p)
	if left := len(w.claims()) + len(w.addresses()); left > 0 {
		t.Errorf("%d claims and addresses are left", left)
	}
}

// TestRemovedByForce checks that a claim gets an address again if a user removes its IPAddress and the finalizer, and that an IPAddress
// is deleted if a user removes its claim and the finalizer.
func TestRemovedByForce(t *testing.T) {
	w := newWorld(t, 3)
	p := w.processes[0]
	for _, name := range []string{"a", "b"} {
		w.claim(name)
	}
	w.settle(p)
	for _, a := range w.addresses() {
		if a.Name == "a" {
			a.Finalizers = nil
			testenv.Must(t, w.Update(t.Context(), &a), w.Delete(t.Context(), &a))
		}
	}
	removed := w.read("b")
	removed.Finalizers = nil
	testenv.Must(t, w.Update(t.Context(), removed), w.Delete(t.Context(), removed))
	w.collect()
	w.settle(p)
	if diff := cmp.Diff([]string{"a=10.0.0.1"}, w.allocated()); diff != "" {
		t.Errorf("allocated (-want +got):\n%s", diff)
	}
	if left := w.addresses(); len(left) != 1 {
		t.Errorf("IPAddresses = %v", left)
	}
	if diff := cmp.Diff(inclusterv1.InClusterIPPoolStatusIPAddresses{Total: 3, Free: 2, Used: 1}, *w.pool().Status.Addresses); diff != "" {
		t.Errorf("numbers (-want +got):\n%s", diff)
	}
}

// TestSpecialClaims checks claims that get no address, and what they get once the reason is gone.
func TestSpecialClaims(t *testing.T) {
	foreign := func(c *ipamv1.IPAddressClaim) {
		c.Spec.PoolRef.APIGroup = "ipam.example.org"
	}
	for _, tc := range []struct {
		reason  string
		change  func(*ipamv1.IPAddressClaim)
		pool    func(*inclusterv1.InClusterIPPool)
		address *ipamv1.IPAddress
		want    string
		// finalized is whether the claim gets the finalizer.
		finalized bool
	}{
		{reason: "a pool of another provider", change: foreign},
		{reason: "a kind of another provider", change: func(c *ipamv1.IPAddressClaim) { c.Spec.PoolRef.Kind = "Other" }},
		{reason: "a paused claim", change: func(c *ipamv1.IPAddressClaim) { c.Annotations = map[string]string{"cluster.x-k8s.io/paused": ""} }},
		{reason: "a claim of a paused Cluster", change: func(c *ipamv1.IPAddressClaim) {
			c.Labels = map[string]string{"cluster.x-k8s.io/cluster-name": "paused"}
		}},
		{reason: "a claim that names a paused Cluster", change: func(c *ipamv1.IPAddressClaim) { c.Spec.ClusterName = "paused" }},
		{
			reason: "a missing pool", change: func(c *ipamv1.IPAddressClaim) { c.Spec.PoolRef.Name = "q" },
			want: "False PoolNotReady Waiting for InClusterIPPool q to exist",
		},
		{
			reason: "a paused pool", pool: func(p *inclusterv1.InClusterIPPool) { p.Annotations = map[string]string{"cluster.x-k8s.io/paused": ""} },
			want: "False PoolNotReady Waiting for InClusterIPPool p to be resumed, because it is paused",
		},
		{
			reason: "a pool with an invalid spec", pool: func(p *inclusterv1.InClusterIPPool) { p.Spec.Addresses = []string{"none"} },
			want: "False PoolNotReady Waiting for the spec of InClusterIPPool p to be valid",
		},
		{
			reason: "an IPAddress of a user has its name", finalized: true,
			address: &ipamv1.IPAddress{
				ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "a"},
				Spec:       ipamv1.IPAddressSpec{PoolRef: reference("InClusterIPPool", "p"), Address: "10.0.0.1"},
			},
			want: "False AllocationFailed IPAddress a already exists, and was not created for this claim: delete it",
		},
	} {
		t.Run(tc.reason, func(t *testing.T) {
			var options []func(*inclusterv1.InClusterIPPool)
			if tc.pool != nil {
				options = append(options, tc.pool)
			}
			w := newWorld(t, 3, options...)
			paused := &clusterv1.Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "paused"}, Spec: clusterv1.ClusterSpec{Paused: ptr.To(true)}}
			testenv.Must(t, w.Create(t.Context(), paused))
			if tc.address != nil {
				testenv.Must(t, w.Create(t.Context(), tc.address))
			}
			w.settle(w.processes[0])
			c := w.claim("a")
			if tc.change != nil {
				tc.change(c)
				testenv.Must(t, w.Update(t.Context(), c))
			}
			w.settle(w.processes[0])
			claimed := w.read("a")
			if got := state(claimed); got != tc.want {
				t.Errorf("condition = %q, want %q", got, tc.want)
			}
			if got := len(claimed.Finalizers) > 0; got != tc.finalized || claimed.Status.AddressRef.Name != "" {
				t.Errorf("finalizers = %v, address = %q", claimed.Finalizers, claimed.Status.AddressRef.Name)
			}
			w.release("a")
			w.settle(w.processes[0])
			if len(w.claims()) > 0 && tc.reason != "a paused claim" {
				t.Errorf("the claim is not deleted: %v", w.claims())
			}
		})
	}
}

// TestReleasesAreCounted checks that the numbers after releases are written once a second, and immediately if the pool was exhausted.
func TestReleasesAreCounted(t *testing.T) {
	released := func(w *world, names ...string) []string {
		w.Writes = nil
		for _, name := range names {
			w.release(name)
			_ = w.processes[0].reconcileClaim(t.Context(), name)
		}
		_ = w.processes[0].reconcilePool(t.Context())
		return slices.DeleteFunc(w.Writes, func(s string) bool { return s != "patch InClusterIPPool/status p" })
	}
	w := newWorld(t, 9)
	for _, name := range []string{"a", "b", "c"} {
		w.claim(name)
	}
	w.settle(w.processes[0])
	for _, tc := range []struct {
		reason string
		names  []string
		after  time.Duration
		want   int
	}{
		{reason: "the first release", names: []string{"a"}},
		{reason: "another one half a second later", names: []string{"b"}, after: 500 * time.Millisecond},
		{reason: "a second after the first", after: 500 * time.Millisecond, want: 1},
		{reason: "the next release begins another second", names: []string{"c"}, after: 10 * time.Second},
	} {
		w.Clock.Step(tc.after)
		if got := released(w, tc.names...); len(got) != tc.want {
			t.Errorf("%s: %d writes, want %d", tc.reason, len(got), tc.want)
		}
	}
	w.settle(w.processes[0])
	w.checkAll("in the end")

	w = newWorld(t, 1)
	w.claim("a")
	w.settle(w.processes[0])
	if got := released(w, "a"); len(got) != 1 {
		t.Errorf("after the release of the last address: %d writes, want 1", len(got))
	}
}

// TestBusyPool checks the condition of a claim whose pool has as many reservations as it may have, and that it gets an address later.
func TestBusyPool(t *testing.T) {
	w := newWorld(t, 3, func(p *inclusterv1.InClusterIPPool) {
		stuck := inclusterv1.Reservation{Address: "10.0.0.1", Namespace: "other", Name: "stuck", UID: "stuck"}
		p.Status.Reservations = &inclusterv1.Reservations{Sequence: 1, Writer: "other", Items: slices.Repeat([]inclusterv1.Reservation{stuck}, ledger.Total)}
	})
	w.claim("a")
	for range 2 {
		_ = w.processes[0].reconcileClaim(t.Context(), "a")
		w.Clock.Step(time.Minute) // After the delay of the first status.
	}
	if got, want := state(w.read("a")), "False PoolBusy Waiting for the IPAddresses of 2048 other IPAddressClaims of InClusterIPPool p to be created"; got != want {
		t.Errorf("condition = %q, want %q", got, want)
	}
	w.settle(w.processes[0]) // The other claims no longer exist.
	if diff := cmp.Diff([]string{"a=10.0.0.1"}, w.allocated()); diff != "" {
		t.Errorf("allocated (-want +got):\n%s", diff)
	}
}
