package replace

import (
	"context"
	"errors"
	"io"
	"net/url"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	clusterctlv1 "sigs.k8s.io/cluster-api/api/clusterctl/v1alpha3"
	"sigs.k8s.io/cluster-api/packages"
	"sigs.k8s.io/cluster-api/packages/apply"
	"sigs.k8s.io/cluster-api/packages/components"
	"sigs.k8s.io/cluster-api/packages/manifest"
	"sigs.k8s.io/cluster-api/packages/replace/journal"
)

// TestUpgradeInterrupted: an upgrade that fails because the connection does is left to be continued, an upgrade that the API server rejects is
// rolled back, and one lost response is not noticed.
func TestUpgradeInterrupted(t *testing.T) {
	lost := &url.Error{Op: "Delete", URL: "https://x", Err: io.EOF}
	const all = 1000
	tests := []struct {
		reason   string
		err      error
		times    int
		fails    bool
		isBack   bool
		journals int
	}{
		{reason: "a lost response is repeated", err: lost, times: 1},
		{reason: "the connection stays broken", err: lost, times: all, fails: true, journals: 1},
		{reason: "the API server rejects it", err: apierrors.NewBadRequest("no"), times: 1, fails: true, isBack: true},
	}
	for _, tc := range tests {
		t.Run(tc.reason, func(t *testing.T) {
			scheme := runtime.NewScheme()
			if err := errors.Join(clientgoscheme.AddToScheme(scheme), clusterctlv1.AddToScheme(scheme), appsv1.AddToScheme(scheme)); err != nil {
				t.Fatal(err)
			}
			entry := clusterctlv1.Provider{
				TypeMeta:     metav1.TypeMeta{APIVersion: clusterctlv1.GroupVersion.String(), Kind: clusterctlv1.ProviderKind},
				ObjectMeta:   metav1.ObjectMeta{Namespace: "ns", Name: "infrastructure-toy"},
				ProviderName: "toy", Type: "InfrastructureProvider", Version: "v1.0.0",
			}
			previous, err := manifest.Parse([]byte("{apiVersion: v1, kind: ConfigMap, metadata: {name: previous, namespace: ns}}"))
			if err != nil {
				t.Fatal(err)
			}
			left := tc.times
			c := fake.NewClientBuilder().WithScheme(scheme).WithObjects(entry.DeepCopy(), previous[0].DeepCopy()).WithInterceptorFuncs(interceptor.Funcs{
				Delete: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.DeleteOption) error {
					if left--; left >= 0 && o.GetName() == "previous" {
						return tc.err
					}
					return c.Delete(ctx, o, opts...)
				},
			}).Build()
			u := &Replacer{Client: c, Writer: &apply.Writer{Client: c, Backoff: wait.Backoff{Duration: time.Millisecond, Steps: 3}}, Timeout: time.Second}
			target := Target{Installed: entry, Present: live(t, c, previous), Components: &components.Components{
				Provider: packages.Provider{Name: "toy", Type: clusterctlv1.InfrastructureProviderType}, Version: "v1.1.0", TargetNamespace: "ns",
			}}
			err = u.Upgrade(t.Context(), target, nil)
			var back *FailedError
			if (err != nil) != tc.fails || errors.As(err, &back) != tc.isBack {
				t.Errorf("Upgrade(): %v, want an error %t, rolled back %t", err, tc.fails, tc.isBack)
			}
			journals, err := journal.List(t.Context(), c)
			if err != nil || len(journals) != tc.journals {
				t.Errorf("%d journals, %v, want %d", len(journals), err, tc.journals)
			}
		})
	}
}

// live returns objects as the API server has them.
func live(t *testing.T, c client.Client, objects []unstructured.Unstructured) []unstructured.Unstructured {
	t.Helper()
	var found []unstructured.Unstructured
	for i := range objects {
		o := manifest.Identity(&objects[i])
		if err := c.Get(t.Context(), client.ObjectKeyFromObject(o), o); err != nil {
			t.Fatal(err)
		}
		found = append(found, *o)
	}
	return found
}
