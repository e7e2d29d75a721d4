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
	"sigs.k8s.io/cluster-api/providers/core/internal/topology/names"
	"sigs.k8s.io/cluster-api/sdk/contract"
)

// maxAttempts is how many names are tried for a template with new content.
const maxAttempts = 10

// ContentAnnotation is an annotation of the templates of topologies: a hash of the desired spec at creation. It does not
// depend on what webhooks and policies changed then, so a different hash means that the desired spec has changed.
const ContentAnnotation = "topology.cluster.x-k8s.io/content-hash"

// Record sets ContentAnnotation of a desired template to the value of the live one, or to the current hash if live is nil.
// Live templates without the annotation, from other releases, do not get one. It returns the current hash.
func Record(template, live *unstructured.Unstructured) (hash string, err error) {
	if hash, err = names.ContentHash(template); err != nil {
		return "", err
	}
	annotations := template.GetAnnotations()
	delete(annotations, ContentAnnotation)
	recorded, ok := hash, true
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
	return hash, nil
}

// Fits reports whether a desired template can be applied under its name: the live one does not exist, or its spec would not
// change.
type Fits func(ctx context.Context, template *unstructured.Unstructured) (bool, error)

// Rotate renames every template whose spec would change, and updates the reference to it, except for those on hold. The new name derives from the
// content: a rollback to earlier content uses the earlier template if it still exists.
//
// Patches see the previous names. Where they wrote one into a template or the control plane, it is replaced by the new name:
// otherwise the next reconcile would compute other content and rotate again.
func (o *Objects) Rotate(ctx context.Context, cluster *clusterv1.Cluster, fits Fits) error {
	if o.ControlPlaneMachines != nil && !o.ControlPlaneOnHold {
		machines := rotation{cluster, o.ControlPlaneMachines, cluster.Name, names.ForMachines}
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
		if md.OnHold {
			continue
		}
		if err := md.rotate(ctx, cluster, fits); err != nil {
			return err
		}
		md.setRefs()
	}
	return nil
}

// rotate rotates both templates. If one contains the other's name, the other comes first.
func (d *MachineDeployment) rotate(ctx context.Context, cluster *clusterv1.Cluster, fits Fits) error {
	prefix := cluster.Name + "-" + d.TopologyName
	first := rotation{cluster, d.Bootstrap, prefix, names.ForBootstrap + "/" + d.Object.Name}
	second := rotation{cluster, d.Infrastructure, prefix, names.ForInfrastructure + "/" + d.Object.Name}
	if containsName(first.template, second.template.GetName()) {
		if containsName(second.template, first.template.GetName()) {
			return checkCycle(ctx, fits, first.template, second.template)
		}
		first, second = second, first
	}
	if _, err := first.rotate(ctx, fits, second.template); err != nil {
		return err
	}
	_, err := second.rotate(ctx, fits)
	return err
}

// checkCycle returns an error if one of two templates that contain each other's names has to be renamed: that would change
// and rename the other one, then the first again, endlessly.
func checkCycle(ctx context.Context, fits Fits, templates ...*unstructured.Unstructured) error {
	for _, template := range templates {
		if ok, err := fits(ctx, template); ok || err != nil {
			if err != nil {
				return err
			}
			continue
		}
		return fmt.Errorf("%s %s and %s %s contain each other's names, so a change of one would replace both endlessly: "+
			"in the patches of the ClusterClass, use builtin.machineDeployment.name instead of one of them",
			templates[0].GetKind(), templates[0].GetName(), templates[1].GetKind(), templates[1].GetName())
	}
	return nil
}

// rotation replaces a template, if necessary.
type rotation struct {
	cluster  *clusterv1.Cluster
	template *unstructured.Unstructured
	prefix   string // of the template's names
	purpose  string
}

// rotate renames the template if its spec would change, and reports whether it did. The users may contain its name.
func (r rotation) rotate(ctx context.Context, fits Fits, users ...*unstructured.Unstructured) (bool, error) {
	ok, err := fits(ctx, r.template)
	if ok || err != nil {
		return false, err
	}
	for attempt := range maxAttempts {
		name, err := names.Rotated(r.cluster, r.prefix, r.purpose, r.template, attempt)
		if err != nil {
			return false, err
		}
		if err := r.rename(name, users); err != nil {
			return false, err
		}
		if ok, err := fits(ctx, r.template); ok || err != nil {
			return ok, err
		}
	}
	return false, fmt.Errorf("%s %s/%s: all %d names derived from its content are taken by templates with other content: delete the unused ones",
		r.template.GetKind(), r.template.GetNamespace(), r.template.GetName(), maxAttempts)
}

// rename renames the template, and replaces the previous name where patches wrote it. A name that was not generated for this
// cluster is not replaced: it could be an ordinary word.
func (r rotation) rename(name string, users []*unstructured.Unstructured) error {
	previous := r.template.GetName()
	r.template.SetName(name)
	if !strings.HasPrefix(previous, r.cluster.Name+"-") {
		return nil
	}
	for _, user := range append([]*unstructured.Unstructured{r.template}, users...) {
		if !containsName(user, previous) {
			continue
		}
		encoded, err := json.Marshal(user.Object["spec"])
		if err != nil {
			return fmt.Errorf("encoding the spec of %s %s: %w", user.GetKind(), user.GetName(), err)
		}
		spec := map[string]any{}
		if err := json.Unmarshal(bytes.ReplaceAll(encoded, []byte(previous), []byte(name)), &spec); err != nil {
			return fmt.Errorf("decoding the spec of %s %s: %w", user.GetKind(), user.GetName(), err)
		}
		user.Object["spec"] = spec
	}
	return nil
}

// containsName reports whether a name occurs anywhere in the spec of an object.
func containsName(object *unstructured.Unstructured, name string) bool {
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
