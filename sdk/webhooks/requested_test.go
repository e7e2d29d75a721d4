package webhooks

import (
	"testing"

	admissionv1 "k8s.io/api/admission/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"
)

func TestRequestedIn(t *testing.T) {
	for _, tc := range []struct {
		reason  string
		request *admissionv1.AdmissionRequest
		want    bool
	}{
		{reason: "no request"},
		{reason: "the version of the webhook", request: &admissionv1.AdmissionRequest{Kind: metav1.GroupVersionKind{Version: "v1beta2"}}, want: true},
		{reason: "another version", request: &admissionv1.AdmissionRequest{Kind: metav1.GroupVersionKind{Version: "v1beta1"}}},
		{
			reason:  "converted for the webhook",
			request: &admissionv1.AdmissionRequest{Kind: metav1.GroupVersionKind{Version: "v1beta2"}, RequestKind: &metav1.GroupVersionKind{Version: "v1beta1"}},
		},
	} {
		t.Run(tc.reason, func(t *testing.T) {
			ctx := t.Context()
			if tc.request != nil {
				ctx = admission.NewContextWithRequest(ctx, admission.Request{AdmissionRequest: *tc.request})
			}
			if got := RequestedIn(ctx, "v1beta2"); got != tc.want {
				t.Errorf("got %t", got)
			}
		})
	}
}
