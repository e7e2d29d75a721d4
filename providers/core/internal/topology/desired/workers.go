package desired

import (
	"cmp"
	"fmt"
	"maps"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/providers/core/internal/topology/check"
	"sigs.k8s.io/cluster-api/providers/core/internal/topology/names"
	"sigs.k8s.io/cluster-api/providers/core/internal/topology/patches"
	"sigs.k8s.io/cluster-api/sdk/contract"
)

// group has what MachineDeployments and MachinePools have in common.
type group struct {
	cluster  *clusterv1.Cluster
	topology string // its name in the topology
	object   string // the name of its object
	label    string // the label whose value is the topology name
	meta     clusterv1.ObjectMeta
	version  string
	current  *clusterv1.MachineTemplateSpec // of the existing object; nil for a new one
}

// selector returns the labels that select the group's objects.
func (g group) selector() map[string]string {
	return merge(ClusterLabels(g.cluster), map[string]string{g.label: g.topology})
}

// setMetadata merges the metadata of class and topology. Annotations that only control the order of upgrades are not
// propagated.
func (g *group) setMetadata(class, topology clusterv1.ObjectMeta) {
	annotations := merge(class.Annotations, topology.Annotations)
	maps.DeleteFunc(annotations, func(key, _ string) bool {
		return key == clusterv1.ClusterTopologyDeferUpgradeAnnotation || key == clusterv1.ClusterTopologyHoldUpgradeSequenceAnnotation
	})
	g.meta = clusterv1.ObjectMeta{Labels: merge(class.Labels, topology.Labels, g.selector()), Annotations: annotations}
}

// prefix is what the names of the group's templates and objects start with.
func (g group) prefix() string { return g.cluster.Name + "-" + g.topology }

// bootstrapName returns the name that the existing object refers to, or a derived one.
func (g group) bootstrapName() string {
	if g.current != nil && g.current.Spec.Bootstrap.ConfigRef.IsDefined() {
		return g.current.Spec.Bootstrap.ConfigRef.Name
	}
	return names.Template(g.cluster, g.prefix(), names.ForBootstrap, g.object)
}

// infrastructureName returns the name that the existing object refers to, or a derived one.
func (g group) infrastructureName() string {
	if g.current != nil && g.current.Spec.InfrastructureRef.Name != "" {
		return g.current.Spec.InfrastructureRef.Name
	}
	return names.Template(g.cluster, g.prefix(), names.ForInfrastructure, g.object)
}

func (g group) objectMeta() metav1.ObjectMeta {
	return metav1.ObjectMeta{
		Namespace: g.cluster.Namespace, Name: g.object,
		Labels: maps.Clone(g.meta.Labels), Annotations: maps.Clone(g.meta.Annotations),
		OwnerReferences: []metav1.OwnerReference{owner(g.cluster)},
	}
}

func (g group) machines(bootstrap, infrastructure *unstructured.Unstructured) clusterv1.MachineTemplateSpec {
	return clusterv1.MachineTemplateSpec{
		ObjectMeta: clusterv1.ObjectMeta{Labels: maps.Clone(g.meta.Labels), Annotations: maps.Clone(g.meta.Annotations)},
		Spec: clusterv1.MachineSpec{
			ClusterName:       g.cluster.Name,
			Version:           g.version,
			Bootstrap:         clusterv1.Bootstrap{ConfigRef: ContractRefTo(bootstrap)},
			InfrastructureRef: ContractRefTo(infrastructure),
		},
	}
}

func machineDeployment(
	in Input, topology *clusterv1.MachineDeploymentTopology, class *clusterv1.MachineDeploymentClass, object, version string,
) *Workers {
	g := group{
		cluster:  in.Cluster,
		topology: topology.Name,
		object:   object,
		version:  version,
		label:    clusterv1.ClusterTopologyMachineDeploymentNameLabel,
	}
	if current, ok := in.Current.Workers[WorkersID{MachineDeploymentKind, topology.Name}]; ok {
		g.current = current.Template()
	}
	g.setMetadata(class.Metadata, topology.Metadata)
	templates := in.Blueprint.Workers[WorkersID{MachineDeploymentKind, class.Class}]
	out := &Workers{
		TopologyName:   topology.Name,
		Bootstrap:      copyTemplate(in.Cluster, templates.Bootstrap, g.bootstrapName(), g.selector()),
		Infrastructure: copyTemplate(in.Cluster, templates.Infrastructure, g.infrastructureName(), g.selector()),
		HealthCheck:    healthCheck(in.Cluster, object, deploymentHealthCheck(&class.HealthCheck, &topology.HealthCheck), g.label, g.topology),
	}
	out.Deployment = &clusterv1.MachineDeployment{
		TypeMeta:   metav1.TypeMeta{APIVersion: clusterv1.GroupVersion.String(), Kind: MachineDeploymentKind},
		ObjectMeta: g.objectMeta(),
		Spec: clusterv1.MachineDeploymentSpec{
			ClusterName: in.Cluster.Name,
			Replicas:    topology.Replicas,
			Selector:    metav1.LabelSelector{MatchLabels: g.selector()},
			Template:    g.machines(out.Bootstrap, out.Infrastructure),
		},
	}
	setStrategy(&out.Deployment.Spec, topology, class)
	out.Deployment.Finalizers = []string{clusterv1.MachineDeploymentTopologyFinalizer}
	machine := &out.Deployment.Spec.Template.Spec
	machine.FailureDomain = cmp.Or(topology.FailureDomain, class.FailureDomain)
	machine.MinReadySeconds = or(topology.MinReadySeconds, class.MinReadySeconds)
	machine.Deletion = timeouts(timeoutsOf(topology.Deletion), timeoutsOf(class.Deletion))
	machine.ReadinessGates = firstSet(topology.ReadinessGates, class.ReadinessGates)
	machine.Taints = firstSet(topology.Taints, class.Taints)
	out.Deployment.Spec.Rollout.After = topology.Rollout.After
	return out
}

func timeoutsOf(deletion clusterv1.MachineDeploymentClassMachineDeletionSpec) clusterv1.MachineDeletionSpec {
	return clusterv1.MachineDeletionSpec{
		NodeDrainTimeoutSeconds:        deletion.NodeDrainTimeoutSeconds,
		NodeVolumeDetachTimeoutSeconds: deletion.NodeVolumeDetachTimeoutSeconds,
		NodeDeletionTimeoutSeconds:     deletion.NodeDeletionTimeoutSeconds,
	}
}

func deploymentHealthCheck(
	class *clusterv1.MachineDeploymentClassHealthCheck, topology *clusterv1.MachineDeploymentTopologyHealthCheck,
) clusterv1.ControlPlaneClassHealthCheck {
	return healthCheckClass(check.WorkersHealthCheck(class.Checks, class.Remediation), topology.Enabled,
		check.WorkersHealthCheck(topology.Checks, topology.Remediation))
}

// setStrategy sets how Machines are replaced, remediated and deleted: as the topology says if it says anything about one of these,
// otherwise as the class does. They are one field, strategy, in v1beta1.
func setStrategy(
	spec *clusterv1.MachineDeploymentSpec, topology *clusterv1.MachineDeploymentTopology, class *clusterv1.MachineDeploymentClass,
) {
	strategy, limit, order := topology.Rollout.Strategy, topology.HealthCheck.Remediation.MaxInFlight, topology.Deletion.Order
	if strategy == (clusterv1.MachineDeploymentRolloutStrategy{}) && limit == nil && order == "" {
		strategy, limit, order = class.Rollout.Strategy, class.HealthCheck.Remediation.MaxInFlight, class.Deletion.Order
	}
	spec.Rollout.Strategy, spec.Remediation.MaxInFlight, spec.Deletion.Order = *strategy.DeepCopy(), limit, order
}

// setRefs makes the workers refer to their templates.
func (w *Workers) setRefs() {
	w.Template().Spec.Bootstrap.ConfigRef = ContractRefTo(w.Bootstrap)
	w.Template().Spec.InfrastructureRef = ContractRefTo(w.Infrastructure)
}

func machinePool(
	in Input, topology *clusterv1.MachinePoolTopology, class *clusterv1.MachinePoolClass, object, version string,
) (*Workers, error) {
	g := group{
		cluster:  in.Cluster,
		topology: topology.Name,
		object:   object,
		version:  version,
		label:    clusterv1.ClusterTopologyMachinePoolNameLabel,
	}
	if current, ok := in.Current.Workers[WorkersID{MachinePoolKind, topology.Name}]; ok {
		g.current = current.Template()
	}
	g.setMetadata(class.Metadata, topology.Metadata)
	templates := in.Blueprint.Workers[WorkersID{MachinePoolKind, class.Class}]
	bootstrap, err := g.clone(templates.Bootstrap, g.bootstrapName())
	if err != nil {
		return nil, err
	}
	infrastructure, err := g.clone(templates.Infrastructure, g.infrastructureName())
	if err != nil {
		return nil, err
	}
	out := &Workers{TopologyName: topology.Name, Bootstrap: bootstrap, Infrastructure: infrastructure}
	out.Pool = &clusterv1.MachinePool{
		TypeMeta:   metav1.TypeMeta{APIVersion: clusterv1.GroupVersion.String(), Kind: MachinePoolKind},
		ObjectMeta: g.objectMeta(),
		Spec: clusterv1.MachinePoolSpec{
			ClusterName:    in.Cluster.Name,
			Replicas:       topology.Replicas,
			FailureDomains: topology.FailureDomains,
			Template:       g.machines(bootstrap, infrastructure),
		},
	}
	if out.Pool.Spec.FailureDomains == nil {
		out.Pool.Spec.FailureDomains = class.FailureDomains
	}
	machine := &out.Pool.Spec.Template.Spec
	machine.MinReadySeconds = or(topology.MinReadySeconds, class.MinReadySeconds)
	machine.Deletion = timeouts(topology.Deletion, class.Deletion)
	machine.Taints = firstSet(topology.Taints, class.Taints)
	return out, nil
}

// clone returns an object of a MachinePool. The Cluster owns it in addition to the MachinePool, so that it is garbage collected
// even if the MachinePool is never created.
func (g group) clone(source *unstructured.Unstructured, name string) (*unstructured.Unstructured, error) {
	cluster := owner(g.cluster)
	return contract.Clone(contract.CloneInput{
		Template: source, Name: name, Namespace: g.cluster.Namespace, ClusterName: g.cluster.Name, Owner: &cluster, Labels: g.selector(),
	})
}

func deploymentPatches(topology *clusterv1.MachineDeploymentTopology, w *Workers, source Templates) patches.Workers {
	bootstrap, infrastructure := w.patchTemplates(source)
	return patches.ForMachineDeployment(topology, w.Deployment, bootstrap, infrastructure)
}

func poolPatches(topology *clusterv1.MachinePoolTopology, w *Workers, source Templates) patches.Workers {
	bootstrap, infrastructure := w.patchTemplates(source)
	return patches.ForMachinePool(topology, w.Pool, bootstrap, infrastructure)
}

func (w *Workers) patchTemplates(source Templates) (bootstrap, infrastructure patches.Template) {
	return patches.Template{Source: source.Bootstrap, Target: w.Bootstrap}, patches.Template{
		Source: source.Infrastructure, Target: w.Infrastructure,
	}
}

func missingClass(kind, class, topology string, of *clusterv1.ClusterClass) error {
	return fmt.Errorf("%s %q of the topology has class %q, which ClusterClass %s/%s does not define: change it, or add it to the ClusterClass",
		kind, topology, class, of.Namespace, of.Name)
}
