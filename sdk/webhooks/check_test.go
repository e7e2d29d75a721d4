package webhooks

import (
	"context"
	"testing"

	admissionv1 "k8s.io/api/admission/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
)

func TestCheck(t *testing.T) {
	v := Check(corev1.SchemeGroupVersion.WithKind("ConfigMap"), func(_ context.Context, before, after *corev1.ConfigMap) field.ErrorList {
		if before == nil {
			return nil
		}
		return Immutable(field.NewPath("data"), before.Data, after.Data)
	})
	a, b := &corev1.ConfigMap{Data: map[string]string{"a": ""}}, &corev1.ConfigMap{Data: map[string]string{"b": ""}}
	going := b.DeepCopy()
	going.DeletionTimestamp = ptr.To(metav1.Now())
	tests := []struct {
		reason        string
		before, after *corev1.ConfigMap
		want          string
	}{
		{"nothing is immutable at creation", nil, a, ""},
		{"nothing changes", a, a, ""},
		{"something changes", a, b, `ConfigMap "" is invalid: data: Forbidden: field is immutable`},
		{"a finalizer is removed from an invalid object", a, going, ""},
	}
	for _, tc := range tests {
		t.Run(tc.reason, func(t *testing.T) {
			var err error
			if tc.before == nil {
				_, err = v.ValidateCreate(t.Context(), tc.after)
			} else {
				_, err = v.ValidateUpdate(t.Context(), tc.before, tc.after)
			}
			got := ""
			if err != nil {
				got = err.Error()
			}
			if got != tc.want {
				t.Errorf("the error is %q, want %q", got, tc.want)
			}
		})
	}
	if _, err := v.ValidateDelete(t.Context(), a); err != nil {
		t.Errorf("deletion: %v", err)
	}
}

func TestTopologyDryRun(t *testing.T) {
	annotated := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{clusterv1.TopologyDryRunAnnotation: ""}}}
	request := func(dry *bool) context.Context {
		return admission.NewContextWithRequest(t.Context(), admission.Request{AdmissionRequest: admissionv1.AdmissionRequest{DryRun: dry}})
	}
	tests := []struct {
		reason string
		ctx    context.Context
		obj    *corev1.ConfigMap
		want   bool
	}{
		{"the topology controller's dry run", request(ptr.To(true)), annotated, true},
		{"the annotation alone is ignored: all clients can set it", request(ptr.To(false)), annotated, false},
		{"a request that does not say", request(nil), annotated, false},
		{"a dry run of another client reports what a write would do", request(ptr.To(true)), &corev1.ConfigMap{}, false},
		{"no request", t.Context(), annotated, false},
	}
	for _, tc := range tests {
		t.Run(tc.reason, func(t *testing.T) {
			if got := TopologyDryRun(tc.ctx, tc.obj); got != tc.want {
				t.Errorf("got %t", got)
			}
		})
	}
}
