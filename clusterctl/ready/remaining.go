package ready

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	controlplanev1 "sigs.k8s.io/cluster-api/api/controlplane/v1beta2"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/clusterctl/tree"
)

// maxNames is how many objects a message lists.
const maxNames = 3

// Remaining returns what is missing until a cluster is running: its topology is reconciled, its control plane is
// initialized, and all desired Machines exist and are running. An error means that waiting is pointless.
func Remaining(name types.NamespacedName, objects *tree.Objects) ([]string, error) {
	cluster := objects.Cluster(name)
	if cluster == nil {
		return nil, errors.New("the Cluster was deleted")
	}
	if cluster.GetDeletionTimestamp() != nil {
		return nil, errors.New("the Cluster is being deleted")
	}
	if message := tree.Text(cluster, "status", "failureMessage"); message != "" {
		return nil, fmt.Errorf("the Cluster failed permanently (%s): %s", tree.Text(cluster, "status", "failureReason"), message)
	}
	var list []string
	if tree.True(cluster, "spec", "paused") {
		list = append(list, "the Cluster to be resumed: spec.paused is true")
	}
	list = append(list, topology(name, cluster, objects)...)
	if tree.Text(cluster, "spec", "infrastructureRef", "name") != "" && !tree.True(cluster, "status", "infrastructureReady") {
		list = append(list, "the infrastructure to be ready"+because(cluster, clusterv1.InfrastructureReadyV1Beta1Condition))
	}
	list = append(list, initialized(cluster)...)
	list = append(list, controlPlane(name, cluster, objects)...)
	for _, d := range objects.Of(tree.MachineDeploymentKind, name) {
		list = append(list, replicas(d)...)
	}
	for _, p := range objects.Of(tree.MachinePoolKind, name) {
		list = append(list, pool(p)...)
	}
	return append(list, machines(name, objects)...), nil
}

// topology compares the Cluster's topology with its objects: the condition may still be about an earlier topology.
func topology(name types.NamespacedName, cluster *unstructured.Unstructured, objects *tree.Objects) []string {
	spec, ok, _ := unstructured.NestedMap(cluster.Object, "spec", "topology")
	if !ok {
		return nil
	}
	version, _ := spec["version"].(string)
	why := because(cluster, clusterv1.TopologyReconciledV1Beta1Condition)
	plane := objects.Resolve(cluster, "spec", "controlPlaneRef")
	if plane == nil {
		return []string{"the objects of the topology to be created" + why}
	}
	if has := tree.Text(plane, "spec", "version"); differs(spec, plane, "controlPlane") || has != version && has != "" {
		return []string{"the control plane to match the topology" + why}
	}
	for _, w := range topologyWorkers() {
		if missing := w.unlike(name, spec, version, objects); missing != "" {
			return []string{missing + why}
		}
	}
	if c := tree.ConditionOf(cluster, string(clusterv1.TopologyReconciledV1Beta1Condition)); c == nil || c.Status != "True" {
		return []string{"the topology to be reconciled" + why}
	}
	return nil
}

// workers is a kind of workers in a topology.
type workers struct {
	kind schema.GroupVersionKind
	// field is the list below spec.topology.workers, whose items have the value of the label as their name.
	field, label string
}

func topologyWorkers() []workers {
	return []workers{
		{tree.MachineDeploymentKind, "machineDeployments", clusterv1.ClusterTopologyMachineDeploymentNameLabel},
		{tree.MachinePoolKind, "machinePools", clusterv1.ClusterTopologyMachinePoolNameLabel},
	}
}

// unlike returns the first difference between a topology and the objects, "" for none.
func (w workers) unlike(name types.NamespacedName, topology map[string]any, version string, objects *tree.Objects) string {
	found := map[string]*unstructured.Unstructured{}
	for _, u := range objects.Of(w.kind, name) {
		if part := u.GetLabels()[w.label]; part != "" {
			found[part] = u
		}
	}
	wanted, _, _ := unstructured.NestedSlice(topology, "workers", w.field)
	for _, item := range wanted {
		entry, _ := item.(map[string]any)
		part, _ := entry["name"].(string)
		own, _ := entry["version"].(string)
		u := found[part]
		if u == nil || differs(entry, u) || tree.Text(u, "spec", "template", "spec", "version") != cmp.Or(own, version) {
			return fmt.Sprintf("%s %s to match the topology", w.kind.Kind, part)
		}
		delete(found, part)
	}
	if len(found) == 0 {
		return ""
	}
	return fmt.Sprintf("%s %s, which the topology no longer has, to be deleted", w.kind.Kind, slices.Sorted(maps.Keys(found))[0])
}

// differs reports whether a part of a topology specifies other replicas than the object.
func differs(part map[string]any, made *unstructured.Unstructured, path ...string) bool {
	wanted, ok, _ := unstructured.NestedInt64(part, append(slices.Clone(path), "replicas")...)
	if !ok {
		return false
	}
	found, ok, _ := unstructured.NestedInt64(made.Object, "spec", "replicas")
	return ok && found != wanted
}

func initialized(cluster *unstructured.Unstructured) []string {
	if c := tree.ConditionOf(cluster, string(clusterv1.ControlPlaneInitializedV1Beta1Condition)); c != nil && c.Status == "True" {
		return nil
	}
	return []string{"the control plane to be initialized" + because(cluster, clusterv1.ReadyV1Beta1Condition)}
}

func controlPlane(name types.NamespacedName, cluster *unstructured.Unstructured, objects *tree.Objects) []string {
	plane := objects.Resolve(cluster, "spec", "controlPlaneRef")
	if plane == nil {
		if tree.Text(cluster, "spec", "controlPlaneRef", "name") != "" {
			return []string{"the control plane to be created"}
		}
		return nil
	}
	if late := unobserved(plane); late != nil {
		return late
	}
	wanted, ok, _ := unstructured.NestedInt64(plane.Object, "spec", "replicas")
	if !ok {
		if !tree.True(plane, "status", "ready") {
			return []string{describe(plane) + " to be ready" + because(plane, clusterv1.ReadyV1Beta1Condition)}
		}
		return nil
	}
	found := 0
	for _, m := range objects.Of(tree.MachineKind, name) {
		if _, ok := m.GetLabels()[clusterv1.MachineControlPlaneLabel]; ok {
			found++
		}
	}
	// The control plane's status may be older than its Machines; without Machines it is the only source.
	if n, ok, _ := unstructured.NestedInt64(plane.Object, "status", "replicas"); ok && (found == 0 || int(n) != found) {
		found = int(n)
	}
	updated, known, _ := unstructured.NestedInt64(plane.Object, "status", "updatedReplicas")
	if list := count(plane, int64(found), wanted, updated, known); list != nil {
		return list
	}
	if why := because(plane, controlplanev1.MachinesSpecUpToDateV1Beta1Condition); why != "" {
		return []string{describe(plane) + " to have up-to-date Machines" + why}
	}
	return nil
}

// replicas compares a MachineDeployment's status with its spec.
func replicas(d *unstructured.Unstructured) []string {
	if late := unobserved(d); late != nil {
		return late
	}
	wanted, _, _ := unstructured.NestedInt64(d.Object, "spec", "replicas")
	found, _, _ := unstructured.NestedInt64(d.Object, "status", "replicas")
	updated, _, _ := unstructured.NestedInt64(d.Object, "status", "updatedReplicas")
	return count(d, found, wanted, updated, true)
}

func count(o *unstructured.Unstructured, found, wanted, updated int64, updatedKnown bool) []string {
	switch {
	case found != wanted:
		why := because(o, clusterv1.ReadyV1Beta1Condition)
		return []string{fmt.Sprintf("%s to have %d Machines instead of %d%s", describe(o), wanted, found, why)}
	case updatedKnown && updated != wanted:
		return []string{
			fmt.Sprintf("%s to have %d up-to-date Machines instead of %d%s", describe(o), wanted, updated,
				because(o, clusterv1.ReadyV1Beta1Condition)),
		}
	default:
		return nil
	}
}

// pool compares the Nodes of a MachinePool with its spec. It ignores their readiness, for which the user may have to
// install a network plugin.
func pool(p *unstructured.Unstructured) []string {
	wanted, _, _ := unstructured.NestedInt64(p.Object, "spec", "replicas")
	nodes, _, _ := unstructured.NestedSlice(p.Object, "status", "nodeRefs")
	if int64(len(nodes)) != wanted {
		why := because(p, clusterv1.ReadyV1Beta1Condition)
		return []string{fmt.Sprintf("%s to have %d Nodes instead of %d%s", describe(p), wanted, len(nodes), why)}
	}
	return nil
}

// machines returns the Machines that are not running.
func machines(name types.NamespacedName, objects *tree.Objects) []string {
	var waiting []string
	for _, m := range objects.Of(tree.MachineKind, name) {
		phase := tree.Text(m, "status", "phase")
		if m.GetDeletionTimestamp() == nil && phase == string(clusterv1.MachinePhaseRunning) {
			continue
		}
		if phase == "" {
			phase = string(clusterv1.MachinePhasePending)
		}
		waiting = append(waiting, fmt.Sprintf("%s (%s%s)", m.GetName(), phase, because(m, clusterv1.ReadyV1Beta1Condition)))
	}
	if len(waiting) == 0 {
		return nil
	}
	return []string{"Machines to be running: " + someOf(waiting)}
}

// someOf lists at most maxNames items.
func someOf(list []string) string {
	if n := len(list) - maxNames; n > 0 {
		list = append(slices.Clone(list[:maxNames]), fmt.Sprintf("%d more", n))
	}
	return strings.Join(list, ", ")
}

// unobserved reports an object whose controller has not observed its latest generation.
func unobserved(o *unstructured.Unstructured) []string {
	observed, ok, _ := unstructured.NestedInt64(o.Object, "status", "observedGeneration")
	if ok && observed < o.GetGeneration() || len(status(o)) == 0 {
		return []string{"the controller of " + describe(o) + " to observe its latest generation"}
	}
	return nil
}

func status(o *unstructured.Unstructured) map[string]any {
	m, _ := o.Object["status"].(map[string]any)
	return m
}

// because formats the reason and message of a condition that is not True, as a suffix.
func because(o *unstructured.Unstructured, conditionType clusterv1.ConditionType) string {
	return suffix(tree.ConditionOf(o, string(conditionType)))
}

// suffix formats the reason and message of a condition that is not True, as a suffix. It may be nil.
func suffix(c *tree.Condition) string {
	switch {
	case c == nil || c.Status == "True":
		return ""
	case c.Message != "":
		return fmt.Sprintf(" [%s: %s]", c.Reason, strings.Join(strings.Fields(c.Message), " "))
	default:
		return fmt.Sprintf(" [%s]", c.Reason)
	}
}

func describe(o *unstructured.Unstructured) string { return o.GetKind() + " " + o.GetName() }
