package replace

import (
	"context"
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	clusterctlv1 "sigs.k8s.io/cluster-api/api/clusterctl/v1alpha3"
	"sigs.k8s.io/cluster-api/packages"
	"sigs.k8s.io/cluster-api/packages/components"
)

// An object that the list by label does not have is read: it may not exist, or have the label of another provider.
func TestDifferences(t *testing.T) {
	const text = `
{apiVersion: v1, kind: Namespace, metadata: {name: a-system}}
---
{apiVersion: v1, kind: Service, metadata: {name: missing, namespace: a-system}}
---
{apiVersion: v1, kind: ConfigMap, metadata: {name: there, namespace: a-system}, data: {a: b}}
---
{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole, metadata: {name: shared}}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: mirrored, namespace: a-system}
spec:
  selector: null
  strategy: {}
  template:
    metadata: {}
    spec:
      containers: [{name: manager, image: "x/a:v1", resources: {}}, {name: proxy, image: "x/p:v1", resources: {}}]
      initContainers: [{name: init, image: "x/i:v1", resources: {}}]
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: edited, namespace: a-system}
spec: {template: {spec: {containers: [{name: manager, image: "x/a:v1", args: [--b]}]}}}
`
	p := packages.Provider{Name: "a", Type: clusterctlv1.InfrastructureProviderType}
	c, err := components.New(p, []byte(text), components.Options{Version: "v1.0.0"})
	if err != nil {
		t.Fatal(err)
	}
	var live []client.Object
	var present []unstructured.Unstructured
	for i := range c.Objects {
		o := c.Objects[i].DeepCopy()
		switch o.GetName() {
		case "mirrored":
			withContainers(t, o, map[string]any{"name": "manager", "image": "y/a:v1"}, map[string]any{"name": "proxy", "image": "x/p:v1"})
			present = append(present, *o)
		case "edited":
			withContainers(t, o, map[string]any{"name": "manager", "image": "y/a:v1"})
			present = append(present, *o)
		case "missing":
			continue
		case "shared":
			o.SetLabels(map[string]string{"cluster.x-k8s.io/provider": "infrastructure-b"})
		default:
			present = append(present, *o)
		}
		live = append(live, o)
	}
	fakeClient := fake.NewClientBuilder().WithObjects(live...).WithInterceptorFuncs(interceptor.Funcs{
		Create: func(context.Context, client.WithWatch, client.Object, ...client.CreateOption) error {
			return errors.New("a comparison writes")
		},
	}).Build()
	for i := range present {
		if err := fakeClient.Get(t.Context(), client.ObjectKeyFromObject(&present[i]), &present[i]); err != nil {
			t.Fatal(err)
		}
	}
	got, err := (&Replacer{Client: fakeClient}).Differences(t.Context(), Target{Installed: *c.Inventory(), Components: c, Present: present})
	if err != nil {
		t.Fatal(err)
	}
	want := Differences{
		{Object: "ClusterRole shared", Other: true},
		{Object: "Deployment a-system/edited", Images: []string{"x/a:v1 instead of y/a:v1"}, Other: true},
		{Object: "Deployment a-system/mirrored", Images: []string{"x/a:v1 instead of y/a:v1"}},
		{Object: "Service a-system/missing", Other: true},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func withContainers(t *testing.T, o *unstructured.Unstructured, containers ...any) {
	t.Helper()
	if err := unstructured.SetNestedSlice(o.Object, containers, "spec", "template", "spec", "containers"); err != nil {
		t.Fatal(err)
	}
}
