// Package ledger decides which addresses of a pool claims get. It is pure: it neither reads nor writes objects.
package ledger

import (
	"cmp"
	"net/netip"
	"slices"

	"k8s.io/apimachinery/pkg/types"

	inclusterv1 "sigs.k8s.io/cluster-api/api/ipam/incluster/v1alpha2"
	ipamv1 "sigs.k8s.io/cluster-api/api/ipam/v1beta2"
	"sigs.k8s.io/cluster-api/providers/ipam-in-cluster/internal/address"
	"sigs.k8s.io/cluster-api/providers/ipam-in-cluster/internal/space"
)

const (
	// Limit is the number of reservations of one namespace at a time, because a namespace may not allow IPAddresses, by a quota for
	// example, so that its reservations stay: it must not block the others.
	Limit = 256
	// Total is the number of reservations of a pool at a time. With the longest names they are 0.9 MiB, and API servers accept 1.5.
	Total = 2048
)

// Ledger is what is known of the addresses of a pool.
type Ledger struct {
	// taken are the addresses that are allocated or reserved.
	taken map[netip.Addr]bool
	// named are the names of IPAddresses, and held the claims that they were created for.
	named map[types.NamespacedName]bool
	held  map[types.UID]bool
	// open are the reservations, and reserved the claims that have one.
	open     []inclusterv1.Reservation
	reserved map[types.UID]bool
	// count is the number of reservations by namespace.
	count map[string]int
}

// New returns the ledger of a pool with addresses.
func New(addresses []ipamv1.IPAddress) *Ledger {
	l := &Ledger{
		taken: map[netip.Addr]bool{}, named: map[types.NamespacedName]bool{}, held: map[types.UID]bool{},
		reserved: map[types.UID]bool{}, count: map[string]int{},
	}
	l.Add(addresses)
	return l
}

// Add adds addresses.
func (l *Ledger) Add(addresses []ipamv1.IPAddress) {
	for i := range addresses {
		a := &addresses[i]
		l.named[types.NamespacedName{Namespace: a.Namespace, Name: a.Name}] = true
		if claim := address.ClaimOf(a); claim != "" {
			l.held[claim] = true
		}
		l.take(a.Spec.Address)
	}
}

// Reserve adds a reservation, unless its claim has its IPAddress.
func (l *Ledger) Reserve(r inclusterv1.Reservation) {
	if l.held[r.UID] {
		return
	}
	l.open = append(l.open, r)
	l.reserved[r.UID] = true
	l.count[r.Namespace]++
	l.take(r.Address)
}

// take marks an address as taken. Addresses that other clients wrote may be invalid; no pool has these.
func (l *Ledger) take(text string) {
	if a, err := netip.ParseAddr(text); err == nil {
		l.taken[a] = true
	}
}

// Open returns the reservations.
func (l *Ledger) Open() []inclusterv1.Reservation { return l.open }

// Waiting returns the claims that can get an address and have none, first come first served.
func (l *Ledger) Waiting(claims []ipamv1.IPAddressClaim) []*ipamv1.IPAddressClaim {
	var waiting []*ipamv1.IPAddressClaim
	for i := range claims {
		c := &claims[i]
		switch {
		case !c.DeletionTimestamp.IsZero(), !slices.Contains(c.Finalizers, inclusterv1.ClaimFinalizer), c.Status.AddressRef.Name != "":
		case l.reserved[c.UID], l.held[c.UID], l.named[types.NamespacedName{Namespace: c.Namespace, Name: c.Name}]:
		default:
			waiting = append(waiting, c)
		}
	}
	slices.SortFunc(waiting, func(a, b *ipamv1.IPAddressClaim) int {
		return cmp.Or(a.CreationTimestamp.Compare(b.CreationTimestamp.Time), cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
	})
	return waiting
}

// HasFree reports whether an address is free.
func (l *Ledger) HasFree(s space.Space) bool { return len(l.lowest(s, 1)) > 0 }

func (l *Ledger) lowest(s space.Space, n int) []netip.Addr {
	return s.Lowest(n, func(a netip.Addr) bool { return l.taken[a] })
}

// Assign reserves the lowest free addresses for claims, in their order, and returns how many it has reserved. Of a namespace with many
// claims, it postpones those beyond the limit, until half of the reservations are used, so that one write serves many claims.
func (l *Ledger) Assign(s space.Space, waiting []*ipamv1.IPAddressClaim) int {
	wanted, room := map[string]int{}, map[string]int{}
	for _, c := range waiting {
		wanted[c.Namespace]++
	}
	for namespace, n := range wanted {
		room[namespace] = Limit - l.count[namespace]
		if l.count[namespace] > Limit/2 && n > room[namespace] {
			room[namespace] = 0
		}
	}
	var chosen []*ipamv1.IPAddressClaim
	for _, c := range waiting {
		if room[c.Namespace] > 0 && len(l.open)+len(chosen) < Total {
			room[c.Namespace]--
			chosen = append(chosen, c)
		}
	}
	free := l.lowest(s, len(chosen))
	for i, a := range free {
		c := chosen[i]
		l.Reserve(inclusterv1.Reservation{Address: a.String(), Namespace: c.Namespace, Name: c.Name, UID: c.UID})
	}
	return len(free)
}

// Counts returns the numbers of addresses. Reserved addresses are used.
func (l *Ledger) Counts(s space.Space) inclusterv1.InClusterIPPoolStatusIPAddresses {
	outOfRange := 0
	for a := range l.taken {
		if !s.Contains(a) {
			outOfRange++
		}
	}
	return inclusterv1.InClusterIPPoolStatusIPAddresses{
		Total: s.Size(0), Free: s.Size(len(l.taken) - outOfRange), Used: int64(len(l.taken)), OutOfRange: int64(outOfRange),
	}
}
