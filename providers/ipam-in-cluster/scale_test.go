package incluster

import (
	"fmt"
	"sync"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	inclusterv1 "sigs.k8s.io/cluster-api/api/ipam/incluster/v1alpha2"
	ipamv1 "sigs.k8s.io/cluster-api/api/ipam/v1beta2"
	"sigs.k8s.io/cluster-api/sdk/manager"
	"sigs.k8s.io/cluster-api/sdk/testenv"
)

var server testenv.Server

func TestMain(m *testing.M) { server.Main(m) }

// TestManyClaims creates many claims at once for a pool of ten thousand addresses, and deletes them.
func TestManyClaims(t *testing.T) {
	count := 100
	if testenv.Soaks() {
		count = 1000
	}
	e := server.Start(t, "providers/core/config/crd", "providers/ipam-in-cluster/config/crd")
	s := testenv.Scheme(t, ipamv1.AddToScheme, inclusterv1.AddToScheme)
	namespace, c := e.Namespace(t), e.NewClient(t, s)
	writes := e.Run(t, s, namespace, func(mgr ctrl.Manager) error {
		return controllers(t.Context(), mgr, manager.Environment{}, &flags{pools: 10, claims: 10})
	})
	pool := &inclusterv1.InClusterIPPool{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "p"},
		Spec:       inclusterv1.InClusterIPPoolSpec{Addresses: []string{"10.0.0.0-10.0.39.15"}, Prefix: 8, AllocateReservedIPAddresses: true},
	}
	testenv.Must(t, c.Create(t.Context(), pool))
	begun := time.Now()
	createClaims(t, c, namespace, count)
	created := time.Since(begun)
	claims := &ipamv1.IPAddressClaimList{}
	testenv.Eventually(t, "every claim has an address", func() error {
		testenv.Must(t, c.List(t.Context(), claims, client.InNamespace(namespace)))
		for _, claim := range claims.Items {
			if claim.Status.AddressRef.Name == "" {
				return fmt.Errorf("claim %s has none", claim.Name)
			}
		}
		return nil
	})
	t.Logf("%d claims were created in %s, and had their addresses after %s", count, created, time.Since(begun))
	checkDistinct(t, c, namespace, count)
	wrote := writes.Take()
	t.Logf("writes: %v", wrote)
	for what, limit := range map[string]int{
		"patch ipaddressclaims": count, "create ipaddresses": count, "patch ipaddressclaims/status": count + count/10, "patch inclusterippools/status": count / 2,
	} {
		if wrote[what] > limit {
			t.Errorf("%d times %s, want at most %d", wrote[what], what, limit)
		}
	}

	begun = time.Now()
	testenv.Must(t, c.DeleteAllOf(t.Context(), &ipamv1.IPAddressClaim{}, client.InNamespace(namespace)))
	testenv.Eventually(t, "all addresses are free", func() error {
		testenv.Must(t, c.Get(t.Context(), client.ObjectKeyFromObject(pool), pool))
		if pool.Status.Addresses.Used > 0 {
			return fmt.Errorf("numbers = %+v", pool.Status.Addresses)
		}
		return nil
	})
	took, wrote := time.Since(begun), writes.Take()
	t.Logf("all were released after %s with these writes: %v", took, wrote)
	if n, limit := wrote["patch inclusterippools/status"], 5+2*int(took.Seconds()); n > limit {
		t.Errorf("%d writes of the pool for releases, want at most %d", n, limit)
	}
	testenv.Must(t, c.Delete(t.Context(), pool))
}

// createClaims creates claims with some concurrency.
func createClaims(t *testing.T, c client.Client, namespace string, count int) {
	t.Helper()
	numbers := make(chan int, count)
	for i := range count {
		numbers <- i
	}
	close(numbers)
	var all sync.WaitGroup
	for range 10 {
		all.Go(func() {
			for i := range numbers {
				claim := &ipamv1.IPAddressClaim{
					ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: fmt.Sprintf("claim-%d", i)},
					Spec:       ipamv1.IPAddressClaimSpec{PoolRef: reference(inclusterv1.InClusterIPPoolKind, "p")},
				}
				if err := c.Create(t.Context(), claim); err != nil {
					t.Error(err)
				}
			}
		})
	}
	all.Wait()
}

// checkDistinct checks that there are so many IPAddresses, the lowest of the pool.
func checkDistinct(t *testing.T, c client.Client, namespace string, count int) {
	t.Helper()
	addresses := &ipamv1.IPAddressList{}
	testenv.Must(t, c.List(t.Context(), addresses, client.InNamespace(namespace)))
	got := map[string]bool{}
	for _, a := range addresses.Items {
		got[a.Spec.Address] = true
	}
	if len(got) != count || len(addresses.Items) != count {
		t.Fatalf("%d IPAddresses with %d addresses, want %d", len(addresses.Items), len(got), count)
	}
	for i := range count {
		if !got[nth(i).String()] {
			t.Errorf("%s is not allocated", nth(i))
		}
	}
}
