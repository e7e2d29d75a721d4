package patches

import (
	"fmt"
	"reflect"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	clusterv1beta1 "sigs.k8s.io/cluster-api/api/core/v1beta1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/providers/core/internal/topology/variables"
	"sigs.k8s.io/cluster-api/sdk/conversion"
)

// place is where a topology uses a template.
type place string

const (
	infrastructureCluster place = "infrastructure cluster"
	controlPlane          place = "control plane"
	controlPlaneMachines  place = "control plane machines"
	machineDeployment     place = variables.OfMachineDeployment
	machinePool           place = variables.OfMachinePool
)

// item is a template that is being patched.
type item struct {
	place     place
	class     string // of workers
	topology  string // name of the workers in the topology
	source    *unstructured.Unstructured
	target    *unstructured.Unstructured
	holder    Holder
	builtin   map[string]any              // the fields of the builtin variable in addition to the Cluster
	overrides []clusterv1.ClusterVariable // of the control plane, or of workers

	// root is {"spec": ..., "metadata": {"labels": ..., "annotations": ...}}, a copy that patches may change. It is nil until a patch
	// applies.
	root map[string]any
	// inline are the values for inline patches, once computed.
	inline map[string]any
}

// String identifies the item in errors.
func (i *item) String() string {
	where := string(i.place)
	if i.topology != "" {
		where = fmt.Sprintf("%s %q", i.place, i.topology)
	}
	return fmt.Sprintf("%s %s/%s (%s)", i.source.GetKind(), i.source.GetNamespace(), i.source.GetName(), where)
}

// list returns the list that overrides are from.
func (i *item) list() variables.List {
	if i.topology == "" {
		return variables.List{Kind: variables.OfControlPlane}
	}
	return variables.List{Kind: string(i.place), Name: i.topology}
}

// mutable returns root, and copies it from the template first if necessary.
func (i *item) mutable() map[string]any {
	if i.root == nil {
		i.root = changeable(i.source.Object)
	}
	return i.root
}

// object returns the template with the patches so far. It must not be changed.
func (i *item) object() map[string]any {
	if i.root == nil {
		return i.source.Object
	}
	return overlay(i.source.Object, i.root)
}

// holderOf returns a holder of this group. Its version is that of the payloads of v1.7, also in those of v1beta2: extensions compare it.
func holderOf(kind, namespace, name string) Holder {
	return Holder{APIVersion: clusterv1beta1.GroupVersion.String(), Kind: kind, Namespace: namespace, Name: name}
}

// items returns the templates of an input, in a fixed order.
func (in *Input) items() []*item {
	namespace := in.Cluster.Namespace
	cluster := holderOf("Cluster", namespace, in.Cluster.Name)
	cp := in.ControlPlane.Target
	cpBuiltin := map[string]any{"controlPlane": controlPlaneBuiltin(in.Cluster, cp)}
	cpOverrides := in.Cluster.Spec.Topology.ControlPlane.Variables.Overrides
	out := []*item{
		{
			place:  infrastructureCluster,
			source: in.InfrastructureCluster.Source,
			target: in.InfrastructureCluster.Target,
			holder: cluster.at("spec.infrastructureRef"),
		},
		{place: controlPlane, source: in.ControlPlane.Source, target: cp, holder: cluster.at("spec.controlPlaneRef"),
			builtin: cpBuiltin, overrides: cpOverrides},
	}
	if machines := in.ControlPlane.Machines; machines != nil {
		holder := Holder{APIVersion: cp.GetAPIVersion(), Kind: cp.GetKind(), Namespace: namespace, Name: cp.GetName()}
		out = append(out, &item{place: controlPlaneMachines, source: machines.Source, target: machines.Target,
			holder: holder.at("spec.machineTemplate.infrastructureRef"), builtin: cpBuiltin, overrides: cpOverrides})
	}
	for i := range in.MachineDeployments {
		out = append(out, in.MachineDeployments[i].items(machineDeployment, "machineDeployment", namespace)...)
	}
	for i := range in.MachinePools {
		out = append(out, in.MachinePools[i].items(machinePool, "machinePool", namespace)...)
	}
	return out
}

func (w *Workers) items(p place, name, namespace string) []*item {
	holder := holderOf(string(p), namespace, w.Name)
	base := item{place: p, class: w.Class, topology: w.TopologyName, overrides: w.Overrides,
		builtin: map[string]any{name: w.builtinVariables()}}
	bootstrap, infrastructure := base, base
	bootstrap.source, bootstrap.target = w.Bootstrap.Source, w.Bootstrap.Target
	bootstrap.holder = holder.at("spec.template.spec.bootstrap.configRef")
	infrastructure.source, infrastructure.target = w.Infrastructure.Source, w.Infrastructure.Target
	infrastructure.holder = holder.at("spec.template.spec.infrastructureRef")
	return []*item{&bootstrap, &infrastructure}
}

// topologyOwned are the fields of a control plane object that the topology sets, in either contract. Patches cannot change them.
var topologyOwned = [][]string{
	{"replicas"},
	{"version"},
	{"machineTemplate", "metadata"},
	{"machineTemplate", "infrastructureRef"},
	{"machineTemplate", "nodeDrainTimeout"},
	{"machineTemplate", "nodeVolumeDetachTimeout"},
	{"machineTemplate", "nodeDeletionTimeout"},
	{"machineTemplate", "spec", "infrastructureRef"},
	{"machineTemplate", "spec", "deletion", "nodeDrainTimeoutSeconds"},
	{"machineTemplate", "spec", "deletion", "nodeVolumeDetachTimeoutSeconds"},
	{"machineTemplate", "spec", "deletion", "nodeDeletionTimeoutSeconds"},
}

// topologyMayOwn are the fields of a control plane object that the topology sets in some cases, in either contract. If it does, patches
// cannot change them; otherwise, they are those of the patched template.
var topologyMayOwn = [][]string{
	{"rolloutAfter"},
	{"rollout", "after"},
	{"machineTemplate", "readinessGates"},
	{"machineTemplate", "taints"},
	{"machineTemplate", "spec", "readinessGates"},
	{"machineTemplate", "spec", "taints"},
}

// patchedSpec returns the resulting spec of the target, nil if no patch applies to the template.
func (i *item) patchedSpec() (map[string]any, error) {
	if i.root == nil {
		return nil, nil
	}
	fields := []string{"spec"}
	if !isTemplate(i.place) {
		fields = []string{"spec", "template", "spec"}
	}
	spec, found, err := unstructured.NestedFieldNoCopy(i.root, fields...)
	if err != nil || !found {
		return nil, fmt.Errorf("%s: %s is not set after all patches", i, strings.Join(fields, "."))
	}
	object, ok := spec.(map[string]any)
	if !ok {
		return nil, fmt.Errorf("%s: %s must be an object, but is a %s after all patches", i, strings.Join(fields, "."), jsonType(spec))
	}
	kind := i.source.GroupVersionKind()
	if kind.Version == clusterv1.GroupVersion.Version && conversion.Shared().Versions(kind.GroupKind()) != nil {
		object = withoutEmptyLists(object)
	}
	if i.place != controlPlane {
		return object, nil
	}
	return object, i.keepTopologyOwned(object)
}

// withoutEmptyLists returns a copy of an object in v1beta2, in which no list may be empty. Released classes add empty lists, to which other
// patches append.
func withoutEmptyLists(object map[string]any) map[string]any {
	out := make(map[string]any, len(object))
	for name, value := range object {
		switch v := value.(type) {
		case []any:
			if len(v) == 0 {
				continue
			}
			items := slices.Clone(v)
			for n := range items {
				if item, ok := items[n].(map[string]any); ok {
					items[n] = withoutEmptyLists(item)
				}
			}
			value = items
		case map[string]any:
			value = withoutEmptyLists(v)
		}
		out[name] = value
	}
	return out
}

func (i *item) keepTopologyOwned(spec map[string]any) error {
	for n, fields := range slices.Concat(topologyOwned, topologyMayOwn) {
		value, found, err := unstructured.NestedFieldCopy(i.target.Object, append([]string{"spec"}, fields...)...)
		if err != nil || !found {
			continue
		}
		ofTemplate, _, _ := unstructured.NestedFieldNoCopy(i.source.Object, append([]string{"spec", "template", "spec"}, fields...)...)
		if n >= len(topologyOwned) && reflect.DeepEqual(value, ofTemplate) {
			continue
		}
		if err := unstructured.SetNestedField(spec, value, fields...); err != nil {
			return fmt.Errorf("%s: %w", i, err)
		}
	}
	return nil
}

// isTemplate reports whether the object of a Cluster in this place is a template, too, from which machines are created.
func isTemplate(p place) bool { return p == controlPlaneMachines || p == machineDeployment }
