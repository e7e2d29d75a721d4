package incluster

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	inclusterv1 "sigs.k8s.io/cluster-api/api/ipam/incluster/v1alpha2"
	ipamv1 "sigs.k8s.io/cluster-api/api/ipam/v1beta2"
	"sigs.k8s.io/cluster-api/sdk/testenv/fakeapi"
)

var errKilled = errors.New("killed")

// kinds returns the kinds of which a process has a cache. Each may be stale independently.
func kinds() []client.ObjectList {
	return []client.ObjectList{&ipamv1.IPAddressList{}, &inclusterv1.InClusterIPPoolList{}, &ipamv1.IPAddressClaimList{}}
}

// TestSuspended suspends a process at every one of its requests, before and after the API server executes it, while another process
// with a fresh or a stale cache does all that there is to do, claims are deleted, replaced and created; then it resumes. No address is
// ever allocated to two claims, and in the end every claim has one.
func TestSuspended(t *testing.T) {
	for _, meanwhile := range []struct {
		reason string
		do     func(w *world)
	}{
		{reason: "nothing else happens", do: func(*world) {}},
		{reason: "a claim is deleted, and another one created", do: func(w *world) { w.release("a"); w.claim("x") }},
		{reason: "a claim is deleted, and created again", do: func(w *world) { w.release("a"); w.run(w.processes[1], 4); w.replace("a") }},
		{reason: "another claim is created", do: func(w *world) { w.claim("0") }},
	} {
		for _, stale := range []int{0, 1, len(kinds())} { // All kinds after these are up to date.
			for _, after := range []bool{false, true} {
				t.Run(fmt.Sprintf("%s, %d stale kinds, after the request %t", meanwhile.reason, stale, after), func(t *testing.T) {
					t.Parallel()
					suspendedEverywhere(t, meanwhile.do, stale, after)
				})
			}
		}
	}
}

func suspendedEverywhere(t *testing.T, meanwhile func(*world), stale int, after bool) {
	for at := 0; ; at++ {
		w := newWorld(t, 4)
		other := w.start()
		w.claim("a")
		w.claim("b")
		w.run(other, 1)
		other.cache.Freeze(kinds()[:stale]...)
		count := 0
		suspend := func(r fakeapi.Request) {
			if !r.Cached {
				count++
			}
			if count <= at {
				return
			}
			w.Before, w.After = nil, nil
			meanwhile(w)
			w.run(other, 4) // Conflicts due to a stale cache have no end.
			other.cache.Thaw()
			w.settle(other)
		}
		if after {
			w.After = func(r fakeapi.Request, err error) error { suspend(r); return err }
		} else {
			w.Before = func(r fakeapi.Request) error { suspend(r); return nil }
		}
		w.settle(w.processes[0])
		w.collect()
		done := w.Before == nil && w.After == nil
		w.Before, w.After = nil, nil
		if d := w.duplicates(); len(d) > 0 {
			t.Fatalf("suspended at request %d: %v\n%v", at, d, w.Writes)
		}
		other.cache.Thaw()
		w.settle(w.processes[0])
		w.settle(other)
		w.checkAll(fmt.Sprintf("suspended at request %d", at))
		if !done {
			return // There is no such request.
		}
	}
}

// replace creates a claim, unless the previous one of its name still exists.
func (w *world) replace(name string) {
	w.t.Helper()
	for _, c := range w.claims() {
		if c.Name == name {
			return
		}
	}
	w.claim(name)
}

// checkAll checks the end of a history: every claim has its address, and the numbers are right.
func (w *world) checkAll(when string) {
	w.t.Helper()
	claims, size := len(w.claims()), int(w.pool().Status.Addresses.Total)
	if d := w.duplicates(); len(d) > 0 {
		w.t.Fatalf("%s: %v", when, d)
	}
	if got, want := len(w.allocated()), min(claims, size); got != want {
		w.t.Fatalf("%s: %d of %d claims have an address: %v", when, got, want, w.allocated())
	}
	if got, want := len(w.addresses()), min(claims, size); got != want {
		w.t.Fatalf("%s: %d IPAddresses, want %d", when, got, want)
	}
	want := inclusterv1.InClusterIPPoolStatusIPAddresses{Total: int64(size), Used: int64(min(claims, size)), Free: int64(size - min(claims, size))}
	if diff := cmp.Diff(want, *w.pool().Status.Addresses); diff != "" {
		w.t.Fatalf("%s: numbers (-want +got):\n%s", when, diff)
	}
}

// TestAnotherProcessesAddress checks that a process with an IPAddress missing in its cache does not allocate that address, although the
// reservation was dropped by another process.
func TestAnotherProcessesAddress(t *testing.T) {
	w := newWorld(t, 4)
	other := w.start()
	w.settle(w.processes[0])
	other.cache.Freeze(&ipamv1.IPAddressList{})
	for _, name := range []string{"a", "b"} { // The allocation of b drops the reservation of a.
		w.claim(name)
		w.settle(w.processes[0])
	}
	if r := w.pool().Status.Reservations.Items; len(r) != 1 || r[0].Name != "b" {
		t.Fatalf("reservations = %v", r)
	}
	w.claim("c")
	w.LiveReads = nil
	w.run(other, 4)
	if diff := cmp.Diff([]string{"a=10.0.0.1", "b=10.0.0.2", "c=10.0.0.3"}, w.allocated()); diff != "" {
		t.Errorf("allocated (-want +got):\n%s", diff)
	}
	if !slices.Contains(w.LiveReads, "list IPAddress") {
		t.Errorf("live reads = %v", w.LiveReads)
	}
	// It reads the API server until its cache has caught up.
	w.claim("d")
	w.LiveReads = nil
	w.run(other, 4)
	if !slices.Contains(w.LiveReads, "list IPAddress") {
		t.Errorf("live reads with a stale cache = %v", w.LiveReads)
	}
	if d := w.duplicates(); len(d) > 0 {
		t.Error(d)
	}
}

// TestRevertedReservations checks that a process does not write reservations that it computed before others were made and dropped again,
// although the list is the same as before: only the sequence differs.
func TestRevertedReservations(t *testing.T) {
	w := newWorld(t, 4)
	p, other := w.processes[0], w.start()
	w.claim("a")
	w.blockAddresses("a") // Its reservation stays.
	w.run(other, 4)
	before := *w.pool().Status.Reservations
	w.claim("b")
	_ = p.reconcileClaim(t.Context(), "b")
	w.Before = func(r fakeapi.Request) error {
		if r.String() != "patch InClusterIPPool/status p" {
			return nil
		}
		w.blockAddresses("a")
		w.run(other, 4)
		w.release("b")
		w.run(other, 4)
		w.Before = nil
		after := *w.pool().Status.Reservations
		if diff := cmp.Diff(before, after, cmpopts.IgnoreFields(inclusterv1.Reservations{}, "Sequence")); diff != "" || after.Sequence == before.Sequence {
			t.Errorf("the test requires the same reservations with another sequence, not %d and %d (-want +got):\n%s", before.Sequence, after.Sequence, diff)
		}
		before = after
		return nil
	}
	_ = p.reconcilePool(t.Context()) // It is retried.
	if w.Before != nil {
		t.Error("the process did not write reservations")
	}
	if diff := cmp.Diff(before, *w.pool().Status.Reservations); diff != "" {
		t.Errorf("outdated reservations were written (-want +got):\n%s", diff)
	}
	w.Before = nil
	w.settle(p)
	w.settle(other)
	w.checkAll("in the end")
}

// blockAddresses makes the API server reject the IPAddress of a claim.
func (w *world) blockAddresses(claim string) {
	w.Before = func(r fakeapi.Request) error {
		if r.String() == "create IPAddress "+claim {
			return apierrors.NewForbidden(schema.GroupResource{Resource: "ipaddresses"}, claim, errors.New("exceeded quota"))
		}
		return nil
	}
}

// history is a random history of three processes, users and faults.
type history struct {
	*world
	random *rand.Rand
	log    []string
	// depth is the number of suspended processes.
	depth int
	// busy are the objects that each process is working on: a process has one worker for an object.
	busy map[string]bool
}

// work runs a reconcile of an object, unless the process is suspended in one.
func (h *history) work(p *process, object string, reconcile func() error) {
	key := fmt.Sprintf("%p %s", p, object)
	if h.busy[key] {
		return
	}
	h.busy[key] = true
	defer delete(h.busy, key)
	_ = reconcile() // Faults are errors.
}

// act does one random thing.
func (h *history) act() {
	p := h.processes[h.random.IntN(len(h.processes))]
	name := fmt.Sprintf("c%d", h.random.IntN(6))
	what := ""
	switch n := h.random.IntN(20); {
	case n < 6:
		what = "pool"
		h.work(p, what, func() error { return p.reconcilePool(h.t.Context()) })
	case n < 14:
		what = "claim " + name
		h.work(p, what, func() error { return p.reconcileClaim(h.t.Context(), name) })
	case n < 16:
		what = "create " + name
		h.replace(name)
	case n < 17:
		what = "delete " + name
		h.release(name)
	case n < 18:
		kind := kinds()[h.random.IntN(len(kinds()))]
		what = fmt.Sprintf("freeze %T", kind)
		p.cache.Freeze(kind)
	case n < 19:
		what = "collect garbage"
		h.collect()
	default:
		what = "thaw"
		p.cache.Thaw()
		h.Clock.Step(1e9)
	}
	h.log = append(h.log, fmt.Sprintf("%*s%s", h.depth, "", what))
}

// install makes requests fail, loses their responses, and suspends their process while others go on.
func (h *history) install() {
	interrupt := func() bool {
		if h.random.IntN(40) > 0 || h.depth > 1 {
			return false
		}
		h.depth++
		for range h.random.IntN(10) {
			h.act()
		}
		h.depth--
		return h.random.IntN(3) == 0
	}
	h.Before = func(fakeapi.Request) error {
		if interrupt() {
			return errKilled
		}
		return nil
	}
	h.After = func(r fakeapi.Request, err error) error {
		if r.IsWrite() {
			if d := h.duplicates(); len(d) > 0 {
				h.t.Fatalf("after %s: %v\n%v\n%v", r, d, h.Writes, h.log)
			}
		}
		if interrupt() {
			return errKilled
		}
		return err
	}
}

// TestHistories runs random histories of three processes with stale caches that are killed and suspended at any request, while users
// create and delete claims. No address is ever allocated to two claims, and in the end every claim has one.
func TestHistories(t *testing.T) {
	count := 60
	if testing.Short() {
		count = 20
	}
	for seed := range count {
		h := &history{world: newWorld(t, 2+seed%5), random: rand.New(rand.NewPCG(uint64(seed), 1)), busy: map[string]bool{}}
		h.start()
		h.start()
		h.install()
		for range 60 {
			h.act()
		}
		h.Before, h.After = nil, nil
		h.collect()
		for range 3 {
			for _, p := range h.processes {
				p.cache.Thaw()
				h.settle(p)
			}
		}
		h.checkAll(fmt.Sprintf("history %d", seed))
	}
}
