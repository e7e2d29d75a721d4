package webhook

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/providers/core/internal/topology/check"
	"sigs.k8s.io/cluster-api/providers/core/internal/topology/desired"
	"sigs.k8s.io/cluster-api/sdk/ownership"
)

// defaultPinnedVersions adds a leading "v" to the versions of pinned workers.
func defaultPinnedVersions(workers *clusterv1.WorkersTopology) {
	for i := range workers.MachineDeployments {
		defaultVersion(&workers.MachineDeployments[i].Version)
	}
	for i := range workers.MachinePools {
		defaultVersion(&workers.MachinePools[i].Version)
	}
}

// previousTopology returns the topology of a Cluster, which may be nil.
func previousTopology(cluster *clusterv1.Cluster) *clusterv1.Topology {
	if cluster == nil {
		return &clusterv1.Topology{}
	}
	return &cluster.Spec.Topology
}

// checkPinned validates versions of workers by themselves. Those that the old Cluster has, which may be nil, are valid, so that they do not
// prevent other changes.
func checkPinned(enabled bool, old *clusterv1.Cluster, topology *clusterv1.Topology, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	for _, p := range check.PinnedWorkers(topology, path) {
		switch {
		case p.In(previousTopology(old)) == p.Version:
		case !enabled:
			errs = append(errs, field.Forbidden(p.Path, "versions of workers require the feature gate ClusterTopologyWorkerVersionPinning"))
		default:
			errs = append(errs, check.Version(p.Version, p.Path)...)
		}
	}
	return errs
}

// pinned validates versions of workers against the version of the topology, the class, and the versions that the workers had. The old
// Cluster may be nil, and the class, too, if it is not ready.
func (w *Cluster) pinned(
	ctx context.Context, old, cluster *clusterv1.Cluster, class *clusterv1.ClusterClass, path *field.Path,
) (admission.Warnings, field.ErrorList, error) {
	topology, before := &cluster.Spec.Topology, previousTopology(old)
	present := map[string]map[string]string{} // by kind, as presentVersions returns them
	var errs field.ErrorList
	for _, p := range check.PinnedWorkers(topology, path) {
		was := p.In(before)
		if class != nil && (was != p.Version || old.GetClassKey() != cluster.GetClassKey()) {
			errs = append(errs, check.Listed(p.Version, class, p.Path)...)
		}
		wrong := p.Below(before, topology, path)
		switch {
		case len(wrong) > 0 || was == p.Version:
		case was != "":
			wrong = p.Raised(was)
		// A Cluster that is created while it is paused is moved: its workers had their versions before.
		case old == nil && ptr.Deref(cluster.Spec.Paused, false) || !differ(p.Version, topology.Version):
		default:
			if present[p.Kind] == nil {
				versions, err := w.presentVersions(ctx, cluster, p.Kind)
				if err != nil {
					return nil, nil, err
				}
				present[p.Kind] = versions
			}
			wrong = firstPinned(p, topology.Version, present[p.Kind][p.Name])
		}
		errs = append(errs, wrong...)
	}
	warnings, errs := unlessUnsafe(cluster, errs)
	return warnings, errs, nil
}

// firstPinned rejects the first version of pinned workers unless they have it already, so that it changes nothing. present is empty if they
// do not exist.
func firstPinned(p check.Pinned, topology, present string) field.ErrorList {
	if present == "" {
		return field.ErrorList{field.Invalid(p.Path, p.Version, fmt.Sprintf(
			"must be %s, the version of the topology, because the %s does not exist yet", topology, p.Kind))}
	}
	if !differ(p.Version, present) {
		return nil
	}
	choice := present + ", the present version"
	if differ(present, topology) {
		choice += ", or " + topology + ", the version of the topology"
	}
	return field.ErrorList{field.Invalid(p.Path, p.Version, fmt.Sprintf("must be %s: it can be raised afterwards", choice))}
}

// presentVersions returns the versions of the objects of workers, by their names in the topology.
func (w *Cluster) presentVersions(ctx context.Context, cluster *clusterv1.Cluster, kind string) (map[string]string, error) {
	owned := []client.ListOption{ownership.InCluster(cluster.Namespace, cluster.Name), client.HasLabels{clusterv1.ClusterTopologyOwnedLabel}}
	versions := map[string]string{}
	if kind == desired.MachineDeploymentKind {
		deployments := &clusterv1.MachineDeploymentList{}
		if err := w.options.Reader.List(ctx, deployments, owned...); err != nil {
			return nil, fmt.Errorf("listing MachineDeployments: %w", err)
		}
		for i := range deployments.Items {
			md := &deployments.Items[i]
			versions[md.Labels[clusterv1.ClusterTopologyMachineDeploymentNameLabel]] = md.Spec.Template.Spec.Version
		}
		return versions, nil
	}
	if !w.options.MachinePool {
		return versions, nil
	}
	pools := &clusterv1.MachinePoolList{}
	if err := w.options.Reader.List(ctx, pools, owned...); err != nil {
		return nil, fmt.Errorf("listing MachinePools: %w", err)
	}
	for i := range pools.Items {
		mp := &pools.Items[i]
		versions[mp.Labels[clusterv1.ClusterTopologyMachinePoolNameLabel]] = mp.Spec.Template.Spec.Version
	}
	return versions, nil
}

// expected is which version each group of workers must have before an upgrade.
type expected struct {
	version, next string
	pinned        map[desired.WorkersID]bool
}

// expectedVersions returns that all workers must have a version, except pinned ones: they must be new enough for the version in the
// topology.
func expectedVersions(cluster *clusterv1.Cluster, version string) expected {
	e := expected{version: version, next: cluster.Spec.Topology.Version, pinned: map[desired.WorkersID]bool{}}
	for _, p := range check.PinnedWorkers(&cluster.Spec.Topology, nil) {
		e.pinned[desired.WorkersID{Kind: p.Kind, Name: p.Name}] = true
	}
	return e
}

// of returns what is expected of a group of workers.
func (e expected) of(kind, name string) expectedOfGroup {
	if e.pinned[desired.WorkersID{Kind: kind, Name: name}] {
		return expectedOfGroup{version: e.next, pinned: true}
	}
	return expectedOfGroup{version: e.version}
}

// expectedOfGroup is the version that workers must have or, if they are pinned, must be new enough for.
type expectedOfGroup struct {
	version string
	pinned  bool
}

func (e expectedOfGroup) differs(version string) bool {
	if e.pinned {
		return !check.WithinSkew(version, e.version)
	}
	return differ(version, e.version)
}

func (e expectedOfGroup) kubeletIsRight(version string) bool {
	if e.pinned {
		return check.WithinSkew(version, e.version)
	}
	return check.KubeletHasVersion(version, e.version)
}

// advice returns what to add to a reason about pinned workers.
func (e expectedOfGroup) advice() string {
	if !e.pinned {
		return ""
	}
	return ", which is too old for " + e.version + ": wait for the version in its topology to be rolled out"
}
