package apply

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/wait"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"sigs.k8s.io/cluster-api/packages/manifest"
)

func quick() wait.Backoff { return wait.Backoff{Duration: time.Millisecond, Steps: 3} }

func parse(t *testing.T, text string) *unstructured.Unstructured {
	t.Helper()
	objects, err := manifest.Parse([]byte(text))
	if err != nil || len(objects) != 1 {
		t.Fatalf("want one object, got %d, %v", len(objects), err)
	}
	return &objects[0]
}

func TestObject(t *testing.T) {
	const webhook = `
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingWebhookConfiguration
metadata: {name: w, labels: {mine: "1"}}
webhooks:
- {name: a, sideEffects: None, admissionReviewVersions: [v1], clientConfig: {caBundle: BUNDLE_A, service: {name: s, namespace: ns}}}
- {name: b, sideEffects: None, admissionReviewVersions: [v1], clientConfig: {service: {name: s, namespace: ns}}}
`
	tests := map[string]struct {
		reason  string
		live    string
		in      string
		want    string
		patches int
	}{
		"New": {
			reason: "Missing objects are created.",
			in:     "{apiVersion: v1, kind: ConfigMap, metadata: {name: c, namespace: ns}, data: {a: '1'}}",
			want:   "{apiVersion: v1, kind: ConfigMap, metadata: {name: c, namespace: ns}, data: {a: '1'}}",
		},
		"Same": {
			reason: "Unchanged objects are not written, regardless of additional fields.",
			live:   "{apiVersion: v1, kind: ConfigMap, metadata: {name: c, namespace: ns, labels: {other: x}}, data: {a: '1', b: '2'}}",
			in:     "{apiVersion: v1, kind: ConfigMap, metadata: {name: c, namespace: ns}, data: {a: '1'}}",
			want:   "{apiVersion: v1, kind: ConfigMap, metadata: {name: c, namespace: ns, labels: {other: x}}, data: {a: '1', b: '2'}}",
		},
		"Merged": {
			reason:  "Differences are merged; other fields are kept.",
			live:    "{apiVersion: v1, kind: ConfigMap, metadata: {name: c, namespace: ns, labels: {other: x}}, data: {a: '0', b: '2'}}",
			in:      "{apiVersion: v1, kind: ConfigMap, metadata: {name: c, namespace: ns}, data: {a: '1'}}",
			want:    "{apiVersion: v1, kind: ConfigMap, metadata: {name: c, namespace: ns, labels: {other: x}}, data: {a: '1', b: '2'}}",
			patches: 1,
		},
		"AggregatedRules": {
			reason: "The rules of an aggregated ClusterRole are not replaced by those of the manifest, which are empty.",
			live:   "{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole, metadata: {name: r}, aggregationRule: {clusterRoleSelectors: [{matchLabels: {a: b}}]}, rules: [{verbs: [get]}]}",
			in:     "{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole, metadata: {name: r}, aggregationRule: {clusterRoleSelectors: [{matchLabels: {a: b}}]}, rules: []}",
			want:   "{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole, metadata: {name: r}, aggregationRule: {clusterRoleSelectors: [{matchLabels: {a: b}}]}, rules: [{verbs: [get]}]}",
		},
		"CABundleKept": {
			reason:  "A CA bundle set at run time survives, by webhook name, even if the manifest has a placeholder.",
			live:    strings.ReplaceAll(webhook, "BUNDLE_A", "TElWRQ=="),
			in:      strings.ReplaceAll(strings.ReplaceAll(webhook, "BUNDLE_A", "Cg=="), `"1"`, `"2"`),
			want:    strings.ReplaceAll(strings.ReplaceAll(webhook, "BUNDLE_A", "TElWRQ=="), `"1"`, `"2"`),
			patches: 1,
		},
		"CABundleOwn": {
			reason:  "A CA bundle that the manifest brings is written.",
			live:    strings.ReplaceAll(webhook, "BUNDLE_A", "TElWRQ=="),
			in:      strings.ReplaceAll(webhook, "BUNDLE_A", "T1dO"),
			want:    strings.ReplaceAll(webhook, "BUNDLE_A", "T1dO"),
			patches: 1,
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			patches := 0
			b := fake.NewClientBuilder().WithScheme(clientgoscheme.Scheme).WithInterceptorFuncs(interceptor.Funcs{
				Patch: func(ctx context.Context, c client.WithWatch, o client.Object, p client.Patch, opts ...client.PatchOption) error {
					patches++
					return c.Patch(ctx, o, p, opts...)
				},
			})
			if tc.live != "" {
				b = b.WithObjects(parse(t, tc.live))
			}
			w := &Writer{Client: b.Build(), Backoff: quick()}
			in := parse(t, tc.in)
			if err := w.Object(t.Context(), in); err != nil {
				t.Fatal(err)
			}
			got := &unstructured.Unstructured{}
			got.SetGroupVersionKind(in.GroupVersionKind())
			if err := w.Client.Get(t.Context(), client.ObjectKeyFromObject(in), got); err != nil {
				t.Fatal(err)
			}
			got.SetResourceVersion("")
			unstructured.RemoveNestedField(got.Object, "metadata", "creationTimestamp")
			if diff := cmp.Diff(parse(t, tc.want).Object, got.Object); diff != "" {
				t.Errorf("%s\nObject(): -want +got:\n%s", tc.reason, diff)
			}
			if patches != tc.patches {
				t.Errorf("%s\nObject(): want %d patches, got %d", tc.reason, tc.patches, patches)
			}
		})
	}
}

func TestCABundleOfCRDKept(t *testing.T) {
	crd := func(bundle string) *unstructured.Unstructured {
		return parse(t, `{apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition, metadata: {name: x}, spec: {conversion: {webhook: {clientConfig: {`+bundle+`service: {name: s}}}}}}`)
	}
	desired := crd("caBundle: Cg==, ")
	keepCABundles(desired, crd("caBundle: TElWRQ==, "))
	if diff := cmp.Diff(crd("caBundle: TElWRQ==, ").Object, desired.Object); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	plain := parse(t, `{apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition, metadata: {name: x}, spec: {}}`)
	keepCABundles(plain, crd("caBundle: TElWRQ==, "))
	if _, ok := plain.Object["spec"].(map[string]any)["conversion"]; ok {
		t.Error("a CRD that no longer converts must not get a conversion back")
	}
}

func TestObjectRetries(t *testing.T) {
	tests := map[string]struct {
		reason string
		err    error
		calls  int
		fails  bool
	}{
		"Transient": {reason: "A webhook that is starting is waited for.", err: apierrors.NewInternalError(errors.New("failed calling webhook")), calls: 2},
		"Lost":      {reason: "The response may be lost.", err: &url.Error{Op: "Post", URL: "https://x", Err: io.EOF}, calls: 2},
		"Broken":    {reason: "It may end in the middle.", err: fmt.Errorf("reading: %w", io.ErrUnexpectedEOF), calls: 2},
		"Canceled":  {reason: "Who gives up does not retry.", err: &url.Error{Op: "Post", URL: "https://x", Err: context.Canceled}, calls: 1, fails: true},
		"Untrusted": {
			reason: "Another server will not be trusted later.", calls: 1, fails: true,
			err: &url.Error{Op: "Post", URL: "https://x", Err: &tls.CertificateVerificationError{Err: x509.UnknownAuthorityError{}}},
		},
		"Invalid":   {reason: "Permanent errors are not retried.", err: apierrors.NewBadRequest("no"), calls: 1, fails: true},
		"Namespace": {reason: "A missing namespace stays missing.", err: apierrors.NewNotFound(corev1.Resource("namespaces"), "n"), calls: 1, fails: true},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			calls := 0
			c := fake.NewClientBuilder().WithScheme(clientgoscheme.Scheme).WithInterceptorFuncs(interceptor.Funcs{
				Create: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.CreateOption) error {
					if calls++; calls == 1 {
						if s := (*apierrors.StatusError)(nil); errors.As(tc.err, &s) && s.ErrStatus.Details != nil && s.ErrStatus.Reason == metav1.StatusReasonNotFound {
							s.ErrStatus.Details.Kind = "namespaces"
						}
						return tc.err
					}
					return c.Create(ctx, o, opts...)
				},
			}).Build()
			w := &Writer{Client: c, Backoff: quick()}
			err := w.Object(t.Context(), parse(t, "{apiVersion: v1, kind: ConfigMap, metadata: {name: c, namespace: ns}}"))
			if (err != nil) != tc.fails || calls != tc.calls {
				t.Errorf("%s\nObject(): want fails %v after %d calls, got %v after %d", tc.reason, tc.fails, tc.calls, err, calls)
			}
			if err != nil && !strings.Contains(err.Error(), "cannot install ConfigMap ns/c: ") {
				t.Errorf("Object(): the error must name the object, got: %v", err)
			}
		})
	}
}

// TestObjectBeingDeleted: an object that is being deleted is created again afterwards, not changed. One that stays is an error.
func TestObjectBeingDeleted(t *testing.T) {
	const config = "{apiVersion: v1, kind: ConfigMap, metadata: {name: c, namespace: ns, finalizers: [x.io/y]}}"
	for reason, stays := range map[string]bool{"it goes": false, "it stays": true} {
		t.Run(reason, func(t *testing.T) {
			live := parse(t, config)
			c := fake.NewClientBuilder().WithScheme(clientgoscheme.Scheme).WithObjects(live).WithInterceptorFuncs(interceptor.Funcs{
				Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, o client.Object, opts ...client.GetOption) error {
					err := c.Get(ctx, key, o, opts...)
					if err != nil || stays || o.GetDeletionTimestamp() == nil {
						return err
					}
					released := o.DeepCopyObject().(client.Object)
					released.SetFinalizers(nil)
					return c.Update(ctx, released)
				},
			}).Build()
			if err := c.Delete(t.Context(), live); err != nil {
				t.Fatal(err)
			}
			err := (&Writer{Client: c, Backoff: quick()}).Object(t.Context(), parse(t, config))
			if stays != (err != nil && strings.Contains(err.Error(), "cannot install ConfigMap ns/c: it is being deleted")) {
				t.Errorf("Object(): %v", err)
			}
		})
	}
}
