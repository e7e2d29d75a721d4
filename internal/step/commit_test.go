package step

import (
	"context"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta1"
	"sigs.k8s.io/cluster-api/internal/condition"
)

// TestGenerationOfOwnChange: what a reconcile changed in the spec, it has seen.
func TestGenerationOfOwnChange(t *testing.T) {
	for name, c := range map[string]struct {
		reason string
		// meanwhile is what somebody else changes during the reconcile.
		meanwhile func(m *clusterv1.Machine)
		want      int64
	}{
		"Ours": {
			reason: "one write of the status tells of the generation that our own write made", want: 4,
		},
		"ToTheSame": {
			reason:    "somebody else did the same: the spec is what the steps worked on, whatever its generation",
			meanwhile: func(m *clusterv1.Machine) { m.Spec.ProviderID = ptr.To("cloud://1") }, want: 5,
		},
		"Theirs": {
			reason:    "nobody has seen what another one wrote meanwhile",
			meanwhile: func(m *clusterv1.Machine) { m.Spec.Version = ptr.To("v1.31.0") }, want: 3,
		},
	} {
		t.Run(name, func(t *testing.T) {
			var w *world
			w = newWorld(t, func(ctx context.Context, m *clusterv1.Machine) (Result, error) {
				if c.meanwhile != nil && m.Spec.ProviderID == nil {
					other := w.machine(t)
					c.meanwhile(other)
					other.Generation++
					if err := w.Update(ctx, other); err != nil {
						return Done(), err
					}
				}
				m.Spec.ProviderID = ptr.To("cloud://1")
				return Done(), nil
			}, machine())
			counting := interceptor.NewClient(w.Client.(client.WithWatch), interceptor.Funcs{
				Patch: func(ctx context.Context, c client.WithWatch, obj client.Object, p client.Patch, o ...client.PatchOption) error {
					if err := c.Patch(ctx, obj, p, o...); err != nil {
						return err
					}
					obj.SetGeneration(obj.GetGeneration() + 1)
					return c.Update(ctx, obj) // as the API server does, which the fake one leaves out
				},
			})
			w.runner.Client = counting
			if _, err := w.reconcile(t); err != nil {
				t.Fatal(err)
			}
			if got := w.machine(t).Status.ObservedGeneration; got != c.want {
				t.Errorf("observed generation = %d, want %d: %s", got, c.want, c.reason)
			}
		})
	}
}

// TestConditionsOfOthersCostNoConflict: the cache knows what others wrote during a reconcile.
func TestConditionsOfOthersCostNoConflict(t *testing.T) {
	var w *world
	w = newWorld(t, func(ctx context.Context, m *clusterv1.Machine) (Result, error) {
		other := w.machine(t)
		condition.Set(other, condition.True(clusterv1.MachineHealthCheckSucceededCondition))
		if err := w.Status().Update(ctx, other); err != nil {
			return Done(), err
		}
		m.Spec.ProviderID = ptr.To("cloud://1") // a write that is not tied to a version, and answers with the newest
		condition.Set(m, condition.True(clusterv1.BootstrapReadyCondition))
		return Done(), nil
	}, machine())
	if _, err := w.reconcile(t); err != nil {
		t.Fatal(err)
	}
	want := []string{`metadata {"spec":{"providerID":"cloud://1"}}`, "status"}
	if diff := cmp.Diff(want, w.writes); diff != "" {
		t.Errorf("one write each, none in vain: -want +got:\n%s", diff)
	}
	if m := w.machine(t); !condition.IsTrue(m, clusterv1.MachineHealthCheckSucceededCondition) || !condition.IsTrue(m, clusterv1.BootstrapReadyCondition) {
		t.Errorf("a condition is lost: %v", m.Status.Conditions)
	}
}
