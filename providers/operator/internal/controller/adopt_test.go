package controller

import (
	"errors"
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	operatorv1 "sigs.k8s.io/cluster-api/api/operator/v1alpha2"
	"sigs.k8s.io/cluster-api/sdk/testenv/fakeapi"
)

// TestAdopt: the finalizer is in the API server before anything is installed.
func TestAdopt(t *testing.T) {
	w := newWorld(t, simpleConfigMap("x-system", "x", "v1.0.0"))
	w.create(simpleProvider)
	w.Before = func(r fakeapi.Request) error {
		if r.Verb == "create" {
			return errors.New("killed")
		}
		return nil
	}
	p := w.reconcile(w.provider("InfrastructureProvider", "x-system", "x"))
	if !controllerutil.ContainsFinalizer(p, operatorv1.ProviderFinalizer) {
		t.Errorf("finalizers are %v", p.GetFinalizers())
	}
	if version := p.GetStatus().InstalledVersion; version != nil {
		t.Errorf("version %s is installed", *version)
	}
}
