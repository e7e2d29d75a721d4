package topology

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta1"
	"sigs.k8s.io/cluster-api/core/internal/topology/desired"
	"sigs.k8s.io/cluster-api/core/internal/topology/upgrade"
	"sigs.k8s.io/cluster-api/provider/contract"
	"sigs.k8s.io/cluster-api/provider/ssa"
)

// changes sets what is wanted against what there is.
type changes struct {
	*Planner
	cluster *clusterv1.Cluster
	now     *desired.Current
	want    *desired.Objects
	// live has what was read already; nil for what does not exist.
	live map[objectKey]*unstructured.Unstructured
	// kept has the templates whose content stays although it is not what is wanted to the letter, and what differs.
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

// find reads an object, once. It is nil if it does not exist.
func (c *changes) find(ctx context.Context, kind schema.GroupVersionKind, name string) (*unstructured.Unstructured, error) {
	key := objectKey{kind, name}
	if known, ok := c.live[key]; ok {
		return known, nil
	}
	found, err := c.read(ctx, kind, name)
	if client.IgnoreNotFound(err) != nil {
		return nil, fmt.Errorf("reading %s %s: %w", kind.Kind, name, err)
	}
	if err != nil {
		found = nil
	}
	c.live[key] = found
	return found, nil
}

// read reads kinds of our own as what they are, so that they are not cached a second time.
func (c *changes) read(ctx context.Context, kind schema.GroupVersionKind, name string) (*unstructured.Unstructured, error) {
	typed := typedObject(kind)
	if typed == nil {
		return c.External.Exact(ctx, &corev1.ObjectReference{APIVersion: kind.GroupVersion().String(), Kind: kind.Kind, Name: name}, c.cluster.Namespace)
	}
	if known := c.listed(kind.Kind, name); known != nil {
		typed = known
	} else if err := c.Reader.Get(ctx, client.ObjectKey{Namespace: c.cluster.Namespace, Name: name}, typed); err != nil {
		return nil, err
	}
	typed.GetObjectKind().SetGroupVersionKind(kind)
	return toUnstructured(typed)
}

// listed are the workers that were read already.
func (c *changes) listed(kind, name string) client.Object {
	for _, md := range c.now.MachineDeployments {
		if kind == "MachineDeployment" && md.Name == name {
			return md
		}
	}
	for _, mp := range c.now.MachinePools {
		if kind == "MachinePool" && mp.Name == name {
			return mp
		}
	}
	return nil
}

// typedObject is an empty object of a kind of this group, nil for all other kinds.
func typedObject(kind schema.GroupVersionKind) client.Object {
	if kind.GroupVersion() != clusterv1.GroupVersion {
		return nil
	}
	switch kind.Kind {
	case "MachineDeployment":
		return &clusterv1.MachineDeployment{}
	case "MachinePool":
		return &clusterv1.MachinePool{}
	case "MachineHealthCheck":
		return &clusterv1.MachineHealthCheck{}
	}
	return nil
}

// ours is an error for an object that has a name of ours and belongs to something else: it must not be taken over.
func (c *changes) ours(live *unstructured.Unstructured) error {
	if live == nil {
		return nil
	}
	named := func(ref *corev1.ObjectReference) bool {
		return ref != nil && ref.Kind == live.GetKind() && ref.Name == live.GetName()
	}
	_, owned := live.GetLabels()[clusterv1.ClusterTopologyOwnedLabel]
	cluster := live.GetLabels()[clusterv1.ClusterNameLabel]
	if (owned && cluster == c.cluster.Name) || named(c.cluster.Spec.InfrastructureRef) || named(c.cluster.Spec.ControlPlaneRef) {
		return nil
	}
	return fmt.Errorf("%s exists and is not part of the topology of this Cluster (labels %s and %s): delete or rename it, or choose another naming strategy in the ClusterClass",
		describe(live), clusterv1.ClusterTopologyOwnedLabel, clusterv1.ClusterNameLabel)
}

// deletions are the objects that the topology had and has no longer.
func (c *changes) deletions(ctx context.Context) ([]*unstructured.Unstructured, error) {
	d := deletion{changes: c}
	workers := c.cluster.Spec.Topology.Workers
	keptDeployments, keptPools := map[string]bool{}, map[string]bool{}
	if workers != nil {
		for i := range workers.MachineDeployments {
			keptDeployments[workers.MachineDeployments[i].Name] = true
		}
		for i := range workers.MachinePools {
			keptPools[workers.MachinePools[i].Name] = true
		}
	}
	for _, name := range sortedKeys(c.now.MachineDeployments) {
		if !keptDeployments[name] {
			// Its templates go with it: package templates sees to that.
			object := c.now.MachineDeployments[name].Name
			d.delete(ctx, clusterv1.GroupVersion.WithKind("MachineHealthCheck"), object)
			d.delete(ctx, clusterv1.GroupVersion.WithKind("MachineDeployment"), object)
		}
	}
	for _, name := range sortedKeys(c.now.MachinePools) {
		if !keptPools[name] {
			d.delete(ctx, clusterv1.GroupVersion.WithKind("MachinePool"), c.now.MachinePools[name].Name)
		}
	}
	if err := d.controlPlane(ctx); err != nil {
		return nil, err
	}
	for _, md := range c.want.MachineDeployments {
		d.machineDeployment(ctx, md)
	}
	return d.found, d.err
}

// deletion collects what is to be deleted, up to the first error.
type deletion struct {
	*changes
	found []*unstructured.Unstructured
	err   error
}

// delete adds an object of the topology if it exists and nobody has deleted it yet.
func (d *deletion) delete(ctx context.Context, kind schema.GroupVersionKind, name string) {
	if d.err == nil && typedObject(kind) == nil {
		// What refers to it may name a version that is not served any more.
		kind, d.err = d.External.Versions.Newest(ctx, kind.GroupKind())
	}
	if d.err != nil {
		return
	}
	var live *unstructured.Unstructured
	if live, d.err = d.find(ctx, kind, name); live == nil {
		return
	}
	if live.GetDeletionTimestamp().IsZero() && d.ours(live) == nil {
		d.found = append(d.found, live)
	}
}

// controlPlane adds a health check that was switched off and a template that was rotated away. Control planes copy
// their template when they make a Machine, so nothing else uses it.
func (d *deletion) controlPlane(ctx context.Context) error {
	if d.want.ControlPlaneHealthCheck == nil {
		d.delete(ctx, clusterv1.GroupVersion.WithKind("MachineHealthCheck"), d.want.ControlPlane.GetName())
	}
	if d.now.ControlPlane == nil || d.want.ControlPlaneMachines == nil {
		return nil
	}
	old, err := contract.ControlPlaneOf(d.now.ControlPlane).InfrastructureRef()
	if err != nil {
		return err
	}
	if old != nil && !sameObject(old, desired.RefTo(d.want.ControlPlaneMachines)) {
		d.delete(ctx, old.GroupVersionKind(), old.Name)
	}
	return nil
}

// machineDeployment adds a health check that was switched off and templates that were rotated away before any
// MachineSet was made for them. Those that a MachineSet refers to are deleted together with the MachineSet.
func (d *deletion) machineDeployment(ctx context.Context, md *desired.MachineDeployment) {
	if md.HealthCheck == nil {
		d.delete(ctx, clusterv1.GroupVersion.WithKind("MachineHealthCheck"), md.Object.Name)
	}
	current := d.now.MachineDeployments[md.TopologyName]
	if current == nil {
		return
	}
	var old []*corev1.ObjectReference
	if ref := current.Spec.Template.Spec.Bootstrap.ConfigRef; ref != nil && !sameObject(ref, desired.RefTo(md.Bootstrap)) {
		old = append(old, ref)
	}
	if ref := &current.Spec.Template.Spec.InfrastructureRef; !sameObject(ref, desired.RefTo(md.Infrastructure)) {
		old = append(old, ref)
	}
	if len(old) == 0 || d.err != nil {
		return
	}
	var sets clusterv1.MachineSetList
	if err := d.Reader.List(ctx, &sets, client.InNamespace(current.Namespace), client.MatchingLabels{clusterv1.MachineDeploymentNameLabel: current.Name}); err != nil {
		d.err = fmt.Errorf("listing the MachineSets of MachineDeployment %s: %w", current.Name, err)
		return
	}
	for _, ref := range old {
		if !used(sets.Items, ref) {
			d.delete(ctx, ref.GroupVersionKind(), ref.Name)
		}
	}
}

func used(sets []clusterv1.MachineSet, ref *corev1.ObjectReference) bool {
	for i := range sets {
		machine := &sets[i].Spec.Template.Spec
		if sameObject(&machine.InfrastructureRef, ref) || (machine.Bootstrap.ConfigRef != nil && sameObject(machine.Bootstrap.ConfigRef, ref)) {
			return true
		}
	}
	return false
}

// sameObject compares references whatever version they name.
func sameObject(a, b *corev1.ObjectReference) bool {
	return a.Name == b.Name && a.GroupVersionKind().GroupKind() == b.GroupVersionKind().GroupKind()
}

var _ Comparer = &ssa.Applier{}
