package desired

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta1"
	"sigs.k8s.io/cluster-api/core/internal/topology/names"
	"sigs.k8s.io/cluster-api/internal/contract"
)

// rotations bounds how many names are tried for a template with new content.
const rotations = 10

// ContentAnnotation is on templates of topologies: a hash of the spec that was wanted when the template was created.
// What webhooks and policies made of it then is not in it, so it tells a change of what is wanted from a difference that
// others make.
const ContentAnnotation = "topology.cluster.x-k8s.io/content-hash"

// Record puts ContentAnnotation on a desired template: the value of the live one, which is nil if it does not exist yet,
// in which case it is the hash of what is wanted now. Templates that have none, of another release, get none. The hash
// of what is wanted now is returned.
func Record(template, live *unstructured.Unstructured) (wanted string, err error) {
	if wanted, err = names.ContentHash(template); err != nil {
		return "", err
	}
	annotations := template.GetAnnotations()
	delete(annotations, ContentAnnotation)
	recorded, ok := wanted, true
	if live != nil {
		recorded, ok = live.GetAnnotations()[ContentAnnotation]
	}
	if ok {
		if annotations == nil {
			annotations = map[string]string{}
		}
		annotations[ContentAnnotation] = recorded
	}
	template.SetAnnotations(annotations)
	return wanted, nil
}

// Fits says whether a desired template can be applied as it is: it does not exist yet, or its spec would stay the same.
type Fits func(ctx context.Context, template *unstructured.Unstructured) (bool, error)

// Rotate gives a new name to every template whose spec would change and makes its user refer to that name. The new
// name derives from the content: going back to earlier content goes back to the template that has it, if it is still
// there.
func (o *Objects) Rotate(ctx context.Context, cluster *clusterv1.Cluster, fits Fits) error {
	if o.ControlPlaneMachines != nil {
		rotated, err := rotate(ctx, cluster, o.ControlPlaneMachines, cluster.Name, names.ForMachines, fits)
		if err != nil {
			return err
		}
		if rotated {
			if err := contract.ControlPlaneOf(o.ControlPlane).SetInfrastructureRef(RefTo(o.ControlPlaneMachines)); err != nil {
				return err
			}
		}
	}
	for _, md := range o.MachineDeployments {
		prefix := cluster.Name + "-" + md.TopologyName
		if _, err := rotate(ctx, cluster, md.Bootstrap, prefix, names.ForBootstrap+"/"+md.Object.Name, fits); err != nil {
			return err
		}
		if _, err := rotate(ctx, cluster, md.Infrastructure, prefix, names.ForInfrastructure+"/"+md.Object.Name, fits); err != nil {
			return err
		}
		md.setRefs()
	}
	return nil
}

func rotate(ctx context.Context, cluster *clusterv1.Cluster, template *unstructured.Unstructured, prefix, place string, fits Fits) (bool, error) {
	ok, err := fits(ctx, template)
	if ok || err != nil {
		return false, err
	}
	for attempt := range rotations {
		name, err := names.Rotated(cluster, prefix, place, template, attempt)
		if err != nil {
			return false, err
		}
		template.SetName(name)
		if ok, err := fits(ctx, template); ok || err != nil {
			return ok, err
		}
	}
	return false, fmt.Errorf("%s %s/%s: %d templates with names that derive from its content exist with another content: remove those that nothing uses",
		template.GetKind(), template.GetNamespace(), template.GetName(), rotations)
}
