package orphan

import (
	"testing"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	inclusterv1 "sigs.k8s.io/cluster-api/api/ipam/incluster/v1alpha2"
	ipamv1 "sigs.k8s.io/cluster-api/api/ipam/v1beta2"
	"sigs.k8s.io/cluster-api/providers/ipam-in-cluster/internal/address"
	"sigs.k8s.io/cluster-api/providers/ipam-in-cluster/internal/poolref"
	"sigs.k8s.io/cluster-api/sdk/testenv"
	"sigs.k8s.io/cluster-api/sdk/testenv/fakeapi"
	"sigs.k8s.io/cluster-api/sdk/testenv/object"
	"sigs.k8s.io/cluster-api/sdk/watch"
)

func TestRelease(t *testing.T) {
	pool := &inclusterv1.InClusterIPPool{ObjectMeta: object.Builder{}.Meta(inclusterv1.InClusterIPPoolKind, "p")}
	key := poolref.Key{Kind: inclusterv1.InClusterIPPoolKind, NamespacedName: client.ObjectKeyFromObject(pool)}
	claim := func(uid types.UID) *ipamv1.IPAddressClaim {
		c := &ipamv1.IPAddressClaim{ObjectMeta: object.Builder{}.Meta(ipamv1.IPAddressClaimKind, "a"), Spec: ipamv1.IPAddressClaimSpec{PoolRef: key.Reference()}}
		c.UID = uid
		return c
	}
	for _, tc := range []struct {
		reason string
		// claim is the one that exists; that of the IPAddress has UID c.
		claim  *ipamv1.IPAddressClaim
		hidden bool // from the cache
		// filter is --watch-filter.
		filter watch.Filter
		change func(*ipamv1.IPAddress)
		kept   bool
	}{
		{reason: "the claim does not exist"},
		{reason: "another claim has its name", claim: claim("d")},
		{reason: "the claim exists", claim: claim("c"), kept: true},
		{reason: "the claim exists, and the cache does not have it", claim: claim("c"), hidden: true, kept: true},
		{reason: "it is not being deleted", change: func(a *ipamv1.IPAddress) { a.DeletionTimestamp = nil }, kept: true},
		{reason: "it belongs to another provider", change: func(a *ipamv1.IPAddress) { a.Spec.PoolRef.Kind = "Other" }, kept: true},
		{reason: "another controller has a finalizer, too", change: func(a *ipamv1.IPAddress) { a.Finalizers = append(a.Finalizers, "example.com/other") }, kept: true},
		{reason: "it has the label of --watch-filter, which is that of its claim", filter: "a"},
		{reason: "another manager reconciles it", filter: "b", kept: true},
	} {
		t.Run(tc.reason, func(t *testing.T) {
			of := claim("c")
			of.Labels = map[string]string{clusterv1.WatchLabel: "a"}
			a := address.New(of, key, pool, "10.0.0.1")
			a.UID = "a"
			object.Deleting(a)
			if tc.change != nil {
				tc.change(a)
			}
			objects := []client.Object{a}
			if tc.claim != nil {
				objects = append(objects, tc.claim)
			}
			s := fakeapi.New(t, fakeapi.Options{Kinds: []func(*runtime.Scheme) error{ipamv1.AddToScheme, inclusterv1.AddToScheme}, Objects: objects})
			if tc.hidden {
				s.Cache.Hide(tc.claim)
			}
			c := &Controller{s.ForController()}
			c.Filter = tc.filter
			_, err := c.declared().Runner(c.Clients).Reconcile(t.Context(), ctrl.Request{NamespacedName: client.ObjectKeyFromObject(a)})
			testenv.Must(t, err)
			if err := s.Get(t.Context(), client.ObjectKeyFromObject(a), a); (err == nil) != tc.kept {
				t.Errorf("kept = %t, want %t: %v", err == nil, tc.kept, err)
			}
		})
	}
}

func TestStepsDocumented(t *testing.T) {
	testenv.StepsDocumented(t, (&Controller{}).declared().Names())
}
