package webhook

import (
	"context"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/util/validation/field"

	inmemoryv1 "sigs.k8s.io/cluster-api/api/infrastructure/inmemory/v1alpha1"
	"sigs.k8s.io/cluster-api/sdk/webhooks"
)

func checkPool(_ context.Context, _, p *inmemoryv1.InMemoryMachinePool) field.ErrorList {
	return checkPoolSpec(&p.Spec, field.NewPath("spec"))
}

func checkPoolSpec(s *inmemoryv1.InMemoryMachinePoolSpec, path *field.Path) field.ErrorList {
	all := CheckBehaviour(s.Template.Behaviour, path.Child("template", "behaviour"))
	if s.Replicas != nil && *s.Replicas < 0 {
		all = append(all, field.Invalid(path.Child("replicas"), *s.Replicas, "must not be negative"))
	}
	return all
}

// checkPoolTemplate validates a template. The topology controller determines by a dry run whether a template must be rotated, so it may
// try to change one.
func checkPoolTemplate(ctx context.Context, before, t *inmemoryv1.InMemoryMachinePoolTemplate) field.ErrorList {
	path := field.NewPath("spec", "template", "spec")
	if before != nil && !webhooks.TopologyDryRun(ctx, t) && !equality.Semantic.DeepEqual(before.Spec.Template.Spec, t.Spec.Template.Spec) {
		return field.ErrorList{field.Forbidden(path, "is immutable: create a new InMemoryMachinePoolTemplate and refer to it")}
	}
	return checkPoolSpec(&t.Spec.Template.Spec, path)
}
