package plan

import (
	"context"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/providers/core/internal/topology/desired"
)

// rotate renames the desired templates that do not match the live ones.
func (c *comparison) rotate(ctx context.Context) error {
	for _, rotation := range c.want.Rotations(c.cluster) {
		for {
			matches, err := c.matches(ctx, rotation.Template)
			if err != nil {
				return err
			}
			if matches {
				break
			}
			if err := rotation.Rename(); err != nil {
				return err
			}
		}
	}
	return nil
}

// matches reports whether a desired template can be applied under its name: the live one does not exist, or its spec would not change.
//
// Replacing a template replaces Machines, so a difference between the live and the desired spec is
// not enough: webhooks and policies of other parties change what is applied. The template is replaced only if the desired spec has
// changed since its creation, or the live spec has, and the API server confirms in a dry run that applying the desired spec would
// change the live one.
func (c *comparison) matches(ctx context.Context, template *unstructured.Unstructured) (bool, error) {
	live, err := c.find(ctx, template.GroupVersionKind(), template.GetName())
	if err != nil {
		return false, err
	}
	if live != nil && !live.GetDeletionTimestamp().IsZero() {
		return false, nil
	}
	hash, err := desired.Record(template, live)
	if live == nil || err != nil {
		return err == nil, err
	}
	diff, err := c.Compare.Plan(ctx, live, template)
	if err != nil || !diff.SpecChanged() {
		return err == nil, err
	}
	if !unchangedSinceCreation(template, hash, live) {
		same, err := c.Compare.Unchanged(ctx, live, dryRun(template))
		if err != nil || !same {
			return false, err
		}
	}
	c.kept[template] = diff
	return true, nil
}

// unchangedSinceCreation reports whether the desired spec, with this hash, is the one that the live template was created from,
// and the live spec has not changed since.
func unchangedSinceCreation(template *unstructured.Unstructured, hash string, live *unstructured.Unstructured) bool {
	return hash == template.GetAnnotations()[desired.ContentAnnotation] && live.GetGeneration() == 1
}

// dryRun returns a copy of the template with the annotation that makes webhooks accept a changed spec in a dry run.
func dryRun(template *unstructured.Unstructured) *unstructured.Unstructured {
	out := template.DeepCopy()
	annotations := out.GetAnnotations()
	if annotations == nil {
		annotations = map[string]string{}
	}
	annotations[clusterv1.TopologyDryRunAnnotation] = ""
	out.SetAnnotations(annotations)
	return out
}
