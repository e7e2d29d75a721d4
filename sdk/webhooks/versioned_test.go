package webhooks

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	admissionv1 "k8s.io/api/admission/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	clusterv1beta1 "sigs.k8s.io/cluster-api/api/core/v1beta1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/sdk/conversion"
)

// patient sets the drain timeout of Machines that have none, and the status of readiness gates.
type patient struct{}

func (patient) Default(_ context.Context, m *clusterv1.Machine) error {
	if m.Spec.Deletion.NodeDrainTimeoutSeconds == nil {
		m.Spec.Deletion.NodeDrainTimeoutSeconds = ptr.To[int32](10)
	}
	for i := range m.Spec.ReadinessGates {
		m.Spec.ReadinessGates[i].Polarity = clusterv1.PositivePolarityCondition
	}
	return nil
}

// local sets the namespace of references, and refuses versions that are empty.
type local struct{}

func (local) Default(_ context.Context, m *clusterv1beta1.Machine) error {
	if m.Spec.InfrastructureRef.Namespace == "" {
		m.Spec.InfrastructureRef.Namespace = m.Namespace
	}
	return nil
}

func noEmptyVersion(_ context.Context, _, m *clusterv1beta1.Machine) field.ErrorList {
	if m.Spec.Version != nil && *m.Spec.Version == "" {
		return field.ErrorList{field.Required(field.NewPath("spec", "version"), "")}
	}
	return nil
}

const (
	newerMachine = `{"apiVersion":"cluster.x-k8s.io/v1beta2","kind":"Machine","metadata":{"name":"m","namespace":"n"},"spec":{"clusterName":"c",
		"bootstrap":{"dataSecretName":"d"},"infrastructureRef":{"apiGroup":"g.io","kind":"K","name":"i"}}}`
	olderMachine = `{"apiVersion":"cluster.x-k8s.io/v1beta1","kind":"Machine","metadata":{"name":"m","namespace":"n"},"spec":{"clusterName":"c",
		"bootstrap":{"dataSecretName":"d"},"nodeDeletionTimeout":"60s","infrastructureRef":{"apiVersion":"g.io/v1beta1","kind":"K","name":"i"},
		"readinessGates":[{"conditionType":"a"}]}}`
	drained = `{"apiVersion":"cluster.x-k8s.io/v1beta1","kind":"Machine","metadata":{"name":"m","namespace":"n"},"spec":{"clusterName":"c",
		"bootstrap":{"dataSecretName":"d"},"nodeDrainTimeout":"5s","infrastructureRef":{"apiVersion":"g.io/v1beta1","kind":"K","name":"i","namespace":"n"}}}`
	// tainted has what only the newer version has in an annotation.
	tainted = `{"apiVersion":"cluster.x-k8s.io/v1beta1","kind":"Machine","metadata":{"name":"m","namespace":"n","annotations":{"cluster.x-k8s.io/conversion-data":
		"{\"apiVersion\":\"cluster.x-k8s.io/v1beta2\",\"kind\":\"Machine\",\"spec\":{\"taints\":[{\"key\":\"a\",\"effect\":\"NoSchedule\",\"propagation\":\"Always\"}]}}"}},
		"spec":{"clusterName":"c","bootstrap":{"dataSecretName":"d"},"infrastructureRef":{"apiVersion":"g.io/v1beta1","kind":"K","name":"i","namespace":"n"}}}`
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

// olderScheme has the types of both versions.
func olderScheme(t *testing.T) *runtime.Scheme {
	t.Helper()
	s := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clusterv1.AddToScheme, clusterv1beta1.AddToScheme} {
		if err := add(s); err != nil {
			t.Fatal(err)
		}
	}
	return s
}

// Defaults are patches in the version of the object, and change nothing else.
func TestDefaultsInEachVersion(t *testing.T) {
	handler := versioned{
		inner: newDefaulting(&clusterv1.Machine{}, patient{}).Handler, kind: clusterv1.GroupVersion.WithKind("Machine"),
		registry: conversion.New(nil), scheme: olderScheme(t),
		older: map[string]admission.Handler{"v1beta1": OlderVersion(&clusterv1beta1.Machine{}, local{}, nil).mutate},
	}
	for _, tc := range []struct{ reason, object, want string }{
		{"the version of the handler", newerMachine, `[{"op":"add","path":"/spec/deletion","value":{"nodeDrainTimeoutSeconds":10}}]`},
		{"an older version, with a field elsewhere, one in a list, and one of its own", olderMachine, `[{"op":"add","path":"/spec/infrastructureRef/namespace","value":"n"},` +
			`{"op":"add","path":"/spec/nodeDrainTimeout","value":"10s"},{"op":"replace","path":"/spec/readinessGates","value":[{"conditionType":"a","polarity":"Positive"}]}]`},
		{"nothing to set", drained, `[]`},
		{"only what the older version has", strings.Replace(drained, `,"namespace":"n"}}}`, `}}}`, 1), `[{"op":"add","path":"/spec/infrastructureRef/namespace","value":"n"}]`},
		{"the annotation of the conversion stays", tainted, `[{"op":"add","path":"/spec/nodeDrainTimeout","value":"10s"}]`},
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

// The verdict does not depend on the version, except for what only an older version can express.
func TestVerdictsInEachVersion(t *testing.T) {
	gvk, s := clusterv1.GroupVersion.WithKind("Machine"), olderScheme(t)
	validator := Check(gvk, func(_ context.Context, before, after *clusterv1.Machine) field.ErrorList {
		if before == nil {
			return nil
		}
		return Immutable(field.NewPath("spec", "deletion"), before.Spec.Deletion, after.Spec.Deletion)
	})
	older := OlderVersion(&clusterv1beta1.Machine{}, nil, Check(gvk, noEmptyVersion))
	handler := versioned{
		inner: admission.WithValidator(s, validator).Handler, kind: gvk, registry: conversion.New(nil), scheme: s,
		older: map[string]admission.Handler{"v1beta1": older.validate(s)},
	}
	undrained := strings.Replace(drained, `"nodeDrainTimeout":"5s",`, "", 1)
	for _, tc := range []struct {
		reason, object, old string
		allowed             bool
		message             string
	}{
		{"a new object of another version", olderMachine, "", true, ""},
		{"nothing changes", olderMachine, olderMachine, true, ""},
		{"a field changes that is elsewhere in the version of the handler", drained, undrained, false, "spec.deletion: Forbidden: field is immutable"},
		{"what only the older version can express", strings.Replace(undrained, `"clusterName"`, `"version":"","clusterName"`, 1), "", false, "spec.version: Required value"},
		{"an object that is no object", `{"apiVersion":"cluster.x-k8s.io/v1beta1","kind":"Machine","metadata":7}`, "", false, "cannot unmarshal number"},
		{"a value that is no text", strings.Replace(undrained, `"c"`, `true`, 1), "", false, "spec.clusterName of type string"},
	} {
		t.Run(tc.reason, func(t *testing.T) {
			response := handler.Handle(t.Context(), machineRequest(t, tc.object, tc.old))
			if response.Allowed != tc.allowed || !tc.allowed && !strings.Contains(response.Result.Message, tc.message) {
				t.Errorf("allowed %t, %v", response.Allowed, apierrors.FromObject(response.Result))
			}
		})
	}
}

// An object that does not fit its type has the same error in each version.
func TestObjectsThatCannotBeConverted(t *testing.T) {
	handler := versioned{
		inner: newDefaulting(&clusterv1.Machine{}, patient{}).Handler, kind: clusterv1.GroupVersion.WithKind("Machine"),
		registry: conversion.New(nil), scheme: olderScheme(t),
	}
	for _, object := range []string{newerMachine, drained} {
		response := handler.Handle(t.Context(), machineRequest(t, strings.Replace(object, `"c"`, `1.30`, 1), ""))
		if response.Allowed || response.Result.Code != 400 || !strings.Contains(response.Result.Message, "spec.clusterName of type string: the value must be a text: quote it") {
			t.Errorf("%t, %s", response.Allowed, response.Result.Message)
		}
	}
}
