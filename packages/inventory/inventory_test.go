package inventory

import (
	"context"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	clusterctlv1 "sigs.k8s.io/cluster-api/api/clusterctl/v1alpha3"
	"sigs.k8s.io/cluster-api/packages/apply"
	"sigs.k8s.io/cluster-api/packages/retry"
)

func entry(namespace, name, t, version string) *clusterctlv1.Provider {
	return &clusterctlv1.Provider{
		TypeMeta:     metav1.TypeMeta{APIVersion: clusterctlv1.GroupVersion.String(), Kind: clusterctlv1.ProviderKind},
		ObjectMeta:   metav1.ObjectMeta{Namespace: namespace, Name: clusterctlv1.ManifestLabel(name, clusterctlv1.ProviderType(t))},
		ProviderName: name, Type: t, Version: version,
	}
}

func newClient(t *testing.T, f interceptor.Funcs) client.Client {
	t.Helper()
	scheme := runtime.NewScheme()
	if err := clusterctlv1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	return fake.NewClientBuilder().WithScheme(scheme).WithInterceptorFuncs(f).Build()
}

func TestRecordAndRead(t *testing.T) {
	w := &apply.Writer{Client: newClient(t, interceptor.Funcs{}), Backoff: retry.Backoff()}
	for _, p := range []*clusterctlv1.Provider{
		entry("b", "aws", "InfrastructureProvider", "v1.0.0"), entry("a", "cluster-api", "CoreProvider", "v1.6.0"),
		entry("a", "cluster-api", "CoreProvider", "v1.7.0"),
	} {
		if err := Record(t.Context(), w, p); err != nil {
			t.Fatal(err)
		}
	}
	inv, err := Read(t.Context(), w.Client)
	if err != nil {
		t.Fatal(err)
	}
	got := map[string][]string{}
	for _, p := range inv {
		got["all"] = append(got["all"], p.Name+" "+p.Version)
	}
	for _, p := range inv.OfType(clusterctlv1.CoreProviderType) {
		got["core"] = append(got["core"], p.Name)
	}
	for _, p := range inv.Of(clusterctlv1.InfrastructureProviderType, "aws") {
		got["aws"] = append(got["aws"], p.Namespace)
	}
	want := map[string][]string{
		"all": {"cluster-api v1.7.0", "infrastructure-aws v1.0.0"}, "core": {"cluster-api"}, "aws": {"b"},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestReadWithoutCRD(t *testing.T) {
	c := newClient(t, interceptor.Funcs{List: func(context.Context, client.WithWatch, client.ObjectList, ...client.ListOption) error {
		return &meta.NoKindMatchError{}
	}})
	if inv, err := Read(t.Context(), c); err != nil || len(inv) != 0 {
		t.Errorf("Read(): a cluster that never had providers has an empty inventory, got %v, %v", inv, err)
	}
}
