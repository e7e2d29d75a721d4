package replace

import (
	"context"
	"errors"
	"testing"
	"time"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"sigs.k8s.io/cluster-api/packages/apply"
	"sigs.k8s.io/cluster-api/packages/manifest"
	"sigs.k8s.io/cluster-api/packages/retry"
)

// TestCABundlesThatNobodyWrites: the upgrade goes on without them, also if the client's rate limiter refuses requests that it could not make
// before their deadline.
func TestCABundlesThatNobodyWrites(t *testing.T) {
	hook := &admissionv1.MutatingWebhookConfiguration{ObjectMeta: metav1.ObjectMeta{Name: "w"}, Webhooks: []admissionv1.MutatingWebhook{{
		Name: "a.b.io", ClientConfig: admissionv1.WebhookClientConfig{Service: &admissionv1.ServiceReference{Namespace: "n", Name: "s"}},
	}}}
	reads := 0
	limited := interceptor.Funcs{Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, o client.Object, opts ...client.GetOption) error {
		if _, ok := ctx.Deadline(); ok {
			return errors.New("client rate limiter Wait returned an error: rate: Wait(n=1) would exceed context deadline")
		}
		reads++
		return c.Get(ctx, key, o, opts...)
	}}
	c := fake.NewClientBuilder().WithScheme(clientgoscheme.Scheme).WithObjects(hook).WithInterceptorFuncs(limited).Build()
	desired := &unstructured.Unstructured{}
	desired.SetGroupVersionKind(admissionv1.SchemeGroupVersion.WithKind("MutatingWebhookConfiguration"))
	desired.SetName("w")
	r := &run{Replacer: &Replacer{Client: c, Writer: &apply.Writer{Client: c, Backoff: retry.Backoff()}}, live: map[manifest.Key]*unstructured.Unstructured{}}
	if err := r.awaitTrust(t.Context(), desired, time.Millisecond, 20*time.Millisecond); err != nil || reads == 0 {
		t.Errorf("after %d reads: %v", reads, err)
	}
}
