package topology

import (
	"context"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta1"
	"sigs.k8s.io/cluster-api/providers/core/internal/topology/desired"
	"sigs.k8s.io/cluster-api/providers/core/internal/topology/upgrade"
	"sigs.k8s.io/cluster-api/sdk/ssa"
)

// comparison compares the desired objects of a Cluster with the current ones, for one plan.
type comparison struct {
	*Planner
	cluster *clusterv1.Cluster
	current *desired.Current
	want    *desired.Objects
	// live holds the objects that find has read, nil for those that do not exist.
	live map[objectKey]*unstructured.Unstructured
	// kept holds, by desired template, how the live template differs from it although it is not replaced: see fits.
	kept map[*unstructured.Unstructured]ssa.Diff
}

type objectKey struct {
	kind schema.GroupVersionKind
	name string
}

// plan returns the changes and deletions that turn the current objects into the desired ones.
func (c *comparison) plan(ctx context.Context, class *clusterv1.ClusterClass, versions upgrade.Plan, classKinds []*unstructured.Unstructured) (*Plan, error) {
	infrastructure, controlPlane, err := c.refreshReferences(ctx)
	if err != nil {
		return nil, err
	}
	versions.MachineDeployments.NameTaken, versions.MachinePools.NameTaken = c.want.DeploymentsWaiting, c.want.PoolsWaiting
	plan := &Plan{
		Class: class, Labels: desired.ClusterLabels(c.cluster), Versions: versions,
		InfrastructureRef: infrastructure, ControlPlaneRef: controlPlane,
		Kinds: append(classKinds, c.want.InfrastructureCluster, c.want.ControlPlane),
	}
	if plan.Stages, err = c.stages(ctx); err != nil {
		return nil, err
	}
	if plan.heldTemplates, err = c.heldTemplates(); err != nil {
		return nil, err
	}
	plan.Deletions, err = c.deletions(ctx)
	return plan, err
}

// stages returns the changes of all desired objects, in the order in which they are applied.
func (c *comparison) stages(ctx context.Context) ([][]Change, error) {
	ordered, err := c.ordered()
	if err != nil {
		return nil, err
	}
	var stages [][]Change
	for _, objects := range ordered {
		var stage []Change
		for _, object := range objects {
			change, err := c.change(ctx, object)
			if err != nil {
				return nil, err
			}
			stage = append(stage, change)
		}
		stages = append(stages, stage)
	}
	return stages, nil
}

// ordered returns the desired objects in stages: templates and infrastructure cluster, workers, then health checks and control
// plane. Those on hold are left out.
func (c *comparison) ordered() ([][]*unstructured.Unstructured, error) {
	first := []*unstructured.Unstructured{c.want.InfrastructureCluster}
	if c.want.ControlPlaneMachines != nil && !c.want.ControlPlaneOnHold {
		first = append(first, c.want.ControlPlaneMachines)
	}
	var workers, healthChecks []runtime.Object
	for _, md := range c.want.MachineDeployments {
		if md.OnHold {
			continue
		}
		first = append(first, md.Bootstrap, md.Infrastructure)
		workers = append(workers, md.Object)
		if md.HealthCheck != nil {
			healthChecks = append(healthChecks, md.HealthCheck)
		}
	}
	for _, mp := range c.want.MachinePools {
		if mp.OnHold {
			continue
		}
		first = append(first, mp.Bootstrap, mp.Infrastructure)
		workers = append(workers, mp.Object)
	}
	if check := c.want.ControlPlaneHealthCheck; check != nil && !c.want.ControlPlaneOnHold {
		healthChecks = append(healthChecks, check)
	}
	second, err := desiredUnstructured(workers)
	if err != nil {
		return nil, err
	}
	third, err := desiredUnstructured(healthChecks)
	if err != nil {
		return nil, err
	}
	if !c.want.ControlPlaneOnHold {
		third = append(third, c.want.ControlPlane)
	}
	return [][]*unstructured.Unstructured{first, second, third}, nil
}

// change compares one desired object with the live one.
func (c *comparison) change(ctx context.Context, object *unstructured.Unstructured) (Change, error) {
	live, err := c.find(ctx, object.GroupVersionKind(), object.GetName())
	if err != nil {
		return Change{}, err
	}
	change := Change{Live: live, Desired: object}
	if object == c.want.InfrastructureCluster {
		change.Options = leaveEndpoint()
	}
	if err := c.keepSpec(ctx, &change); err != nil {
		return Change{}, err
	}
	return change, c.checkOwnership(live)
}

// keepSpec makes a change leave the spec of a kept template as it is: at most its metadata is applied.
func (c *comparison) keepSpec(ctx context.Context, change *Change) error {
	diff, kept := c.kept[change.Desired]
	if !kept {
		return nil
	}
	if len(diff.Metadata) == 0 {
		change.Kept = true
		return nil
	}
	metadataOnly, err := c.Compare.Keep(ctx, change.Live, change.Desired)
	if err != nil {
		return err
	}
	change.Desired = metadataOnly
	return nil
}

// fits implements desired.Fits. Replacing a template replaces Machines, so a difference between the live and the desired spec is
// not enough: webhooks and policies of other parties change what is applied. The template is replaced only if the desired spec has
// changed since its creation, or the live spec has, and the API server confirms in a dry run that applying the desired spec would
// change the live one.
func (c *comparison) fits(ctx context.Context, template *unstructured.Unstructured) (bool, error) {
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

var _ Comparer = &ssa.Applier{}
