package step

import (
	"context"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/sdk/condition"
)

// TestGenerationOfOwnChange: what a reconcile changed in the spec, it has seen.
func TestGenerationOfOwnChange(t *testing.T) {
	for name, c := range map[string]struct {
		reason string
		// meanwhile is what another client changes during the reconcile.
		meanwhile func(m *clusterv1.Machine)
		want      int64
	}{
		"Ours": {
			reason: "one status write includes the generation that our own write caused", want: 4,
		},
		"ToTheSame": {
			reason:    "another client made the same change: the spec is what the steps worked on, whatever its generation",
			meanwhile: func(m *clusterv1.Machine) { m.Spec.ProviderID = "cloud://1" }, want: 5,
		},
		"Theirs": {
			reason:    "the steps have not observed what another client wrote meanwhile",
			meanwhile: func(m *clusterv1.Machine) { m.Spec.Version = "v1.31.0" }, want: 3,
		},
	} {
		t.Run(name, func(t *testing.T) {
			var w *world
			w = newWorld(t, func(ctx context.Context, m *clusterv1.Machine) (Result, error) {
				if c.meanwhile != nil && m.Spec.ProviderID == "" {
					other := w.machine(t)
					c.meanwhile(other)
					other.Generation++
					if err := w.Update(ctx, other); err != nil {
						return Done(), err
					}
				}
				m.Spec.ProviderID = "cloud://1"
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
		condition.Set(other, condition.True(clusterv1.MachineHealthCheckSucceededV1Beta1Condition))
		if err := w.Status().Update(ctx, other); err != nil {
			return Done(), err
		}
		m.Spec.ProviderID = "cloud://1" // a write that is not tied to a version, and answers with the newest
		condition.Set(m, condition.True(clusterv1.BootstrapReadyV1Beta1Condition))
		return Done(), nil
	}, machine())
	if _, err := w.reconcile(t); err != nil {
		t.Fatal(err)
	}
	want := []string{`metadata {"spec":{"providerID":"cloud://1"}}`, "status"}
	if diff := cmp.Diff(want, w.writes); diff != "" {
		t.Errorf("one write each, none repeated: -want +got:\n%s", diff)
	}
	if m := w.machine(t); !condition.IsTrue(m, clusterv1.MachineHealthCheckSucceededV1Beta1Condition) || !condition.IsTrue(m, clusterv1.BootstrapReadyV1Beta1Condition) {
		t.Errorf("a condition is lost: %v", m.GetV1Beta1Conditions())
	}
}

// TestStatusOfAnotherLeader: a reconcile that took its time must not undo what another leader has written meanwhile.
func TestStatusOfAnotherLeader(t *testing.T) {
	for name, c := range map[string]struct {
		reason string
		// meanwhile is what another client does to the Machine during the reconcile.
		meanwhile func(t *testing.T, w *world, m *clusterv1.Machine)
		// patches is whether the reconcile also writes the spec, whose answer shows what happened meanwhile.
		patches  bool
		stale    bool
		want     clusterv1.MachinePhase
		wantNode bool
	}{
		"SameField": {
			reason: "the computed status is older than the current one",
			meanwhile: func(t *testing.T, w *world, m *clusterv1.Machine) {
				m.Status.Phase = "Failed"
				update(t, w, m)
			},
			stale: true, want: clusterv1.MachinePhaseFailed,
		},
		"SameFieldSeenInAnswer": {
			reason: "the response to our own write does not justify overwriting it", patches: true,
			meanwhile: func(t *testing.T, w *world, m *clusterv1.Machine) {
				m.Status.Phase = "Failed"
				update(t, w, m)
			},
			stale: true, want: clusterv1.MachinePhaseFailed,
		},
		"OtherField": {
			reason: "fields that we do not write are kept",
			meanwhile: func(t *testing.T, w *world, m *clusterv1.Machine) {
				m.Status.NodeRef = clusterv1.MachineNodeReference{Name: "node"}
				update(t, w, m)
			},
			want: clusterv1.MachinePhaseRunning, wantNode: true,
		},
		"MadeAgain": {
			reason: "the status of an object is not for another one of its name",
			meanwhile: func(t *testing.T, w *world, m *clusterv1.Machine) {
				if err := w.Delete(t.Context(), m); err != nil {
					t.Fatal(err)
				}
				again := machine()
				again.UID = "again"
				if err := w.Create(t.Context(), again); err != nil {
					t.Fatal(err)
				}
			},
			stale: true, want: clusterv1.MachinePhaseUnknown,
		},
	} {
		t.Run(name, func(t *testing.T) {
			first := machine()
			first.UID = "first"
			var w *world
			w = newWorld(t, func(_ context.Context, m *clusterv1.Machine) (Result, error) {
				c.meanwhile(t, w, w.machine(t))
				m.Status.Phase = "Running"
				if c.patches {
					m.Labels = map[string]string{"a": "b"}
				}
				return Done(), nil
			}, first)
			// The cache lags: what happens meanwhile is found out by the write.
			w.runner.Client = interceptor.NewClient(w.Client.(client.WithWatch), interceptor.Funcs{
				Get: func(_ context.Context, _ client.WithWatch, _ client.ObjectKey, into client.Object, _ ...client.GetOption) error {
					first.DeepCopyInto(into.(*clusterv1.Machine))
					return nil
				},
			})
			first = w.machine(t)
			w.runner.observed = nil
			result, err := w.reconcile(t)
			if err != nil {
				t.Fatal(err)
			}
			if stale := result.RequeueAfter == conflictDelay; stale != c.stale {
				t.Errorf("requeued after %s, want a retry = %t: %s", result.RequeueAfter, c.stale, c.reason)
			}
			m := w.machine(t)
			if m.Status.GetTypedPhase() != c.want || (m.Status.NodeRef.IsDefined()) != c.wantNode {
				t.Errorf("phase %q, Node %v; want %q, %t: %s", m.Status.Phase, m.Status.NodeRef, c.want, c.wantNode, c.reason)
			}
		})
	}
}

func update(t *testing.T, w *world, m *clusterv1.Machine) {
	t.Helper()
	if err := w.Status().Update(t.Context(), m); err != nil {
		t.Fatal(err)
	}
}

// TestListsOfOthersAreKept: a checkpoint without a resource version must not overwrite newer lists with those in memory.
func TestListsOfOthersAreKept(t *testing.T) {
	var w *world
	w = newWorld(t, func(ctx context.Context, m *clusterv1.Machine) (Result, error) {
		return Run(ctx, m,
			Do("step1", func(_ context.Context, m *clusterv1.Machine) (Result, error) {
				if !controllerutil.ContainsFinalizer(m, "theirs") {
					other := w.machine(t)
					controllerutil.AddFinalizer(other, "theirs")
					if err := w.Update(ctx, other); err != nil {
						return Done(), err
					}
				}
				m.Labels = map[string]string{"a": "b"}
				return Checkpoint(), nil
			}),
			Do("step2", func(_ context.Context, m *clusterv1.Machine) (Result, error) {
				controllerutil.AddFinalizer(m, "ours")
				return Done(), nil
			}))
	}, machine())
	if result, err := w.reconcile(t); err != nil || result.RequeueAfter != conflictDelay {
		t.Errorf("result = %v, err = %v; want a retry: the lists in memory are old", result, err)
	}
	if _, err := w.reconcile(t); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"theirs", "ours"}, w.machine(t).Finalizers); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}
