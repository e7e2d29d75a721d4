package incluster

import (
	"context"
	"fmt"
	"net/netip"
	"slices"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	inclusterv1 "sigs.k8s.io/cluster-api/api/ipam/incluster/v1alpha2"
	ipamv1 "sigs.k8s.io/cluster-api/api/ipam/v1beta2"
	"sigs.k8s.io/cluster-api/providers/ipam-in-cluster/internal/address"
	"sigs.k8s.io/cluster-api/providers/ipam-in-cluster/internal/claim"
	"sigs.k8s.io/cluster-api/providers/ipam-in-cluster/internal/pool"
	"sigs.k8s.io/cluster-api/providers/ipam-in-cluster/internal/poolref"
	"sigs.k8s.io/cluster-api/sdk/testenv"
	"sigs.k8s.io/cluster-api/sdk/testenv/fakeapi"
	"sigs.k8s.io/cluster-api/sdk/testenv/object"
)

// world is an API server with pool p of addresses 10.0.0.1 and following, and processes of the provider.
type world struct {
	*fakeapi.Server
	t         *testing.T
	processes []*process
	// created counts claims, for their UIDs.
	created int
}

// process is one replica of the manager.
type process struct {
	cache        *fakeapi.View
	pool, claims reconcile.Reconciler
}

func newWorld(t *testing.T, size int, options ...func(*inclusterv1.InClusterIPPool)) *world {
	t.Helper()
	p := &inclusterv1.InClusterIPPool{
		ObjectMeta: object.Builder{}.Meta(inclusterv1.InClusterIPPoolKind, "p"),
		Spec:       inclusterv1.InClusterIPPoolSpec{Addresses: []string{fmt.Sprintf("10.0.0.1-%s", nth(size))}, Prefix: 8, Gateway: "10.0.255.254"},
	}
	p.Labels = nil
	for _, change := range options {
		change(p)
	}
	s := fakeapi.New(t, fakeapi.Options{
		Kinds:   []func(*runtime.Scheme) error{ipamv1.AddToScheme, inclusterv1.AddToScheme},
		Objects: []client.Object{p}, Indexes: poolref.Indexes(),
	})
	w := &world{Server: s, t: t}
	w.start()
	return w
}

// nth returns the n-th address of the pool.
func nth(n int) netip.Addr {
	a := netip.MustParseAddr("10.0.0.0")
	for range n {
		a = a.Next()
	}
	return a
}

// start starts a process with a cache of its own.
func (w *world) start() *process {
	w.Cache = w.NewCache()
	clients := w.ForController()
	controller := pool.NewController(clients, inclusterv1.InClusterIPPoolKind, fmt.Sprintf("process-%d", len(w.processes)),
		func() *inclusterv1.InClusterIPPool { return &inclusterv1.InClusterIPPool{} })
	p := &process{
		cache: w.Cache, pool: controller.Declared().Runner(clients), claims: (&claim.Controller{Clients: clients}).Declared().Runner(clients),
	}
	w.processes = append(w.processes, p)
	return p
}

// claim creates a claim.
func (w *world) claim(name string) *ipamv1.IPAddressClaim {
	w.t.Helper()
	w.created++
	w.Clock.Step(time.Second)
	c := &ipamv1.IPAddressClaim{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "default", Name: name, UID: types.UID(fmt.Sprintf("claim-%d", w.created)),
			CreationTimestamp: metav1.NewTime(w.Clock.Now()),
		},
		Spec: ipamv1.IPAddressClaimSpec{PoolRef: reference(inclusterv1.InClusterIPPoolKind, "p")},
	}
	testenv.Must(w.t, w.Create(w.t.Context(), c))
	return c
}

func reference(kind, name string) ipamv1.IPPoolReference {
	return ipamv1.IPPoolReference{APIGroup: "ipam.cluster.x-k8s.io", Kind: kind, Name: name}
}

// release deletes a claim, as its consumer does.
func (w *world) release(name string) {
	w.t.Helper()
	c := &ipamv1.IPAddressClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name}}
	testenv.Must(w.t, client.IgnoreNotFound(w.Delete(w.t.Context(), c)))
}

// reconcilePool and reconcileClaim run one reconcile of a process; errors are retried in reality.
func (p *process) reconcilePool(ctx context.Context) error {
	_, err := p.pool.Reconcile(ctx, reconcile.Request{NamespacedName: types.NamespacedName{Namespace: "default", Name: "p"}})
	return err
}

func (p *process) reconcileClaim(ctx context.Context, name string) error {
	_, err := p.claims.Reconcile(ctx, reconcile.Request{NamespacedName: types.NamespacedName{Namespace: "default", Name: name}})
	return err
}

// settle runs all controllers of a process until nothing changes, and fails if that takes too long.
func (w *world) settle(p *process) {
	w.t.Helper()
	if !w.run(p, 40) {
		w.t.Fatalf("the controllers do not settle: %v", w.Writes[max(0, len(w.Writes)-20):])
	}
}

// run runs all controllers of a process until nothing changes, or for a number of rounds. It reports whether nothing changes.
func (w *world) run(p *process, rounds int) bool {
	w.t.Helper()
	quiet := 0
	for range rounds {
		before := len(w.Writes)
		// Errors are retried in the next round.
		_ = p.reconcilePool(w.t.Context())
		for _, c := range w.claims() {
			_ = p.reconcileClaim(w.t.Context(), c.Name)
		}
		if quiet++; len(w.Writes) > before {
			quiet = 0
		}
		if quiet == 2 {
			return true
		}
		w.Clock.Step(2 * time.Minute) // After every wait.
	}
	return false
}

// collect does what the garbage collector does for IPAddresses of which one owner exists: it removes references to claims that do not.
func (w *world) collect() {
	w.t.Helper()
	exists := map[types.UID]bool{}
	for _, c := range w.claims() {
		exists[c.UID] = true
	}
	for _, a := range w.addresses() {
		if uid := address.ClaimOf(&a); uid != "" && !exists[uid] {
			a.OwnerReferences = slices.DeleteFunc(a.OwnerReferences, func(r metav1.OwnerReference) bool { return r.UID == uid })
			testenv.Must(w.t, w.Update(w.t.Context(), &a))
		}
	}
}

func (w *world) claims() []ipamv1.IPAddressClaim {
	w.t.Helper()
	list := &ipamv1.IPAddressClaimList{}
	testenv.Must(w.t, w.List(w.t.Context(), list))
	return list.Items
}

func (w *world) addresses() []ipamv1.IPAddress {
	w.t.Helper()
	list := &ipamv1.IPAddressList{}
	testenv.Must(w.t, w.List(w.t.Context(), list))
	return list.Items
}

func (w *world) pool() *inclusterv1.InClusterIPPool {
	w.t.Helper()
	p := &inclusterv1.InClusterIPPool{}
	testenv.Must(w.t, w.Get(w.t.Context(), types.NamespacedName{Namespace: "default", Name: "p"}, p))
	return p
}

// allocated returns the addresses of claims that reference them, such as "a=10.0.0.1", sorted.
func (w *world) allocated() []string {
	w.t.Helper()
	byName := map[string]ipamv1.IPAddress{}
	for _, a := range w.addresses() {
		byName[a.Name] = a
	}
	var out []string
	for _, c := range w.claims() {
		if a, ok := byName[c.Status.AddressRef.Name]; ok {
			out = append(out, c.Name+"="+a.Spec.Address)
		}
	}
	slices.Sort(out)
	return out
}

// duplicates returns the addresses that two existing claims have.
func (w *world) duplicates() []string {
	w.t.Helper()
	exists := map[types.UID]bool{}
	for _, c := range w.claims() {
		exists[c.UID] = true
	}
	holder := map[string]string{}
	var out []string
	for _, a := range w.addresses() {
		if !exists[address.ClaimOf(&a)] {
			continue
		}
		if other, taken := holder[a.Spec.Address]; taken {
			out = append(out, fmt.Sprintf("%s: %s and %s", a.Spec.Address, other, a.Name))
		}
		holder[a.Spec.Address] = a.Name
	}
	return out
}
