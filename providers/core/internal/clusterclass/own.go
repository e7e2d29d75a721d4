package clusterclass

import (
	"context"
	"errors"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/sdk/contract"
	"sigs.k8s.io/cluster-api/sdk/ownership"
	"sigs.k8s.io/cluster-api/sdk/reference"
	"sigs.k8s.io/cluster-api/sdk/step"
)

// own adds the class to the owners of its templates, and waits for templates and kinds that do not exist.
func (c *Controller) own(ctx context.Context, s *scope) (step.Result, error) {
	class := s.ClusterClass
	owner := ownership.Reference(class, clusterv1.GroupVersion.WithKind("ClusterClass"), false)
	var errs []error
	var missing []string
	for _, ref := range templateRefs(class) {
		found, err := c.ownTemplate(ctx, class, ref, owner)
		var notInstalled *contract.NotInstalledError
		switch {
		case errors.As(err, &notInstalled):
			missing = append(missing, "CustomResourceDefinition "+notInstalled.Definition)
			continue
		case err == nil && !found:
			missing = append(missing, ref.Kind+" "+class.Namespace+"/"+ref.Name)
		}
		errs = append(errs, err)
	}
	if err := errors.Join(errs...); err != nil || len(missing) == 0 {
		return step.Done(), err
	}
	return step.Wait(strings.Join(slices.Compact(missing), ", ") + " to exist"), nil
}

// ownTemplate adds the class to the owners of a template. It watches the kind before it reads the template, so that no creation
// is missed.
func (c *Controller) ownTemplate(
	ctx context.Context, class *clusterv1.ClusterClass, ref clusterv1.ClusterClassTemplateReference, owner metav1.OwnerReference,
) (found bool, err error) {
	kind, err := c.Versions.Newest(ctx, ref.GroupVersionKind().GroupKind())
	if err != nil {
		return false, err
	}
	if err := c.Watch(ctx, kind); err != nil {
		return false, err
	}
	template := &clusterv1.ContractVersionedObjectReference{APIGroup: kind.Group, Kind: ref.Kind, Name: ref.Name}
	return reference.AddOwner(ctx, c.Client, c.External, template, class.Namespace, owner)
}
