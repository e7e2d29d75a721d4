package step

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/go-logr/logr/testr"
	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta1"
	"sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/sdk/apiversion"
	"sigs.k8s.io/cluster-api/sdk/condition"
	"sigs.k8s.io/cluster-api/sdk/conversion"
)

// newBoundary returns a boundary to an API server that stores Machines in v1beta2.
func newBoundary(t *testing.T, s *runtime.Scheme) *apiversion.Boundary {
	t.Helper()
	discovery := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		sum := sha256.Sum256([]byte("cluster.x-k8s.io/v1beta2/Machine"))
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
		m.Spec.ProviderID = ptr.To("provider:///m")
		m.Status.BootstrapReady = true
		condition.Set(m, condition.True(clusterv1.BootstrapReadyCondition))
		return Done(), nil
	})
	s := runtime.NewScheme()
	if err := clusterv1.AddToScheme(s); err != nil {
		t.Fatal(err)
	}
	if err := v1beta2.AddToScheme(s); err != nil {
		t.Fatal(err)
	}
	stored := &v1beta2.Machine{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "m", Generation: 3}}
	stored.Spec.MinReadySeconds = ptr.To[int32](5) // v1beta1 has no field for it.
	stored.Status.Conditions = []metav1.Condition{{Type: "Ready", Status: metav1.ConditionFalse, Reason: "Waiting", LastTransitionTime: metav1.Unix(1, 0)}}
	server := fake.NewClientBuilder().WithScheme(s).WithObjects(stored).WithStatusSubresource(stored).Build()
	w.Client = newBoundary(t, s).Client(server)
	w.runner.Client, w.runner.Live = w.Client, w.Client

	if _, err := w.reconcile(t); err != nil {
		t.Fatal(err)
	}
	m := w.machine(t)
	if err := w.runner.SetConditions(t.Context(), m, condition.True(clusterv1.MachineNodeHealthyCondition)); err != nil {
		t.Fatal(err)
	}
	if err := w.runner.Patch(t.Context(), m, func() { m.Spec.FailureDomain = ptr.To("one") }); err != nil {
		t.Fatal(err)
	}
	got := &v1beta2.Machine{}
	if err := server.Get(t.Context(), client.ObjectKeyFromObject(stored), got); err != nil {
		t.Fatal(err)
	}
	var conditions []string
	for _, c := range got.Status.Deprecated.V1Beta1.Conditions {
		conditions = append(conditions, fmt.Sprintf("%s=%s", c.Type, c.Status))
	}
	if diff := cmp.Diff([]string{"Ready=True", "BootstrapReady=True", "NodeHealthy=True"}, conditions); diff != "" {
		t.Errorf("conditions (-want +got):\n%s", diff)
	}
	got.Status.Deprecated, got.ResourceVersion, got.TypeMeta = nil, "", metav1.TypeMeta{}
	want := stored.DeepCopy()
	want.Finalizers = []string{clusterv1.MachineFinalizer}
	want.Spec.ProviderID, want.Spec.FailureDomain = "provider:///m", "one"
	want.Status.ObservedGeneration = 3
	want.Status.Initialization.BootstrapDataSecretCreated = ptr.To(true)
	want.ResourceVersion = ""
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("stored object (-want +got):\n%s", diff)
	}
}
