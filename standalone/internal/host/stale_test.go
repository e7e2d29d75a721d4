package host

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
)

// A status that was computed from an older version of the Deployment is not written: fields that it does not have would stay.
func TestStatusFromAStaleCache(t *testing.T) {
	t.Parallel()
	d := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "manager", UID: "d"}, Spec: appsv1.DeploymentSpec{Selector: &metav1.LabelSelector{}}}
	h := &host{client: fake.NewClientBuilder().WithObjects(d).WithStatusSubresource(d, &appsv1.ReplicaSet{}).Build(), Options: Options{Clock: clock.RealClock{}}}
	read := func() *appsv1.Deployment {
		t.Helper()
		found := &appsv1.Deployment{}
		if err := h.client.Get(t.Context(), client.ObjectKeyFromObject(d), found); err != nil {
			t.Fatal(err)
		}
		return found
	}
	stale := read()
	starting, ready := observation{state: state{phase: phaseStarting}}, observation{state: state{phase: phaseReady}}
	for _, tc := range []struct {
		reason      string
		deployment  *appsv1.Deployment
		seen        observation
		again       ctrl.Result
		unavailable int32
	}{
		{reason: "the first status", deployment: read(), seen: starting, unavailable: 1},
		{reason: "the cache does not have it yet", deployment: stale, seen: ready, again: ctrl.Result{RequeueAfter: cacheDelay}, unavailable: 1},
	} {
		result, err := h.report(t.Context(), tc.deployment, tc.seen)
		if err != nil {
			t.Fatalf("%s: %v", tc.reason, err)
		}
		if tc.again.RequeueAfter > 0 && result != tc.again {
			t.Errorf("%s: %+v", tc.reason, cmp.Diff(tc.again, result))
		}
		if got := read().Status.UnavailableReplicas; got != tc.unavailable {
			t.Errorf("%s: %d unavailable replicas, want %d", tc.reason, got, tc.unavailable)
		}
	}
	if _, err := h.report(t.Context(), read(), ready); err != nil {
		t.Fatal(err)
	}
	if got := read().Status; got.UnavailableReplicas != 0 || got.AvailableReplicas != 1 {
		t.Errorf("with the cache: %+v", got)
	}
}
