package topology

import (
	"context"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta1"
	"sigs.k8s.io/cluster-api/core/internal/topology/desired"
	"sigs.k8s.io/cluster-api/core/internal/topology/upgrade"
	"sigs.k8s.io/cluster-api/provider/ssa"
)

// changes compares what is wanted with what there is.
type changes struct {
	*Planner
	cluster *clusterv1.Cluster
	now     *desired.Current
	want    *desired.Objects
	// live has what was read already; nil for what does not exist.
	live map[objectKey]*unstructured.Unstructured
	// kept has the templates that stay although they differ from what is wanted, and the difference.
	kept map[*unstructured.Unstructured]ssa.Diff
}

type objectKey struct {
	kind schema.GroupVersionKind
	name string
}

func (c *changes) plan(ctx context.Context, class *clusterv1.ClusterClass, versions upgrade.Plan, kinds []*unstructured.Unstructured) (*Plan, error) {
	infrastructure, controlPlane, err := c.refresh(ctx)
	if err != nil {
		return nil, err
	}
	plan := &Plan{
		Class: class, Labels: desired.ClusterLabels(c.cluster), Versions: versions, Waiting: c.want.Waiting,
		InfrastructureRef: infrastructure, ControlPlaneRef: controlPlane,
		Kinds:      append(kinds, c.want.InfrastructureCluster, c.want.ControlPlane),
		Unattended: c.Unattended.Made(len(c.want.MachinePools) > 0, c.want.HasHealthChecks()),
	}
	stages, err := c.stages()
	if err != nil {
		return nil, err
	}
	for _, stage := range stages {
		var all []Change
		for _, object := range stage {
			change, err := c.change(ctx, object)
			if err != nil {
				return nil, err
			}
			all = append(all, change)
		}
		plan.Stages = append(plan.Stages, all)
	}
	plan.Deletions, err = c.deletions(ctx)
	return plan, err
}

// stages are all wanted objects, in the order in which they are applied.
func (c *changes) stages() ([][]*unstructured.Unstructured, error) {
	first := []*unstructured.Unstructured{c.want.InfrastructureCluster}
	if c.want.ControlPlaneMachines != nil {
		first = append(first, c.want.ControlPlaneMachines)
	}
	var workers []runtime.Object
	var checks []runtime.Object
	for _, md := range c.want.MachineDeployments {
		first = append(first, md.Bootstrap, md.Infrastructure)
		workers = append(workers, md.Object)
		if md.HealthCheck != nil {
			checks = append(checks, md.HealthCheck)
		}
	}
	for _, mp := range c.want.MachinePools {
		first = append(first, mp.Bootstrap, mp.Infrastructure)
		workers = append(workers, mp.Object)
	}
	if check := c.want.ControlPlaneHealthCheck; check != nil {
		checks = append(checks, check)
	}
	second, err := asUnstructured(workers)
	if err != nil {
		return nil, err
	}
	third, err := asUnstructured(checks)
	if err != nil {
		return nil, err
	}
	return [][]*unstructured.Unstructured{first, second, append(third, c.want.ControlPlane)}, nil
}

func (c *changes) change(ctx context.Context, object *unstructured.Unstructured) (Change, error) {
	live, err := c.find(ctx, object.GroupVersionKind(), object.GetName())
	if err != nil {
		return Change{}, err
	}
	change := Change{Live: live, Desired: object}
	if object == c.want.InfrastructureCluster {
		change.Options = leaveEndpoint()
	}
	if diff, kept := c.kept[object]; kept {
		if change.Kept = len(diff.Metadata) == 0; !change.Kept {
			change.Desired, err = c.Compare.Keep(ctx, live, object)
		}
	}
	if err != nil {
		return Change{}, err
	}
	return change, c.ours(live)
}

// fits implements desired.Fits. A difference that only the live template shows is no reason to replace Machines: other
// people's webhooks and policies rewrite what is applied. So a template is replaced only if it was made of another
// content, or somebody has changed it since, and the API server confirms in a dry run that applying what is wanted
// would change it.
func (c *changes) fits(ctx context.Context, template *unstructured.Unstructured) (bool, error) {
	live, err := c.find(ctx, template.GroupVersionKind(), template.GetName())
	if err != nil {
		return false, err
	}
	if live != nil && !live.GetDeletionTimestamp().IsZero() {
		return false, nil
	}
	wanted, err := desired.Record(template, live)
	if live == nil || err != nil {
		return err == nil, err
	}
	diff, err := c.Compare.Plan(ctx, live, template)
	if err != nil || !diff.SpecChanged() {
		return err == nil, err
	}
	if wanted != template.GetAnnotations()[desired.ContentAnnotation] || live.GetGeneration() != 1 {
		same, err := c.Compare.Unchanged(ctx, live, dryRun(template))
		if err != nil || !same {
			return false, err
		}
	}
	c.kept[template] = diff
	return true, nil
}

// dryRun is a template with the annotation that lets webhooks of templates accept a dry run that changes the spec.
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

var _ Comparer = &ssa.Applier{}
