package journal

import (
	"context"
	"crypto/rand"
	"encoding/base64"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	clusterctlv1 "sigs.k8s.io/cluster-api/api/clusterctl/v1alpha3"
)

// entry returns a journal with contents of some bytes that cannot be compressed.
func entry(bytes int) *Entry {
	data := make([]byte, bytes)
	_, _ = rand.Read(data)
	return &Entry{
		Provider: clusterctlv1.Provider{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "infrastructure-toy"}, ProviderName: "toy", Type: "InfrastructureProvider", Version: "v1.0.0"},
		Version:  "v1.1.0",
		Objects: []unstructured.Unstructured{{Object: map[string]any{
			"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": "c"}, "data": map[string]any{"a": base64.StdEncoding.EncodeToString(data)},
		}}},
		Targets: []unstructured.Unstructured{{Object: map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": "d"}}}},
	}
}

func names(t *testing.T, c client.Reader) []string {
	t.Helper()
	list := &corev1.SecretList{}
	if err := c.List(t.Context(), list, client.MatchingLabels{"cluster.x-k8s.io/provider": "infrastructure-toy", "clusterctl.cluster.x-k8s.io": ""}); err != nil {
		t.Fatal(err)
	}
	var found []string
	for _, s := range list.Items {
		found = append(found, s.Name)
	}
	return found
}

func TestWrite(t *testing.T) {
	for _, tc := range []struct {
		reason string
		bytes  int
		want   []string
	}{
		{"A small journal is one Secret.", 10, []string{"clusterctl-upgrade-infrastructure-toy"}},
		{"A large one is split.", 2 << 20, []string{"clusterctl-upgrade-infrastructure-toy", "clusterctl-upgrade-infrastructure-toy-1", "clusterctl-upgrade-infrastructure-toy-2"}},
	} {
		t.Run(tc.reason, func(t *testing.T) {
			c := fake.NewClientBuilder().WithScheme(clientgoscheme.Scheme).Build()
			want := entry(tc.bytes)
			for range 2 { // The second time, after an interruption.
				if err := want.Write(t.Context(), c); err != nil {
					t.Fatal(err)
				}
			}
			if diff := cmp.Diff(tc.want, names(t, c)); diff != "" {
				t.Errorf("Secrets: -want +got:\n%s", diff)
			}
			got, err := List(t.Context(), c)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(map[client.ObjectKey]*Entry{{Namespace: "ns", Name: "infrastructure-toy"}: want}, got, cmpopts.IgnoreUnexported(Entry{})); diff != "" {
				t.Errorf("List(): -want +got:\n%s", diff)
			}
			if err := got[client.ObjectKey{Namespace: "ns", Name: "infrastructure-toy"}].Delete(t.Context(), c); err != nil {
				t.Fatal(err)
			}
			if left := names(t, c); len(left) > 0 {
				t.Errorf("Delete() left %v", left)
			}
		})
	}
}

func TestIncomplete(t *testing.T) {
	const head = "clusterctl-upgrade-infrastructure-toy"
	for _, tc := range []struct {
		reason string
		change func(context.Context, client.Client) error
		want   string
	}{
		{"Without its first part, which is written last, a journal does not count.", func(ctx context.Context, c client.Client) error {
			return c.Delete(ctx, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: head}})
		}, ""},
		{"A missing part is an error.", func(ctx context.Context, c client.Client) error {
			return c.Delete(ctx, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: head + "-1"}})
		}, "Secret ns/" + head + ": part 2 of 3 does not exist"},
		{"So are other contents, which are not quoted.", func(ctx context.Context, c client.Client) error {
			s := &corev1.Secret{}
			if err := c.Get(ctx, client.ObjectKey{Namespace: "ns", Name: head}, s); err != nil {
				return err
			}
			s.Data[dataKey] = []byte("password")
			return c.Update(ctx, s)
		}, "Secret ns/" + head + ": gzip: invalid header"},
	} {
		t.Run(tc.reason, func(t *testing.T) {
			c := fake.NewClientBuilder().WithScheme(clientgoscheme.Scheme).Build()
			if err := entry(2<<20).Write(t.Context(), c); err != nil {
				t.Fatal(err)
			}
			if err := tc.change(t.Context(), c); err != nil {
				t.Fatal(err)
			}
			found, err := List(t.Context(), c)
			if tc.want == "" && (err != nil || len(found) != 0) || tc.want != "" && (err == nil || !strings.Contains(err.Error(), tc.want)) {
				t.Errorf("List(): want an error with %q, got %v, %v", tc.want, found, err)
			}
		})
	}
}

// TestForeign: a Secret of users with the same name is not overwritten.
func TestForeign(t *testing.T) {
	mine := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "clusterctl-upgrade-infrastructure-toy"}}
	c := fake.NewClientBuilder().WithScheme(clientgoscheme.Scheme).WithObjects(mine).Build()
	if err := entry(1).Write(t.Context(), c); err == nil || !strings.Contains(err.Error(), "is not a journal: delete or rename it") {
		t.Errorf("Write(): %v", err)
	}
}

// TestConcurrent: the journal of another process is not overwritten.
func TestConcurrent(t *testing.T) {
	c := fake.NewClientBuilder().WithScheme(clientgoscheme.Scheme).Build()
	if err := entry(10).Write(t.Context(), c); err != nil {
		t.Fatal(err)
	}
	if err := entry(10).Write(t.Context(), c); err == nil || !strings.Contains(err.Error(), "another clusterctl is upgrading this provider") {
		t.Errorf("Write(): %v", err)
	}
}
