package management

import (
	"context"
	"errors"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	clusterv1beta1 "sigs.k8s.io/cluster-api/api/core/v1beta1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/sdk/testenv"
)

// TestStored reads Clusters in v1beta1 from an API server that stores v1beta2 and whose conversion webhook does not answer.
func TestStored(t *testing.T) {
	scheme, err := Scheme()
	testenv.Must(t, err)
	testenv.Must(t, clusterv1.AddToScheme(scheme))
	cluster := &clusterv1.Cluster{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "c"},
		Status:     clusterv1.ClusterStatus{Initialization: clusterv1.ClusterInitializationStatus{InfrastructureProvisioned: new(true)}},
	}
	failure := errors.New("conversion webhook for cluster.x-k8s.io/v1beta2, Kind=Cluster failed: Post: 503")
	fails := func(o any) error {
		switch o := o.(type) {
		case *clusterv1beta1.Cluster, *clusterv1beta1.ClusterList:
			return failure
		case interface{ GetAPIVersion() string }:
			if o.GetAPIVersion() != clusterv1.GroupVersion.String() {
				return failure
			}
		}
		return nil
	}
	server := fake.NewClientBuilder().WithScheme(scheme).WithObjects(cluster).WithInterceptorFuncs(interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, obj client.Object, opts ...client.GetOption) error {
			return errors.Join(fails(obj), c.Get(ctx, key, obj, opts...))
		},
		List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, opts ...client.ListOption) error {
			return errors.Join(fails(list), c.List(ctx, list, opts...))
		},
	}).Build()
	c := stored{server}

	typed := &clusterv1beta1.Cluster{}
	testenv.Must(t, c.Get(t.Context(), client.ObjectKeyFromObject(cluster), typed))
	list := &clusterv1beta1.ClusterList{}
	testenv.Must(t, c.List(t.Context(), list, client.InNamespace("ns")))
	if !typed.Status.InfrastructureReady || len(list.Items) != 1 || !list.Items[0].Status.InfrastructureReady {
		t.Errorf("typed: %v, list: %v", typed.Status, list.Items)
	}

	tree := &unstructured.Unstructured{}
	tree.SetGroupVersionKind(clusterv1beta1.GroupVersion.WithKind("Cluster"))
	testenv.Must(t, c.Get(t.Context(), client.ObjectKeyFromObject(cluster), tree))
	trees := &unstructured.UnstructuredList{}
	trees.SetGroupVersionKind(clusterv1beta1.GroupVersion.WithKind("ClusterList"))
	testenv.Must(t, c.List(t.Context(), trees, client.InNamespace("ns")))
	for _, u := range append(trees.Items, *tree) {
		if ready, _, _ := unstructured.NestedBool(u.Object, "status", "infrastructureReady"); !ready || u.GetAPIVersion() != clusterv1beta1.GroupVersion.String() {
			t.Errorf("untyped: %v", u.Object)
		}
	}
	if len(trees.Items) != 1 {
		t.Errorf("%d untyped Clusters", len(trees.Items))
	}

	missing := client.ObjectKey{Namespace: "ns", Name: "missing"}
	if err := c.Get(t.Context(), missing, typed); !errors.Is(err, failure) {
		t.Errorf("what cannot be read in any version: %v", err)
	}
}
