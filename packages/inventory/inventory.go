// Package inventory reads and writes the record of which providers a management cluster has: one Provider object per
// provider, named by its manifest label, in the provider's namespace. It also reads which providers are declared by objects of the
// operator: clusterctl does not act against it.
//
// It does not look at the providers' own objects.
package inventory

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterctlv1 "sigs.k8s.io/cluster-api/api/clusterctl/v1alpha3"
	"sigs.k8s.io/cluster-api/packages/apply"
	"sigs.k8s.io/cluster-api/packages/components"
)

// CRDName is the name of the CRD of inventory objects.
const CRDName = "providers.clusterctl.cluster.x-k8s.io"

// Inventory is the installed providers of a management cluster, sorted by type in install order, name and namespace.
type Inventory []clusterctlv1.Provider

// Read returns the inventory; it is empty if no provider was ever installed.
func Read(ctx context.Context, c client.Reader) (Inventory, error) {
	list := &clusterctlv1.ProviderList{}
	err := c.List(ctx, list)
	if meta.IsNoMatchError(err) || apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("cannot read the inventory of installed providers: %w", err)
	}
	slices.SortFunc(list.Items, func(a, b clusterctlv1.Provider) int {
		return cmp.Or(
			cmp.Compare(a.GetProviderType().Order(), b.GetProviderType().Order()),
			cmp.Compare(a.ProviderName, b.ProviderName), cmp.Compare(a.Namespace, b.Namespace))
	})
	return list.Items, nil
}

// Of returns the entries of a provider, normally none or one.
func (i Inventory) Of(t clusterctlv1.ProviderType, name string) Inventory {
	var found Inventory
	for _, p := range i {
		if p.GetProviderType() == t && p.ProviderName == name {
			found = append(found, p)
		}
	}
	return found
}

// OfType returns the entries of a type.
func (i Inventory) OfType(t clusterctlv1.ProviderType) Inventory {
	var found Inventory
	for _, p := range i {
		if p.GetProviderType() == t {
			found = append(found, p)
		}
	}
	return found
}

// EnsureCRD installs the CRD of inventory objects. manifests is its manifest.
func EnsureCRD(ctx context.Context, w *apply.Writer, manifests []unstructured.Unstructured) error {
	components.AddLabels(manifests, map[string]string{
		clusterctlv1.ClusterctlLabel: "", clusterctlv1.ClusterctlCoreLabel: clusterctlv1.ClusterctlCoreLabelInventoryValue,
	})
	if err := w.Objects(ctx, manifests); err != nil {
		return err
	}
	return apply.WaitEstablished(ctx, w.Client, CRDName)
}

// Record writes a provider's entry.
func Record(ctx context.Context, w *apply.Writer, p *clusterctlv1.Provider) error {
	object, err := runtime.DefaultUnstructuredConverter.ToUnstructured(p)
	if err != nil {
		return fmt.Errorf("cannot record provider %s: %w", p.Name, err)
	}
	unstructured.RemoveNestedField(object, "metadata", "creationTimestamp")
	return w.Object(ctx, &unstructured.Unstructured{Object: object})
}
