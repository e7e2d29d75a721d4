package permission

import (
	"context"
	"errors"
	"fmt"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"sigs.k8s.io/cluster-api/test/managers"
)

// TestIPAMManagerUsesItsPermissions is TestManagersUseTheirPermissions for the manager of the in-cluster IPAM provider.
func TestIPAMManagerUsesItsPermissions(t *testing.T) {
	t.Parallel()
	w := start(t, managers.Programs()[0], managers.IPAM())
	w.walkIPAM()
	// The core manager has another walk.
	core := w.managers[0]
	w.managers = w.managers[1:]
	w.compare()
	if err := core.Stop(); err != nil {
		t.Error(err)
	}
}

// ipamObject returns an object of the IPAM group, named like its kind.
func (w *world) ipamObject(version, kind string, spec map[string]any) *unstructured.Unstructured {
	o := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "ipam.cluster.x-k8s.io/" + version, "kind": kind}}
	if spec != nil {
		o.Object["spec"] = spec
	}
	o.SetName("p")
	if kind != "GlobalInClusterIPPool" {
		o.SetNamespace(w.namespace)
	}
	return o
}

// walkIPAM allocates and releases addresses of a pool of each kind, and deletes the pools.
func (w *world) walkIPAM() {
	w.t.Helper()
	namespace := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "Namespace"}}
	namespace.SetName(w.namespace)
	if err := w.Client.Create(w.t.Context(), namespace); err != nil {
		w.t.Fatal(err)
	}
	for _, kind := range []string{"InClusterIPPool", "GlobalInClusterIPPool"} {
		pool := w.ipamObject("v1alpha2", kind, map[string]any{"addresses": []any{"10.0.0.5-10.0.0.9"}, "prefix": int64(24)})
		claim := w.ipamObject("v1beta1", "IPAddressClaim", map[string]any{
			"poolRef": map[string]any{"apiGroup": "ipam.cluster.x-k8s.io", "kind": kind, "name": "p"},
		})
		for _, o := range []client.Object{pool, claim} {
			w.eventually("creating "+o.GetObjectKind().GroupVersionKind().Kind, func(ctx context.Context) error {
				return w.Client.Create(ctx, o.DeepCopyObject().(client.Object))
			})
		}
		w.eventually("the claim to have an address", func(ctx context.Context) error {
			if err := w.Client.Get(ctx, client.ObjectKeyFromObject(claim), claim); err != nil {
				return err
			}
			if name, _, _ := unstructured.NestedString(claim.Object, "status", "addressRef", "name"); name != "p" {
				return fmt.Errorf("status = %v", claim.Object["status"])
			}
			return nil
		})
		for _, o := range []client.Object{claim, pool} {
			if err := w.Client.Delete(w.t.Context(), o); err != nil {
				w.t.Fatal(err)
			}
			w.eventually("the deletion of "+o.GetObjectKind().GroupVersionKind().Kind, func(ctx context.Context) error {
				err := w.Client.Get(ctx, client.ObjectKeyFromObject(o), o)
				if apierrors.IsNotFound(err) {
					return nil
				}
				return errors.Join(errors.New("it exists"), err)
			})
		}
	}
	w.checkMetrics()
}
