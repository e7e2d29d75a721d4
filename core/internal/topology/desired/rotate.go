package desired

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/json"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta1"
	"sigs.k8s.io/cluster-api/core/internal/topology/names"
	"sigs.k8s.io/cluster-api/provider/contract"
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
//
// Patches were given the names that templates had before. Where they wrote one into a template or the control plane, it is
// replaced by the new one, or the next reconcile would find other content and rotate again.
func (o *Objects) Rotate(ctx context.Context, cluster *clusterv1.Cluster, fits Fits) error {
	if o.ControlPlaneMachines != nil {
		machines := place{cluster, o.ControlPlaneMachines, cluster.Name, names.ForMachines}
		rotated, err := machines.rotate(ctx, fits, o.ControlPlane)
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
		if err := md.rotate(ctx, cluster, fits); err != nil {
			return err
		}
		md.setRefs()
	}
	return nil
}

// rotate rotates both templates, one whose name the other one holds first.
func (d *MachineDeployment) rotate(ctx context.Context, cluster *clusterv1.Cluster, fits Fits) error {
	prefix := cluster.Name + "-" + d.TopologyName
	first := place{cluster, d.Bootstrap, prefix, names.ForBootstrap + "/" + d.Object.Name}
	second := place{cluster, d.Infrastructure, prefix, names.ForInfrastructure + "/" + d.Object.Name}
	if holds(first.template, second.template.GetName()) {
		if holds(second.template, first.template.GetName()) {
			return refuse(ctx, fits, first.template, second.template)
		}
		first, second = second, first
	}
	if _, err := first.rotate(ctx, fits, second.template); err != nil {
		return err
	}
	_, err := second.rotate(ctx, fits)
	return err
}

// refuse is an error if one of two templates that hold each other's names would get another name: so would the other one, and
// then the first again, without end.
func refuse(ctx context.Context, fits Fits, templates ...*unstructured.Unstructured) error {
	for _, template := range templates {
		if ok, err := fits(ctx, template); ok || err != nil {
			if err != nil {
				return err
			}
			continue
		}
		return fmt.Errorf("%s %s and %s %s hold each other's names, so a change of one would replace both without end: "+
			"in the patches of the ClusterClass, use builtin.machineDeployment.name instead of one of them",
			templates[0].GetKind(), templates[0].GetName(), templates[1].GetKind(), templates[1].GetName())
	}
	return nil
}

// place is where a template is used, and how its names start.
type place struct {
	cluster  *clusterv1.Cluster
	template *unstructured.Unstructured
	prefix   string
	use      string
}

// rotate gives the template a new name if its spec would change. Holders may hold its name.
func (p place) rotate(ctx context.Context, fits Fits, holders ...*unstructured.Unstructured) (bool, error) {
	ok, err := fits(ctx, p.template)
	if ok || err != nil {
		return false, err
	}
	for attempt := range rotations {
		name, err := names.Rotated(p.cluster, p.prefix, p.use, p.template, attempt)
		if err != nil {
			return false, err
		}
		if err := p.rename(name, holders); err != nil {
			return false, err
		}
		if ok, err := fits(ctx, p.template); ok || err != nil {
			return ok, err
		}
	}
	return false, fmt.Errorf("%s %s/%s: %d templates with names that derive from its content exist with another content: remove those that nothing uses",
		p.template.GetKind(), p.template.GetNamespace(), p.template.GetName(), rotations)
}

// rename gives the template a name, also where patches wrote the one it had. One that was not generated for this cluster could be
// a word that is there for another reason.
func (p place) rename(name string, holders []*unstructured.Unstructured) error {
	before := p.template.GetName()
	p.template.SetName(name)
	if !strings.HasPrefix(before, p.cluster.Name+"-") {
		return nil
	}
	for _, holder := range append([]*unstructured.Unstructured{p.template}, holders...) {
		if !holds(holder, before) {
			continue
		}
		encoded, err := json.Marshal(holder.Object["spec"])
		if err != nil {
			return fmt.Errorf("encoding the spec of %s %s: %w", holder.GetKind(), holder.GetName(), err)
		}
		spec := map[string]any{}
		if err := json.Unmarshal(bytes.ReplaceAll(encoded, []byte(before), []byte(name)), &spec); err != nil {
			return fmt.Errorf("decoding the spec of %s %s: %w", holder.GetKind(), holder.GetName(), err)
		}
		holder.Object["spec"] = spec
	}
	return nil
}

// holds reports whether a name is somewhere in the spec of an object.
func holds(object *unstructured.Unstructured, name string) bool {
	return name != "" && contains(object.Object["spec"], name)
}

func contains(value any, name string) bool {
	switch v := value.(type) {
	case string:
		return strings.Contains(v, name)
	case []any:
		return slices.ContainsFunc(v, func(one any) bool { return contains(one, name) })
	case map[string]any:
		for key, one := range v {
			if strings.Contains(key, name) || contains(one, name) {
				return true
			}
		}
	}
	return false
}
