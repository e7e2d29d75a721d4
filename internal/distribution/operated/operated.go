// Package operated finds the providers that are declared by objects of the operator, so that clusterctl does not act against it.
package operated

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterctlv1 "sigs.k8s.io/cluster-api/api/clusterctl/v1alpha3"
	"sigs.k8s.io/cluster-api/internal/distribution"
)

// Objects are the objects of declared providers, described, by the providers' manifest labels.
type Objects map[string]string

// Read returns the objects of a management cluster; none, with one request, if it has no operator.
func Read(ctx context.Context, c client.Reader) (Objects, error) {
	found := Objects{}
	for _, t := range distribution.Types() {
		list := &unstructured.UnstructuredList{}
		list.SetGroupVersionKind(schema.GroupVersionKind{Group: "operator.cluster.x-k8s.io", Version: "v1alpha2", Kind: string(t) + "List"})
		err := c.List(ctx, list)
		switch {
		case meta.IsNoMatchError(err), apierrors.IsNotFound(err):
			return found, nil
		case err != nil:
			return nil, fmt.Errorf("cannot list the %ss of the operator: %w", t, err)
		}
		for _, o := range list.Items {
			found[clusterctlv1.ManifestLabel(o.GetName(), t)] = fmt.Sprintf("%s %s", t, client.ObjectKeyFromObject(&o))
		}
	}
	return found, nil
}

// Check returns an error if one of the providers is declared by an object. instead is what to do, such as "delete that object".
func (o Objects) Check(instead string, labels ...string) error {
	for _, label := range labels {
		if object := o[label]; object != "" {
			return fmt.Errorf("provider %s is declared by %s, and the operator would undo the change: %s", label, object, instead)
		}
	}
	return nil
}
