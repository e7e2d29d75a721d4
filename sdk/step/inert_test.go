package step

import (
	"context"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	testclock "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
)

// TestInertPatch: an API server whose definition does not have the fields of a status gets them once.
func TestInertPatch(t *testing.T) {
	status := "a"
	clock := testclock.NewFakePassiveClock(now)
	w := newWorld(t, func(_ context.Context, m *clusterv1.Machine) (Result, error) {
		m.SetConditions([]metav1.Condition{{Type: "New", Status: "True", Reason: status, LastTransitionTime: metav1.NewTime(clock.Now())}})
		return Done(), nil
	}, machine())
	w.runner.Clock = clock
	patches := 0
	w.runner.Client = interceptor.NewClient(w.Client.(client.WithWatch), interceptor.Funcs{
		SubResourcePatch: func(ctx context.Context, c client.Client, _ string, obj client.Object, _ client.Patch, _ ...client.SubResourcePatchOption) error {
			patches++
			return c.Get(ctx, client.ObjectKeyFromObject(obj), obj) // All fields are dropped.
		},
	})
	for _, tt := range []struct {
		reason  string
		change  func()
		patches int
	}{
		{"the first time it is sent", func() {}, 1},
		{"then only the times differ", func() {}, 1},
		{"another status is sent", func() { status = "b" }, 2},
		{"once, too", func() {}, 2},
		{"after another client's change, it may be different", func() {
			m := w.machine(t)
			m.Labels = map[string]string{"changed": ""}
			if err := w.Update(t.Context(), m); err != nil {
				t.Fatal(err)
			}
		}, 3},
		{"but it is not", func() {}, 3},
	} {
		tt.change()
		clock.SetTime(clock.Now().Add(time.Minute))
		if _, err := w.reconcile(t); err != nil {
			t.Fatal(err)
		}
		if patches != tt.patches {
			t.Errorf("%s: %d patches, want %d", tt.reason, patches, tt.patches)
		}
	}
}
