package ledger

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation/field"

	inclusterv1 "sigs.k8s.io/cluster-api/api/ipam/incluster/v1alpha2"
	ipamv1 "sigs.k8s.io/cluster-api/api/ipam/v1beta2"
	"sigs.k8s.io/cluster-api/providers/ipam-in-cluster/internal/space"
	"sigs.k8s.io/cluster-api/sdk/ownership"
)

func pool(t *testing.T, addresses ...string) space.Space {
	t.Helper()
	s, errs := space.Parse(&inclusterv1.InClusterIPPoolSpec{Addresses: addresses, Prefix: 16}, field.NewPath("spec"))
	if len(errs) > 0 {
		t.Fatal(errs)
	}
	return s
}

// claim returns a claim that waits; it is as many seconds old as age.
func claim(namespace, name string, age int, change ...func(*ipamv1.IPAddressClaim)) ipamv1.IPAddressClaim {
	c := ipamv1.IPAddressClaim{ObjectMeta: metav1.ObjectMeta{
		Namespace: namespace, Name: name, UID: types.UID(namespace + "/" + name), Finalizers: []string{inclusterv1.ClaimFinalizer},
		CreationTimestamp: metav1.NewTime(time.Unix(int64(1e9-age), 0)),
	}}
	for _, f := range change {
		f(&c)
	}
	return c
}

// held returns the IPAddress of a claim.
func held(c ipamv1.IPAddressClaim, address string) ipamv1.IPAddress {
	owner := ownership.Reference(&c, ipamv1.GroupVersion.WithKind(ipamv1.IPAddressClaimKind), true)
	return ipamv1.IPAddress{
		ObjectMeta: metav1.ObjectMeta{Namespace: c.Namespace, Name: c.Name, OwnerReferences: []metav1.OwnerReference{owner}},
		Spec:       ipamv1.IPAddressSpec{Address: address},
	}
}

func reservation(namespace, name, address string) inclusterv1.Reservation {
	return inclusterv1.Reservation{Address: address, Namespace: namespace, Name: name, UID: types.UID(namespace + "/" + name)}
}

func TestAssign(t *testing.T) {
	deleting := func(c *ipamv1.IPAddressClaim) { c.DeletionTimestamp = &metav1.Time{Time: time.Unix(1e9, 0)} }
	for _, tc := range []struct {
		reason    string
		addresses []ipamv1.IPAddress
		reserved  []inclusterv1.Reservation
		claims    []ipamv1.IPAddressClaim
		want      []inclusterv1.Reservation
		counts    inclusterv1.InClusterIPPoolStatusIPAddresses
	}{
		{
			reason: "the oldest claim gets the lowest address; names break ties",
			claims: []ipamv1.IPAddressClaim{claim("n", "b", 1), claim("n", "a", 1), claim("n", "c", 2)},
			want:   []inclusterv1.Reservation{reservation("n", "c", "10.0.0.1"), reservation("n", "a", "10.0.0.2"), reservation("n", "b", "10.0.0.3")},
			counts: inclusterv1.InClusterIPPoolStatusIPAddresses{Total: 3, Used: 3},
		},
		{
			reason:    "allocated and reserved addresses are not free",
			addresses: []ipamv1.IPAddress{held(claim("n", "x", 0), "10.0.0.1")}, reserved: []inclusterv1.Reservation{reservation("n", "y", "10.0.0.2")},
			claims: []ipamv1.IPAddressClaim{claim("n", "a", 2), claim("n", "b", 1)},
			want:   []inclusterv1.Reservation{reservation("n", "y", "10.0.0.2"), reservation("n", "a", "10.0.0.3")},
			counts: inclusterv1.InClusterIPPoolStatusIPAddresses{Total: 3, Used: 3},
		},
		{
			reason:    "a reservation is dropped when its claim has its IPAddress",
			addresses: []ipamv1.IPAddress{held(claim("n", "x", 0), "10.0.0.1")}, reserved: []inclusterv1.Reservation{reservation("n", "x", "10.0.0.1")},
			counts: inclusterv1.InClusterIPPoolStatusIPAddresses{Total: 3, Used: 1, Free: 2},
		},
		{
			reason: "claims that need or may get none",
			addresses: []ipamv1.IPAddress{
				held(claim("n", "held", 0), "10.0.0.2"),
				{ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: "taken"}, Spec: ipamv1.IPAddressSpec{Address: "10.0.0.3"}},
			},
			claims: []ipamv1.IPAddressClaim{
				claim("n", "held", 1), claim("n", "taken", 1), claim("n", "deleting", 1, deleting),
				claim("n", "new", 1, func(c *ipamv1.IPAddressClaim) { c.Finalizers = nil }),
				claim("n", "done", 1, func(c *ipamv1.IPAddressClaim) { c.Status.AddressRef = ipamv1.IPAddressReference{Name: "done"} }),
			},
			counts: inclusterv1.InClusterIPPoolStatusIPAddresses{Total: 3, Used: 2, Free: 1},
		},
		{
			reason: "addresses out of range, and an invalid one",
			addresses: []ipamv1.IPAddress{
				held(claim("n", "x", 0), "10.0.9.9"), held(claim("n", "y", 0), "10.0.0.1"), held(claim("n", "z", 0), "invalid"),
			},
			counts: inclusterv1.InClusterIPPoolStatusIPAddresses{Total: 3, Used: 2, Free: 2, OutOfRange: 1},
		},
	} {
		t.Run(tc.reason, func(t *testing.T) {
			l, s := New(tc.addresses), pool(t, "10.0.0.1-10.0.0.3")
			for _, r := range tc.reserved {
				l.Reserve(r)
			}
			l.Assign(s, l.Waiting(tc.claims))
			if diff := cmp.Diff(tc.want, l.Open()); diff != "" {
				t.Errorf("reservations (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(tc.counts, l.Counts(s)); diff != "" {
				t.Errorf("numbers (-want +got):\n%s", diff)
			}
		})
	}
}

// TestLimit checks that the reservations of a namespace are bounded, and that the others still get theirs.
func TestLimit(t *testing.T) {
	var claims []ipamv1.IPAddressClaim
	for i := range 1000 {
		claims = append(claims, claim("greedy", fmt.Sprintf("c-%d", i), 10))
	}
	claims = append(claims, claim("modest", "c", 1))
	l, s := New(nil), pool(t, "10.0.0.0/16")
	if got := l.Assign(s, l.Waiting(claims)); got != Limit+1 {
		t.Fatalf("%d reservations, want %d for one namespace and 1 for the other", got, Limit)
	}
	// The next batch is at least half of the limit.
	for _, tc := range []struct{ done, want int }{{done: 1}, {done: Limit/2 - 1}, {done: Limit / 2, want: Limit / 2}} {
		next := New(nil)
		var addresses []ipamv1.IPAddress
		for i, r := range l.Open() {
			if i < tc.done {
				addresses = append(addresses, held(claim(r.Namespace, r.Name, 0), r.Address))
			}
		}
		next.Add(addresses)
		for _, r := range l.Open() {
			next.Reserve(r)
		}
		if got := next.Assign(s, next.Waiting(claims)); got != tc.want {
			t.Errorf("%d more reservations after %d are done, want %d", got, tc.done, tc.want)
		}
	}
}

// TestTotal checks that the reservations of all namespaces are bounded, and that the oldest claims get them.
func TestTotal(t *testing.T) {
	var claims []ipamv1.IPAddressClaim
	for i := range Total + 100 {
		claims = append(claims, claim(fmt.Sprintf("n-%d", i%100), fmt.Sprintf("c-%d", i), 10000-i))
	}
	l, s := New(nil), pool(t, "10.0.0.0/16")
	if got := l.Assign(s, l.Waiting(claims)); got != Total {
		t.Fatalf("%d reservations, want %d", got, Total)
	}
	if r := l.Open()[Total-1]; r.Name != claims[Total-1].Name {
		t.Errorf("the last reservation is that of %s", r.Name)
	}
	if got := l.Assign(s, l.Waiting(claims)); got != 0 {
		t.Errorf("%d more reservations", got)
	}
	longest := inclusterv1.Reservation{
		Address: "2001:0db8:0000:0000:0000:0000:0000:0001", Namespace: strings.Repeat("n", 63), Name: strings.Repeat("n", 253),
		UID: "00000000-0000-0000-0000-000000000000",
	}
	text, err := json.Marshal(inclusterv1.Reservations{Items: slices.Repeat([]inclusterv1.Reservation{longest}, Total)})
	if err != nil || len(text) > 1<<20 {
		t.Errorf("the largest status has %d bytes, %v", len(text), err)
	}
}

// BenchmarkLedger measures the decision for one claim of a pool of ten thousand addresses that is almost full.
func BenchmarkLedger(b *testing.B) {
	s, errs := space.Parse(&inclusterv1.InClusterIPPoolSpec{Addresses: []string{"10.0.0.0/16"}, Prefix: 8}, field.NewPath("spec"))
	if len(errs) > 0 {
		b.Fatal(errs)
	}
	var addresses []ipamv1.IPAddress
	for i := range 10000 {
		addresses = append(addresses, held(claim("n", fmt.Sprintf("c-%d", i), 0), fmt.Sprintf("10.0.%d.%d", i/256, i%256)))
	}
	claims := []ipamv1.IPAddressClaim{claim("n", "new", 1)}
	for b.Loop() {
		l := New(addresses)
		if l.Assign(s, l.Waiting(claims)) != 1 {
			b.Fatal("no address")
		}
		l.Counts(s)
	}
}
