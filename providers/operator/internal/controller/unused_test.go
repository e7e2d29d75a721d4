package controller

import (
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	operatorv1 "sigs.k8s.io/cluster-api/api/operator/v1alpha2"
	"sigs.k8s.io/cluster-api/sdk/testenv"
)

// TestUnused: the core provider is deleted after all others.
func TestUnused(t *testing.T) {
	w := newWorld(t, simpleConfigMap("x-system", "x", "v1.0.0"))
	w.create(simpleProvider)
	core := w.provider("CoreProvider", "capi-system", "cluster-api")
	controllerutil.AddFinalizer(core, operatorv1.ProviderFinalizer)
	testenv.Must(t, w.Update(t.Context(), core.Object), w.Delete(t.Context(), core.Object))
	core = w.reconcile(core)
	w.reports(core, operatorv1.ReadyCondition, "False DeletionBlocked", "Waiting for InfrastructureProvider x-system/x to be deleted")
	testenv.Must(t, w.Delete(t.Context(), w.provider("InfrastructureProvider", "x-system", "x").Object))
	if err := w.gone(core); err != nil {
		t.Error(err)
	}
}
