package inventory

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterctlv1 "sigs.k8s.io/cluster-api/api/clusterctl/v1alpha3"
	"sigs.k8s.io/cluster-api/packages"
)

// Declaration is an object that declares a provider.
type Declaration struct {
	unstructured.Unstructured
	// Type is that of the provider, and the object's kind.
	Type clusterctlv1.ProviderType
}

// String returns kind and key, for messages.
func (o Declaration) String() string {
	return fmt.Sprintf("%s %s", o.Type, client.ObjectKeyFromObject(&o))
}

// Version returns spec.version; empty: the operator has not chosen one yet.
func (o Declaration) Version() string {
	version, _, _ := unstructured.NestedString(o.Object, "spec", "version")
	return version
}

// Contract returns the contract that a version of the provider implements, as the operator has recorded it; "" for a version that it has
// not installed.
func (o Declaration) Contract(version string) string {
	if installed, _, _ := unstructured.NestedString(o.Object, "status", "installedVersion"); installed != version {
		return ""
	}
	contract, _, _ := unstructured.NestedString(o.Object, "status", "contract")
	return contract
}

// Declarations are the objects of declared providers, by the providers' manifest labels.
type Declarations map[string]Declaration

// DeclarationKind returns the kind of the objects that declare providers of a type.
func DeclarationKind(t clusterctlv1.ProviderType) schema.GroupVersionKind {
	return schema.GroupVersionKind{Group: "operator.cluster.x-k8s.io", Version: "v1alpha2", Kind: string(t)}
}

// ReadDeclared returns the objects of a management cluster; none, with one request, if it has no operator.
func ReadDeclared(ctx context.Context, c client.Reader) (Declarations, error) {
	found := Declarations{}
	for _, t := range packages.Types() {
		list := &unstructured.UnstructuredList{}
		kind := DeclarationKind(t)
		list.SetGroupVersionKind(kind.GroupVersion().WithKind(kind.Kind + "List"))
		err := c.List(ctx, list)
		switch {
		case meta.IsNoMatchError(err), apierrors.IsNotFound(err):
			return found, nil
		case err != nil:
			return nil, fmt.Errorf("cannot list the %ss of the operator: %w", t, err)
		}
		for _, o := range list.Items {
			found[clusterctlv1.ManifestLabel(o.GetName(), t)] = Declaration{Unstructured: o, Type: t}
		}
	}
	return found, nil
}

// Check returns an error if one of the providers is declared by an object. instead is what to do, such as "delete that object".
func (o Declarations) Check(instead string, labels ...string) error {
	for _, label := range labels {
		if object, ok := o[label]; ok {
			return fmt.Errorf("provider %s is declared by %s, and the operator would undo the change: %s", label, object, instead)
		}
	}
	return nil
}
