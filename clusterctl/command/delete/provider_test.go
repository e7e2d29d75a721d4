package delete

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/discovery"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	clusterctlv1 "sigs.k8s.io/cluster-api/api/clusterctl/v1alpha3"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/clusterctl/iostreams"
	"sigs.k8s.io/cluster-api/clusterctl/management"
	"sigs.k8s.io/cluster-api/clusterctl/tree"
	"sigs.k8s.io/cluster-api/packages/choose"
	"sigs.k8s.io/cluster-api/packages/inventory"
)

// kinds are what the API server has.
type kinds struct {
	discovery.ServerResourcesInterface
}

func (kinds) ServerPreferredResources() ([]*metav1.APIResourceList, error) {
	verbs := metav1.Verbs{"delete", "list"}
	return []*metav1.APIResourceList{
		{GroupVersion: "v1", APIResources: []metav1.APIResource{{Kind: "Namespace", Verbs: verbs}, {Kind: "Service", Verbs: verbs}, {Kind: "Binding"}}},
		{GroupVersion: "apps/v1", APIResources: []metav1.APIResource{{Kind: "Deployment", Verbs: verbs}, {Kind: "ReplicaSet", Verbs: verbs}}},
		{GroupVersion: "admissionregistration.k8s.io/v1", APIResources: []metav1.APIResource{{Kind: "ValidatingWebhookConfiguration", Verbs: verbs}}},
	}, nil
}

func object(apiVersion, kind, namespace, name, provider string) *unstructured.Unstructured {
	o := &unstructured.Unstructured{}
	o.SetAPIVersion(apiVersion)
	o.SetKind(kind)
	o.SetNamespace(namespace)
	o.SetName(name)
	o.SetLabels(map[string]string{clusterctlv1.ClusterctlLabel: "", clusterv1.ProviderNameLabel: provider})
	return o
}

// cluster is a management cluster with two providers in one namespace.
type cluster struct {
	client.WithWatch
	t       *testing.T
	deleted []string
}

func newCluster(t *testing.T) *cluster {
	t.Helper()
	scheme, err := management.Scheme()
	if err != nil {
		t.Fatal(err)
	}
	c := &cluster{t: t}
	objects := []client.Object{object("v1", "Namespace", "", "ns", "infrastructure-toy")}
	for _, label := range []string{"infrastructure-toy", "bootstrap-toy"} {
		p := &clusterctlv1.Provider{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: label}, ProviderName: "toy", Type: "InfrastructureProvider", Version: "v1.0.0"}
		if label == "bootstrap-toy" {
			p.Type = "BootstrapProvider"
		}
		objects = append(objects, p, object("apps/v1", "Deployment", "ns", label, label), object("v1", "Service", "ns", label, label),
			object("admissionregistration.k8s.io/v1", "ValidatingWebhookConfiguration", "", label, label))
	}
	c.WithWatch = fake.NewClientBuilder().WithScheme(scheme).WithObjects(objects...).WithInterceptorFuncs(interceptor.Funcs{
		Delete: func(ctx context.Context, w client.WithWatch, o client.Object, opts ...client.DeleteOption) error {
			kind, err := w.GroupVersionKindFor(o)
			if err != nil {
				return err
			}
			c.deleted = append(c.deleted, kind.Kind+" "+o.GetName())
			return w.Delete(ctx, o, opts...)
		},
	}).Build()
	return c
}

func (c *cluster) run(o ProviderOptions) error {
	streams, _ := iostreams.Test()
	o.IO = streams
	o.Connect = func(management.Kubeconfig) (*management.Cluster, error) {
		return &management.Cluster{Client: c, Host: "https://x", Resources: kinds{}}, nil
	}
	return runProviders(c.t.Context(), &o)
}

// TestTellsAbandoned: whoever deletes all providers is told which Clusters nothing reconciles any more.
func TestTellsAbandoned(t *testing.T) {
	c := newCluster(t)
	for i := range maxNamed + 1 {
		u := object(tree.ClusterKind.GroupVersion().String(), "Cluster", "ns", fmt.Sprintf("c%d", i), "")
		if err := c.Create(t.Context(), u); err != nil {
			t.Fatal(err)
		}
	}
	for all, want := range map[bool]string{false: "", true: "Warning: workload clusters exist: ns/c0, ns/c1, ns/c2 and others. "} {
		streams, buffers := iostreams.Test()
		if err := tellAbandoned(t.Context(), &ProviderOptions{IO: streams, All: all}, &management.Cluster{Client: c}); err != nil {
			t.Fatal(err)
		}
		if got := buffers.Err.String(); want == "" && got != "" || !strings.HasPrefix(got, want) {
			t.Errorf("all: %v: %q", all, got)
		}
	}
}

// TestOrder checks in which order objects are deleted: the inventory last, so that an interrupted run can be repeated.
func TestOrder(t *testing.T) {
	c := newCluster(t)
	if err := c.run(ProviderOptions{Selection: choose.Selection{Infrastructure: []string{"toy"}}}); err != nil {
		t.Fatal(err)
	}
	want := []string{"ValidatingWebhookConfiguration infrastructure-toy", "Deployment infrastructure-toy", "Service infrastructure-toy", "Provider infrastructure-toy"}
	if diff := cmp.Diff(want, c.deleted); diff != "" {
		t.Fatalf("the order of deletions: -want +got:\n%s", diff)
	}
	if have, err := inventory.Read(t.Context(), c); err != nil || len(have) != 1 {
		t.Errorf("the other provider must stay: %v, %v", have, err)
	}
}

func TestProtectsProvidersThatStay(t *testing.T) {
	c := newCluster(t)
	err := c.run(ProviderOptions{Selection: choose.Selection{Infrastructure: []string{"toy"}}, IncludeNamespace: true})
	if err == nil || !strings.Contains(err.Error(), "namespace ns of infrastructure-toy has bootstrap-toy, too") || len(c.deleted) != 0 {
		t.Errorf("a Namespace with a provider that stays must not be deleted, got %v, deleted %v", err, c.deleted)
	}
	if err := c.run(ProviderOptions{All: true, IncludeNamespace: true}); err != nil {
		t.Errorf("a Namespace can be deleted with all its providers: %v", err)
	}
}
