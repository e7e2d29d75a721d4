package inventory

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	clusterctlv1 "sigs.k8s.io/cluster-api/api/clusterctl/v1alpha3"
	"sigs.k8s.io/cluster-api/packages"
)

// declared returns an object with a version, "" for none.
func declared(t clusterctlv1.ProviderType, namespace, name, version string) *unstructured.Unstructured {
	o := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{}}}
	if version != "" {
		o.Object["spec"] = map[string]any{"version": version}
	}
	o.SetGroupVersionKind(DeclarationKind(t))
	o.SetNamespace(namespace)
	o.SetName(name)
	return o
}

func TestReadAndCheck(t *testing.T) {
	for _, tc := range []struct {
		reason  string
		objects []client.Object
		failing error
		want    []string // label, object, version
		checked []string
		err     string
	}{
		{reason: "without an operator, nothing is declared", failing: &meta.NoKindMatchError{}, checked: []string{"cluster-api"}},
		{reason: "what cannot be read is not nothing", failing: errors.New("connection lost"), err: "cannot list the CoreProviders of the operator: connection lost"},
		{
			reason: "objects of all types, with the labels of the inventory",
			objects: []client.Object{
				declared(clusterctlv1.CoreProviderType, "capi-system", "cluster-api", "v1.7.0"),
				declared(clusterctlv1.RuntimeExtensionProviderType, "x", "test", ""),
				declared(clusterctlv1.InfrastructureProviderType, "y", "test", "v2.0.0"),
			},
			want: []string{
				"cluster-api CoreProvider capi-system/cluster-api v1.7.0", "infrastructure-test InfrastructureProvider y/test v2.0.0",
				"runtime-extension-test RuntimeExtensionProvider x/test ",
			},
			checked: []string{"bootstrap-kubeadm", "infrastructure-aws"},
		},
		{
			reason:  "a declared provider is left to the operator",
			objects: []client.Object{declared(clusterctlv1.InfrastructureProviderType, "y", "test", "v2.0.0")},
			want:    []string{"infrastructure-test InfrastructureProvider y/test v2.0.0"}, checked: []string{"cluster-api", "infrastructure-test"},
			err: "provider infrastructure-test is declared by InfrastructureProvider y/test, and the operator would undo the change: delete it",
		},
	} {
		t.Run(tc.reason, func(t *testing.T) {
			scheme := runtime.NewScheme()
			for _, providerType := range packages.Types() {
				kind := DeclarationKind(providerType)
				scheme.AddKnownTypeWithName(kind, &unstructured.Unstructured{})
				kind.Kind += "List"
				scheme.AddKnownTypeWithName(kind, &unstructured.UnstructuredList{})
			}
			c := fake.NewClientBuilder().WithScheme(scheme).WithObjects(tc.objects...).WithInterceptorFuncs(interceptor.Funcs{
				List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, opts ...client.ListOption) error {
					if tc.failing != nil {
						return tc.failing
					}
					return c.List(ctx, list, opts...)
				},
			}).Build()
			found, err := ReadDeclared(t.Context(), c)
			if err == nil {
				var got []string
				for _, label := range slices.Sorted(maps.Keys(found)) {
					got = append(got, label+" "+found[label].String()+" "+found[label].Version())
				}
				if diff := cmp.Diff(tc.want, got); diff != "" {
					t.Errorf("-want +got:\n%s", diff)
				}
				err = found.Check("delete it", tc.checked...)
			}
			if tc.err == "" && err != nil || tc.err != "" && (err == nil || !strings.Contains(err.Error(), tc.err)) {
				t.Errorf("error %v, want %q", err, tc.err)
			}
		})
	}
}
