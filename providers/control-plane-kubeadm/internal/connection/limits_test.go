package connection

import (
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	testclock "k8s.io/utils/clock/testing"

	"sigs.k8s.io/cluster-api/providers/control-plane-kubeadm/internal/kcptest"
	"sigs.k8s.io/cluster-api/sdk/testenv/object"
)

// workload returns a workload cluster with three Nodes.
func workload() *kcptest.Workload {
	w := kcptest.NewWorkload(types.NamespacedName{Namespace: "ns", Name: "c"})
	for _, node := range []string{"a", "b", "c"} {
		w.Boot(node)
	}
	return w
}

// delay of a slow etcd that responds within ReadLimit.
const delay = ReadLimit - 100*time.Millisecond

// A timeout counts only if the call had the whole time.
func TestNoBackoffIfOtherCallsUsedUpTheTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := workload()
		c := &Connector{Clock: clock.RealClock{}}
		w := c.bound("cp-uid", kcptest.Slow{Workload: f, Delay: delay})
		for range int(readsLimit / ReadLimit) { // which leaves little time
			w.Etcd(t.Context(), []string{"a"})
		}
		unresponsive := &kcptest.Unresponsive{Workload: f}
		w.Workload = unresponsive
		begun := time.Now()
		if _, err := w.KubeadmConfigExists(t.Context()); err == nil || time.Since(begun) >= ReadLimit {
			t.Errorf("error %v after %s", err, time.Since(begun))
		}
		if c.backoffs.left("cp-uid", apiServer, time.Now()) > 0 {
			t.Error("there is a backoff for the API server, although it had little time to respond")
		}
		if _, err := c.bound("cp-uid", unresponsive).KubeadmConfigExists(t.Context()); err == nil || c.backoffs.left("cp-uid", apiServer, time.Now()) <= 0 {
			t.Error("after a timeout with the whole time there is no backoff")
		}
	})
}

// An unresponsive member is queried at increasing intervals, the others every time.
func TestBackoffOfUnresponsiveMembers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := workload()
		c := &Connector{Clock: clock.RealClock{}}
		unresponsive, start := &kcptest.Unresponsive{Workload: f, OnlyMembers: []string{"b"}}, time.Now()
		var queried []time.Duration
		for time.Since(start) < 3*time.Minute {
			unresponsive.Queried = nil
			answers := c.bound("cp-uid", unresponsive).Etcd(t.Context(), []string{"a", "b", "c"})
			if slices.Contains(unresponsive.Queried, "b") {
				queried = append(queried, time.Since(start).Round(time.Second))
			}
			if answers[0].Err != nil || answers[1].Err == nil || answers[2].Err != nil {
				t.Fatalf("answers %+v", answers)
			}
			time.Sleep(time.Second) // virtual
		}
		want := []time.Duration{5 * time.Second, 15 * time.Second, 30 * time.Second, 55 * time.Second, 100 * time.Second, 165 * time.Second}
		if diff := cmp.Diff(want, queried); diff != "" {
			t.Errorf("it is queried at (-want +got):\n%s", diff)
		}
		unresponsive.OnlyMembers = []string{}
		time.Sleep(lastBackoff)
		c.bound("cp-uid", unresponsive).Etcd(t.Context(), []string{"b"})
		if c.backoffs.left("cp-uid", etcdMember+"b", time.Now()) > 0 || len(c.backoffs.known["cp-uid"].timeouts) != 0 {
			t.Error("it responds, and there still is a backoff")
		}
	})
}

// Errors other than timeouts cause no backoff.
func TestNoBackoffAfterErrors(t *testing.T) {
	f := workload()
	c := &Connector{Clock: testclock.NewFakePassiveClock(object.Now())}
	f.Unresponsive = errors.New("refused")
	w := c.bound("cp-uid", f)
	for range 2 {
		if _, err := w.KubeadmConfigExists(t.Context()); !errors.Is(err, f.Unresponsive) {
			t.Errorf("error %v", err)
		}
	}
}
