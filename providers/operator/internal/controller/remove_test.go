package controller

import (
	"errors"
	"fmt"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterctlv1 "sigs.k8s.io/cluster-api/api/clusterctl/v1alpha3"
	"sigs.k8s.io/cluster-api/providers/operator/internal/providerobject"
	"sigs.k8s.io/cluster-api/sdk/testenv"
)

// gone reconciles a provider object that is being deleted, and returns an error if it still exists.
func (w *world) gone(p providerobject.Provider) error {
	w.t.Helper()
	c := w.controller(p.Type)
	key := client.ObjectKeyFromObject(p)
	if _, err := c.declared().Runner(c.Clients).Reconcile(w.t.Context(), ctrl.Request{NamespacedName: key}); err != nil {
		return err
	}
	if err := w.Get(w.t.Context(), key, c.kind.New()); !apierrors.IsNotFound(err) {
		return fmt.Errorf("%s: %w", p, errors.Join(errors.New("it still exists"), err))
	}
	return nil
}

// TestRemove: the components and the entry of the inventory are deleted, unless another object declares the provider.
func TestRemove(t *testing.T) {
	for _, tc := range []struct {
		reason      string
		isDuplicate bool
	}{
		{"the provider is removed", false},
		{"the components of another object stay", true},
	} {
		t.Run(tc.reason, func(t *testing.T) {
			w := newWorld(t, simpleConfigMap("x-system", "x", "v1.0.0"))
			w.create(simpleProvider)
			p := w.reconcile(w.provider("InfrastructureProvider", "x-system", "x"))
			deleted := p
			if tc.isDuplicate {
				deleted = providerobject.Provider{Type: p.Type, Object: w.controller(p.Type).kind.New()}
				deleted.SetNamespace("y-system")
				deleted.SetName("x")
				deleted.SetUID(types.UID("y"))
				deleted.SetFinalizers(p.GetFinalizers())
				testenv.Must(t, w.Create(t.Context(), deleted.Object))
			}
			testenv.Must(t, w.Delete(t.Context(), deleted.Object))
			if err := w.gone(deleted); err != nil {
				t.Error(err)
			}
			for _, o := range []client.Object{&appsv1.Deployment{}, &clusterctlv1.Provider{}} {
				name := simpleDeployment("x")
				if _, isEntry := o.(*clusterctlv1.Provider); isEntry {
					name = "infrastructure-x"
				}
				err := w.Get(t.Context(), client.ObjectKey{Namespace: "x-system", Name: name}, o)
				if client.IgnoreNotFound(err) != nil || apierrors.IsNotFound(err) == tc.isDuplicate {
					t.Errorf("%T: %v", o, err)
				}
			}
		})
	}
}
