package webhooks

import (
	"context"
	"encoding/json"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	admissionv1 "k8s.io/api/admission/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta1"
	"sigs.k8s.io/cluster-api/sdk/conversion"
)

// patient sets the drain timeout of Machines that have none.
type patient struct{}

func (patient) Default(_ context.Context, m *clusterv1.Machine) error {
	if m.Spec.NodeDrainTimeout == nil {
		m.Spec.NodeDrainTimeout = &metav1.Duration{Duration: 10 * time.Second}
	}
	return nil
}

const (
	olderMachine = `{"apiVersion":"cluster.x-k8s.io/v1beta1","kind":"Machine","metadata":{"name":"m","namespace":"n"},"spec":{"clusterName":"c",
		"bootstrap":{"dataSecretName":"d"},"infrastructureRef":{"apiVersion":"g.io/v1beta1","kind":"K","name":"i","namespace":"n"}}}`
	newerMachine = `{"apiVersion":"cluster.x-k8s.io/v1beta2","kind":"Machine","metadata":{"name":"m","namespace":"n"},"spec":{"clusterName":"c",
		"bootstrap":{"dataSecretName":"d"},"infrastructureRef":{"apiGroup":"g.io","kind":"K","name":"i"}}}`
	drained = `{"apiVersion":"cluster.x-k8s.io/v1beta2","kind":"Machine","metadata":{"name":"m"},"spec":{"clusterName":"c",
		"bootstrap":{"dataSecretName":"d"},"infrastructureRef":{"apiGroup":"g.io","kind":"K","name":"i"},"deletion":{"nodeDrainTimeoutSeconds":5}}}`
)

// machineRequest is a request in the version of its object.
func machineRequest(t *testing.T, object, old string) admission.Request {
	t.Helper()
	kind := metav1.TypeMeta{}
	if err := json.Unmarshal([]byte(object), &kind); err != nil {
		t.Fatal(err)
	}
	r := admission.Request{AdmissionRequest: admissionv1.AdmissionRequest{
		Kind: metav1.GroupVersionKind(kind.GroupVersionKind()), Operation: admissionv1.Create, Object: runtime.RawExtension{Raw: []byte(object)},
	}}
	if old != "" {
		r.Operation, r.OldObject.Raw = admissionv1.Update, []byte(old)
	}
	return r
}

// Defaults are patches in the version of the object, and change nothing else.
func TestDefaultsInEachVersion(t *testing.T) {
	gvk := clusterv1.GroupVersion.WithKind("Machine")
	handler := versioned{inner: newDefaulting(&clusterv1.Machine{}, patient{}).Handler, kind: gvk, registry: conversion.New(nil)}
	for _, tc := range []struct{ reason, object, want string }{
		{"the version of the handler", olderMachine, `[{"op":"add","path":"/spec/nodeDrainTimeout","value":"10s"}]`},
		{"another version, with the field elsewhere", newerMachine, `[{"op":"add","path":"/spec/deletion","value":{"nodeDrainTimeoutSeconds":10}}]`},
		{"nothing to set", drained, `[]`},
	} {
		t.Run(tc.reason, func(t *testing.T) {
			response := handler.Handle(t.Context(), machineRequest(t, tc.object, ""))
			got, err := json.Marshal(response.Patches)
			if err != nil || !response.Allowed {
				t.Fatalf("%v, %v", response, err)
			}
			if diff := cmp.Diff(tc.want, string(got)); diff != "" {
				t.Errorf("patches (-want +got):\n%s", diff)
			}
		})
	}
}

// The verdict does not depend on the version.
func TestVerdictsInEachVersion(t *testing.T) {
	gvk := clusterv1.GroupVersion.WithKind("Machine")
	validator := Check(gvk, func(_ context.Context, before, after *clusterv1.Machine) field.ErrorList {
		if before == nil {
			return nil
		}
		return Immutable(field.NewPath("spec", "nodeDrainTimeout"), before.Spec.NodeDrainTimeout, after.Spec.NodeDrainTimeout)
	})
	s := runtime.NewScheme()
	if err := clusterv1.AddToScheme(s); err != nil {
		t.Fatal(err)
	}
	handler := versioned{inner: admission.WithValidator(s, validator).Handler, kind: gvk, registry: conversion.New(nil)}
	for _, tc := range []struct {
		reason, object, old string
		allowed             bool
		code                int32
	}{
		{"a new object of another version", newerMachine, "", true, 200},
		{"nothing changes", newerMachine, newerMachine, true, 200},
		{"a field changes that is elsewhere in the version of the handler", drained, newerMachine, false, 422},
		{"an object that cannot be converted", `{"apiVersion":"cluster.x-k8s.io/v1beta2","kind":"Machine","metadata":7}`, "", false, 400},
	} {
		t.Run(tc.reason, func(t *testing.T) {
			response := handler.Handle(t.Context(), machineRequest(t, tc.object, tc.old))
			if response.Allowed != tc.allowed || response.Result.Code != tc.code {
				t.Errorf("allowed %t, %v", response.Allowed, apierrors.FromObject(response.Result))
			}
		})
	}
}
