package desired

import (
	"bytes"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/json"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/providers/core/internal/topology/names"
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

// Rotation gives a template whose spec would change a new name, and updates the reference to it. The new name derives from the
// content: a rollback to earlier content uses the earlier template if it still exists.
//
// Patches see the previous names. Where they wrote one into a template or the control plane, it is replaced by the new name:
// otherwise the next reconcile would compute other content and rotate again.
type Rotation struct {
	// Template is the desired template, under the name to try.
	Template *unstructured.Unstructured

	cluster  *clusterv1.Cluster
	prefix   string // of the template's names
	purpose  string
	attempts int
	// users may contain the name of the template.
	users []*unstructured.Unstructured
	// refer updates the reference to the template.
	refer func() error
	// cyclic is set if another template contains the name of this one, and this one its name.
	cyclic error
}

// Rotations returns the rotations of all templates, except for those on hold. They must be completed in this order: for each, Rename
// is called until no other template with its name has another spec.
func (o *Objects) Rotations(cluster *clusterv1.Cluster) []*Rotation {
	var all []*Rotation
	if o.ControlPlaneMachines != nil && !o.ControlPlaneOnHold {
		all = append(all, &Rotation{
			Template: o.ControlPlaneMachines, cluster: cluster, prefix: cluster.Name, purpose: names.ForMachines,
			users: []*unstructured.Unstructured{o.ControlPlane},
			refer: func() error {
				return o.SetMachines(RefTo(o.ControlPlaneMachines))
			},
		})
	}
	for _, w := range o.Workers {
		if w.Deployment != nil && !w.OnHold {
			all = append(all, w.rotations(cluster)...)
		}
	}
	return all
}

// rotations returns the rotations of both templates. If one contains the other's name, the other comes first.
func (w *Workers) rotations(cluster *clusterv1.Cluster) []*Rotation {
	prefix := cluster.Name + "-" + w.TopologyName
	refer := func() error { w.setRefs(); return nil }
	first := &Rotation{
		Template: w.Bootstrap, cluster: cluster, prefix: prefix, purpose: names.ForBootstrap + "/" + w.Deployment.Name, refer: refer,
	}
	second := &Rotation{
		Template: w.Infrastructure,
		cluster:  cluster,
		prefix:   prefix,
		purpose:  names.ForInfrastructure + "/" + w.Deployment.Name,
		refer:    refer,
	}
	if containsName(first.Template, second.Template.GetName()) {
		if containsName(second.Template, first.Template.GetName()) {
			first.cyclic = cycle(first.Template, second.Template)
			second.cyclic = first.cyclic
		}
		first, second = second, first
	}
	first.users = []*unstructured.Unstructured{second.Template}
	return []*Rotation{first, second}
}

// cycle returns the error of two templates that contain each other's names: renaming one would change and rename the other one, then
// the first again, endlessly.
func cycle(a, b *unstructured.Unstructured) error {
	return fmt.Errorf("%s %s and %s %s contain each other's names, so a change of one would replace both endlessly: "+
		"in the patches of the ClusterClass, use builtin.machineDeployment.name instead of one of them",
		a.GetKind(), a.GetName(), b.GetKind(), b.GetName())
}

// Rename gives the template its next name.
func (r *Rotation) Rename() error {
	if r.cyclic != nil {
		return r.cyclic
	}
	if r.attempts == maxAttempts {
		return fmt.Errorf("%s %s/%s: all %d names derived from its content are taken by templates with other content: delete the unused ones",
			r.Template.GetKind(), r.Template.GetNamespace(), r.Template.GetName(), maxAttempts)
	}
	name, err := names.Rotated(r.cluster, r.prefix, r.purpose, r.Template, r.attempts)
	if err != nil {
		return err
	}
	r.attempts++
	if err := r.rename(name); err != nil {
		return err
	}
	return r.refer()
}

// rename renames the template, and replaces the previous name where patches wrote it. A name that was not generated for this
// cluster is not replaced: it could be an ordinary word.
func (r *Rotation) rename(name string) error {
	previous := r.Template.GetName()
	r.Template.SetName(name)
	if !strings.HasPrefix(previous, r.cluster.Name+"-") {
		return nil
	}
	for _, user := range append([]*unstructured.Unstructured{r.Template}, r.users...) {
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
