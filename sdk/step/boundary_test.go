package step

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/go-logr/logr/testr"
	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	clusterv1beta1 "sigs.k8s.io/cluster-api/api/core/v1beta1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/sdk/apiversion"
	"sigs.k8s.io/cluster-api/sdk/condition"
	"sigs.k8s.io/cluster-api/sdk/conversion"
)

// newBoundary returns a boundary to an API server that stores Machines in v1beta1.
func newBoundary(t *testing.T, s *runtime.Scheme) *apiversion.Boundary {
	t.Helper()
	discovery := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		sum := sha256.Sum256([]byte("cluster.x-k8s.io/v1beta1/Machine"))
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(metav1.APIResourceList{
			TypeMeta:     metav1.TypeMeta{APIVersion: "v1", Kind: "APIResourceList"},
			APIResources: []metav1.APIResource{{Name: "machines", Kind: "Machine", StorageVersionHash: base64.StdEncoding.EncodeToString(sum[:8])}},
		})
	}))
	t.Cleanup(discovery.Close)
	b, err := apiversion.New(apiversion.Options{
		Config: &rest.Config{Host: discovery.URL}, HTTPClient: discovery.Client(), Scheme: s, Registry: conversion.New(nil), Log: testr.New(t),
	})
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// Controllers in one version write what they change, and nothing else, to objects that are stored in another one.
func TestStoredInAnotherVersion(t *testing.T) {
	w := newWorld(t, func(_ context.Context, m *clusterv1.Machine) (Result, error) {
		m.Finalizers = []string{clusterv1.MachineFinalizer}
		m.Spec.ProviderID = "provider:///m"
		m.Status.Initialization.BootstrapDataSecretCreated = ptr.To(true)
		condition.Set(m, condition.True(clusterv1.BootstrapReadyV1Beta1Condition))
		return Done(), nil
	})
	s := runtime.NewScheme()
	if err := errors.Join(clusterv1.AddToScheme(s), clusterv1beta1.AddToScheme(s)); err != nil {
		t.Fatal(err)
	}
	stored := &clusterv1beta1.Machine{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "m", Generation: 3}}
	stored.Spec.InfrastructureRef = corev1.ObjectReference{APIVersion: "g/v1", Kind: "Thing", Name: "m", FieldPath: "x"} // v1beta2 has no such field.
	stored.SetV1Beta2Conditions([]metav1.Condition{{
		Type: "Ready", Status: metav1.ConditionFalse, Reason: "Waiting", LastTransitionTime: metav1.Unix(1, 0),
	}})
	server := fake.NewClientBuilder().WithScheme(s).WithObjects(stored).WithStatusSubresource(stored).Build()
	w.Client = newBoundary(t, s).Client(server)
	w.runner.Client, w.runner.Live = w.Client, w.Client

	if _, err := w.reconcile(t); err != nil {
		t.Fatal(err)
	}
	m := w.machine(t)
	if err := w.runner.SetConditions(t.Context(), m, condition.True(clusterv1.MachineNodeHealthyV1Beta1Condition)); err != nil {
		t.Fatal(err)
	}
	if err := w.runner.Patch(t.Context(), m, func() { m.Spec.FailureDomain = "one" }); err != nil {
		t.Fatal(err)
	}
	got := &clusterv1beta1.Machine{}
	if err := server.Get(t.Context(), client.ObjectKeyFromObject(stored), got); err != nil {
		t.Fatal(err)
	}
	var conditions []string
	for _, c := range got.GetConditions() {
		conditions = append(conditions, fmt.Sprintf("%s=%s", c.Type, c.Status))
	}
	if diff := cmp.Diff([]string{"Ready=True", "BootstrapReady=True", "NodeHealthy=True"}, conditions); diff != "" {
		t.Errorf("conditions (-want +got):\n%s", diff)
	}
	got.Status.Conditions, got.ResourceVersion, got.TypeMeta = nil, "", metav1.TypeMeta{}
	want := stored.DeepCopy()
	want.Finalizers = []string{clusterv1.MachineFinalizer}
	want.Spec.ProviderID, want.Spec.FailureDomain = ptr.To("provider:///m"), ptr.To("one")
	want.Status.ObservedGeneration, want.Status.BootstrapReady = 3, true
	want.ResourceVersion = ""
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("stored object (-want +got):\n%s", diff)
	}
}
