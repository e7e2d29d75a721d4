package step

import (
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"
	testclock "k8s.io/utils/clock/testing"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
)

func versionOf(uid, version string) *clusterv1.Cluster {
	c := &clusterv1.Cluster{}
	c.UID, c.ResourceVersion = types.UID(uid), version
	return c
}

func TestRecent(t *testing.T) {
	start := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	type known struct{ Shown, Made bool }
	for _, tt := range []struct {
		reason string
		limit  time.Duration
		did    func(r *Recent, c *testclock.FakePassiveClock)
		cached string
		want   known
	}{
		{reason: "nothing was written", limit: time.Minute, did: func(*Recent, *testclock.FakePassiveClock) {}, cached: "10"},
		{reason: "the cache has our write", limit: time.Minute, cached: "10", want: known{Shown: true},
			did: func(r *Recent, c *testclock.FakePassiveClock) { r.Wrote(versionOf("a", "10"), c.Now()) }},
		{reason: "the cache has a later write", limit: time.Minute, cached: "11", want: known{Shown: true},
			did: func(r *Recent, c *testclock.FakePassiveClock) { r.Wrote(versionOf("a", "10"), c.Now()) }},
		{reason: "the cache shows what was before", limit: time.Minute, cached: "9",
			did: func(r *Recent, c *testclock.FakePassiveClock) { r.Wrote(versionOf("a", "10"), c.Now()) }},
		{reason: "another object was written", limit: time.Minute, cached: "10",
			did: func(r *Recent, c *testclock.FakePassiveClock) { r.Wrote(versionOf("b", "10"), c.Now()) }},
		{reason: "an older response arrives later", limit: time.Minute, cached: "10",
			did: func(r *Recent, c *testclock.FakePassiveClock) {
				r.Wrote(versionOf("a", "11"), c.Now())
				r.Wrote(versionOf("a", "10"), c.Now())
			}},
		{reason: "it was created, and written since", limit: time.Minute, cached: "11", want: known{Shown: true, Made: true},
			did: func(r *Recent, c *testclock.FakePassiveClock) {
				r.Created(versionOf("a", "10"), c.Now())
				r.Wrote(versionOf("a", "11"), c.Now())
			}},
		{reason: "it was created long ago, and written since", limit: time.Minute, cached: "11", want: known{Shown: true},
			did: func(r *Recent, c *testclock.FakePassiveClock) {
				r.Created(versionOf("a", "10"), c.Now())
				c.SetTime(start.Add(4 * time.Second))
				r.Wrote(versionOf("a", "11"), c.Now())
				c.SetTime(start.Add(5 * time.Second))
			}},
		{reason: "what counts is when it was asked", limit: time.Minute, cached: "10",
			did: func(r *Recent, c *testclock.FakePassiveClock) {
				asked := c.Now()
				c.SetTime(start.Add(5 * time.Second))
				r.Wrote(versionOf("a", "10"), asked)
			}},
		{reason: "another leader may have been elected earlier", limit: time.Second, cached: "10",
			did: func(r *Recent, c *testclock.FakePassiveClock) {
				r.Wrote(versionOf("a", "10"), c.Now())
				c.SetTime(start.Add(time.Second))
			}},
		{reason: "leases that guarantee nothing", limit: 0, cached: "10",
			did: func(r *Recent, c *testclock.FakePassiveClock) { r.Wrote(versionOf("a", "10"), c.Now()) }},
		{reason: "it was forgotten", limit: time.Minute, cached: "10",
			did: func(r *Recent, c *testclock.FakePassiveClock) {
				r.Created(versionOf("a", "10"), c.Now())
				r.Forget(versionOf("a", "10"))
			}},
		{reason: "versions that have no order", limit: time.Minute, cached: "x",
			did: func(r *Recent, c *testclock.FakePassiveClock) { r.Wrote(versionOf("a", "10"), c.Now()) }},
	} {
		t.Run(tt.reason, func(t *testing.T) {
			clock := testclock.NewFakePassiveClock(start)
			r := NewRecent(tt.limit, clock)
			tt.did(r, clock)
			cached := versionOf("a", tt.cached)
			if got := (known{r.UpToDate(cached), r.CreatedHere(cached)}); got != tt.want {
				t.Errorf("got %+v, want %+v", got, tt.want)
			}
		})
	}
	var none *Recent
	asked, done := none.Announce(types.NamespacedName{})
	none.Wrote(versionOf("a", "1"), asked)
	none.Created(versionOf("a", "1"), asked)
	done()
	none.Forget(versionOf("a", "1"))
	if none.UpToDate(versionOf("a", "1")) || none.CreatedHere(versionOf("a", "1")) {
		t.Error("one that is nil remembers")
	}
}

// TestRecentWaitsForAnswers: the event of a write may arrive before its response.
func TestRecentWaitsForAnswers(t *testing.T) {
	r := NewRecent(time.Minute, testclock.NewFakePassiveClock(time.Now()))
	cluster := versionOf("a", "10")
	cluster.Namespace, cluster.Name = "ns", "c"
	asked, done := r.Announce(types.NamespacedName{Namespace: "ns", Name: "c"})
	shown := make(chan bool)
	go func() { shown <- r.UpToDate(cluster) }()
	r.Wrote(cluster, asked)
	done()
	if !<-shown {
		t.Error("the response arrived while it was waited for")
	}
	_, done = r.Announce(types.NamespacedName{Namespace: "ns", Name: "c"})
	_, another := r.Announce(types.NamespacedName{Namespace: "ns", Name: "c"})
	done()
	another()
	if !r.UpToDate(cluster) {
		t.Error("failed requests must not change what is remembered")
	}
}
