package incluster

import (
	"context"
	"fmt"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	inclusterv1 "sigs.k8s.io/cluster-api/api/ipam/incluster/v1alpha2"
	ipamv1 "sigs.k8s.io/cluster-api/api/ipam/v1beta2"
	"sigs.k8s.io/cluster-api/sdk/manager"
	"sigs.k8s.io/cluster-api/sdk/testenv"
)

// TestTwoLeaders runs two managers on one API server, both as leaders. Claims are created and deleted while they work, for a pool that
// is too small. No address is ever in two IPAddresses, and in the end all addresses are in use.
func TestTwoLeaders(t *testing.T) {
	claims, size := 60, 30
	if testenv.Soaks() {
		claims, size = 120, 60
	}
	e := server.Start(t, "providers/core/config/crd", "providers/ipam-in-cluster/config/crd")
	s := testenv.Scheme(t, ipamv1.AddToScheme, inclusterv1.AddToScheme)
	namespace, c := e.Namespace(t), e.NewClient(t, s)
	for range 2 {
		e.Run(t, s, namespace, func(mgr ctrl.Manager) error {
			return controllers(t.Context(), mgr, manager.Environment{}, &flags{pools: 10, claims: 10})
		})
	}
	pool := &inclusterv1.InClusterIPPool{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "p"},
		Spec:       inclusterv1.InClusterIPPoolSpec{Addresses: []string{fmt.Sprintf("10.0.0.0-%s", nth(size-1))}, Prefix: 8, AllocateReservedIPAddresses: true},
	}
	testenv.Must(t, c.Create(t.Context(), pool))
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	events, err := c.Watch(ctx, &ipamv1.IPAddressList{}, client.InNamespace(namespace))
	testenv.Must(t, err)
	duplicates := make(chan []string, 1)
	go func() { duplicates <- duplicatesIn(events.ResultChan()) }()

	createClaims(t, c, namespace, claims)
	for i := range claims / 3 { // Some have an address, others wait.
		gone := &ipamv1.IPAddressClaim{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: fmt.Sprintf("claim-%d", 3*i)}}
		testenv.Must(t, c.Delete(t.Context(), gone))
	}
	testenv.Eventually(t, "all addresses are in use", func() error {
		list := &ipamv1.IPAddressClaimList{}
		testenv.Must(t, c.List(t.Context(), list, client.InNamespace(namespace)))
		with := 0
		for _, claim := range list.Items {
			if claim.Status.AddressRef.Name != "" {
				with++
			}
		}
		testenv.Must(t, c.Get(t.Context(), client.ObjectKeyFromObject(pool), pool))
		if got := pool.Status.Addresses; len(list.Items) != claims-claims/3 || with != size || got == nil || got.Used != int64(size) {
			return fmt.Errorf("%d of %d claims have an address, numbers %+v%s", with, len(list.Items), got, difference(t, c, pool, list.Items))
		}
		return nil
	})
	checkDistinct(t, c, namespace, size)
	stop()
	if d := <-duplicates; len(d) > 0 {
		t.Error(d)
	}
}

// difference returns the IPAddresses and reservations of claims that have no address.
func difference(t *testing.T, c client.Client, pool *inclusterv1.InClusterIPPool, claims []ipamv1.IPAddressClaim) string {
	t.Helper()
	with, out := map[string]bool{}, ""
	for _, claim := range claims {
		with[claim.Name] = claim.Status.AddressRef.Name != ""
	}
	addresses := &ipamv1.IPAddressList{}
	testenv.Must(t, c.List(t.Context(), addresses, client.InNamespace(pool.Namespace)))
	for _, a := range addresses.Items {
		if !with[a.Name] {
			out += fmt.Sprintf("\nIPAddress %s %s, deleted at %v, finalizers %v", a.Name, a.Spec.Address, a.DeletionTimestamp, a.Finalizers)
		}
	}
	if r := pool.Status.Reservations; r != nil {
		for _, i := range r.Items {
			if !with[i.Name] {
				out += fmt.Sprintf("\nreservation of %+v", i)
			}
		}
	}
	return out
}

// duplicatesIn returns the addresses that were in two IPAddresses at a time, according to a watch.
func duplicatesIn(events <-chan watch.Event) []string {
	holder := map[string]string{}
	var out []string
	for e := range events {
		a, ok := e.Object.(*ipamv1.IPAddress)
		if !ok {
			continue
		}
		if e.Type == watch.Deleted {
			delete(holder, a.Spec.Address)
			continue
		}
		if other, taken := holder[a.Spec.Address]; taken && other != a.Name {
			out = append(out, fmt.Sprintf("%s: %s and %s", a.Spec.Address, other, a.Name))
		}
		holder[a.Spec.Address] = a.Name
	}
	return out
}
