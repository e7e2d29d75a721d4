package machinepool

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// describe returns instances from a short form: a name with letters for its state: j(oined), r(eady: joined and available), o(utdated),
// m(arked), u(nhealthy), d(eleting). Those further left are older.
func describe(text string) []instance {
	var all []instance
	for i, word := range strings.Fields(text) {
		name, state, _ := strings.Cut(word, ":")
		one := instance{name: name, created: time.Unix(int64(i), 0), joined: strings.ContainsAny(state, "jr"), available: strings.Contains(state, "r"),
			marked: strings.Contains(state, "m"), unhealthy: strings.Contains(state, "u"), deleting: strings.Contains(state, "d")}
		if strings.Contains(state, "o") {
			one.outdated = "another version"
		}
		all = append(all, one)
	}
	return all
}

func TestNext(t *testing.T) {
	for _, tt := range []struct {
		reason   string
		replicas int
		all      string
		want     plan
	}{
		{"a new pool gets all its machines at once", 3, "", plan{create: 3}},
		{"nothing to do", 2, "a:r b:r", plan{}},
		{"machines that are not ready yet count", 2, "a:r b:", plan{}},
		{"an empty pool", 0, "", plan{}},
		{"scaling up", 3, "a:r", plan{create: 2}},
		{"scaling down removes the youngest", 1, "a:r b:r c:r", plan{delete: []string{"c", "b"}}},
		{"scaling down removes those that are not ready first", 1, "a: b:r c:r", plan{delete: []string{"a", "c"}}},
		{"those that are marked come before those that are not ready", 2, "a:rm b: c:r", plan{delete: []string{"a"}}},
		{"marked ones come before those that are outdated", 2, "a:rm b:r c:ro", plan{delete: []string{"a"}}},
		{"unhealthy ones come before younger ones", 2, "a:r b:ru c:r", plan{delete: []string{"b"}}},
		{"one whose Node is only unknown is not unhealthy", 2, "a:r b:j c:r", plan{delete: []string{"c"}}},
		{"to zero", 0, "a:ro b:r c:", plan{delete: []string{"a", "c", "b"}}},
		{"a mark alone deletes nothing", 2, "a:rm b:r", plan{}},
		{"what is being deleted is not deleted again", 1, "a:r b:rd", plan{}},
		{"one that is being deleted is replaced in the meantime", 1, "a:rd", plan{create: 1}},
		{"a pool that cannot get rid of its machines does not grow", 2, "a:rd b:rd c:d", plan{}},
		{"it grows by one machine more than it should have at most", 2, "a:rd b:rd", plan{create: 1}},

		{"the replacement is created first", 2, "a:ro b:ro", plan{create: 1}},
		{"the outdated one stays until its replacement is ready", 2, "a:ro b:ro c:", plan{}},
		{"then one of them goes", 2, "a:ro b:ro c:r", plan{delete: []string{"b"}}},
		{"the next one waits until it is gone", 2, "a:ro b:rod c:r", plan{}},
		{"and then it is created", 2, "a:ro c:r", plan{create: 1}},
		{"the last one goes", 2, "a:ro c:r d:r", plan{delete: []string{"a"}}},
		{"outdated ones that are not ready are not missed", 3, "a:o b:ro c:o", plan{create: 1, delete: []string{"c", "a"}}},
		{"a pool whose image does not exist gets new machines", 2, "a:o b:o", plan{create: 1, delete: []string{"b", "a"}}},
		{"a replacement that never becomes ready stops the rollout", 3, "a:ro b:ro c:ro d:", plan{}},
		{"even so it is scaled down", 1, "a:ro b:ro c:ro d:", plan{delete: []string{"c", "b"}}},
		{"a replacement that is outdated itself goes", 2, "a:ro b:ro c:o", plan{delete: []string{"c"}}},
		{"the outdated one stays until its replacement is available", 2, "a:ro b:ro c:j", plan{}},
		{"one whose Node is not ready goes first", 3, "a:ro b:jo c:ro d:r", plan{delete: []string{"b"}}},
		{"even if there are too few without it, because it does not count", 3, "a:r b:r c:jo d:jo", plan{delete: []string{"d"}}},
		{"but not if no other is available either", 2, "a:jo b:jo c:j", plan{}},
		{"during a rollout, a marked one waits until enough others are available", 2, "a:rm b:ro c:", plan{}},
		{"and is deleted then", 2, "a:rm b:ro c:r", plan{delete: []string{"a"}}},
		{"nothing that is up to date is deleted in its place", 1, "a:rm b:o c:", plan{delete: []string{"b"}}},
		{"but outdated ones that are not available do not wait for it", 2, "a:rm b:jo c:r", plan{delete: []string{"b"}}},
		{"one that never joined is not missed beside a mark", 2, "a:rm b:o", plan{create: 1, delete: []string{"b"}}},
		{"scaling up creates up-to-date machines, and one for the rollout", 3, "a:ro", plan{create: 3}},
		{"scaling to zero does not wait for replacements", 0, "a:ro b:ro", plan{delete: []string{"b", "a"}}},
	} {
		t.Run(tt.reason, func(t *testing.T) {
			if diff := cmp.Diff(tt.want, next(tt.replicas, false, describe(tt.all)), cmp.AllowUnexported(plan{})); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

// TestNextWhileHeld replaces nothing while a change is incomplete, but scales.
func TestNextWhileHeld(t *testing.T) {
	for _, tt := range []struct {
		reason   string
		replicas int
		all      string
		want     plan
	}{
		{"no rollout begins", 2, "a:ro b:ro", plan{}},
		{"machines that never joined are not replaced either", 2, "a:o b:ro", plan{}},
		{"a rollout does not continue", 2, "a:ro b:", plan{}},
		{"its surplus goes once the replacement is available", 2, "a:ro b:ro c:r", plan{delete: []string{"b"}}},
		{"but not before", 2, "a:ro b:ro c:", plan{}},
		{"missing machines are created", 3, "a:ro b:ro", plan{create: 1}},
		{"also those that were remediated", 2, "a:ro b:rod", plan{create: 1}},
		{"scaling down removes outdated machines first", 1, "a:ro b:r", plan{delete: []string{"a"}}},
	} {
		t.Run(tt.reason, func(t *testing.T) {
			if diff := cmp.Diff(tt.want, next(tt.replicas, true, describe(tt.all)), cmp.AllowUnexported(plan{})); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

// TestNextConverges follows plans from every pool of up to four machines to every size, with machines that become ready and are deleted
// in any order. It checks that a pool never has more machines than its surge allows, during a rollout never fewer that are available than
// it should have and had, otherwise never fewer that are not unhealthy (except if the user marked the one to delete), and that it ends
// with what it should have.
func TestNextConverges(t *testing.T) {
	states := []string{"r", "", "j", "ju", "ro", "jo", "o", "rm", "rom", "rd"}
	var start func(prefix string, left int)
	start = func(prefix string, left int) {
		for replicas := range 4 {
			for _, eager := range []bool{true, false} {
				converge(t, replicas, prefix, eager)
			}
		}
		if left == 0 {
			return
		}
		for _, state := range states {
			start(fmt.Sprintf("%s m%d:%s", prefix, left, state), left-1)
		}
	}
	start("", 4)
}

// converge follows the plans for one pool. eager is whether machines become ready before others are gone.
func converge(t *testing.T, replicas int, from string, eager bool) {
	t.Helper()
	all := describe(from)
	count := func(is func(instance) bool) (n int) {
		for _, i := range all {
			if is(i) {
				n++
			}
		}
		return n
	}
	for round := range 40 {
		p := next(replicas, false, all)
		rollout := count(func(i instance) bool { return i.outdated != "" && !i.deleting }) > 0
		available := func(i instance) bool { return !i.deleting && (i.available || !rollout && i.joined && !i.unhealthy) }
		before, marked := count(available), 0
		for i := range all {
			for _, name := range p.delete {
				if all[i].name == name {
					all[i].deleting = true
					if all[i].marked && !rollout {
						marked++
					}
				}
			}
		}
		if after := count(available); after < min(before, replicas)-marked {
			t.Fatalf("%d replicas from%s: %v leaves %d ready of %d", replicas, from, p, after, before)
		}
		had := len(all)
		for n := range p.create {
			all = append(all, instance{name: fmt.Sprintf("new%d-%d", round, n), created: time.Unix(int64(100+round), 0)})
		}
		if p.create > 0 && len(all) > max(replicas+surge, had) {
			t.Fatalf("%d replicas from%s: %v makes %d machines", replicas, from, p, len(all))
		}
		if p.none() && count(func(i instance) bool { return i.available && i.outdated == "" }) == replicas && len(all) == replicas {
			return
		}
		all = progress(all, eager)
	}
	t.Fatalf("%d replicas from%s: ends with %+v", replicas, from, all)
}

// progress lets one thing happen: a machine becomes ready, or one that is being deleted is gone.
func progress(all []instance, eager bool) []instance {
	for _, ready := range []bool{eager, !eager} {
		for i := range all {
			switch {
			case ready && !all[i].available && !all[i].deleting && all[i].outdated == "":
				all[i].joined, all[i].available, all[i].unhealthy = true, all[i].joined, false
				return all
			case !ready && all[i].deleting:
				return append(all[:i:i], all[i+1:]...)
			}
		}
	}
	return all
}
