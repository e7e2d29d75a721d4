package desired

import (
	"errors"
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/providers/core/internal/topology/names"
	"sigs.k8s.io/cluster-api/sdk/contract"
)

func infrastructureCluster(in Input) (*unstructured.Unstructured, error) {
	name, err := names.InfrastructureCluster(in.Cluster, in.Blueprint.Class)
	if err != nil {
		return nil, err
	}
	return contract.Clone(contract.CloneInput{
		Template:    in.Blueprint.InfrastructureCluster,
		Name:        name,
		Namespace:   in.Cluster.Namespace,
		ClusterName: in.Cluster.Name,
		Owner:       controller(in.Cluster),
		Labels:      ClusterLabels(in.Cluster),
	})
}

// controlPlaneMachines returns the infrastructure template of control plane machines.
func controlPlaneMachines(in Input, controlPlane string) (*unstructured.Unstructured, error) {
	name := names.Template(in.Cluster, in.Cluster.Name, names.ForMachines, controlPlane)
	if in.Current.ControlPlane != nil {
		ref, err := in.Current.Fields().InfrastructureRef()
		if err != nil {
			return nil, err
		}
		if ref != nil {
			name = ref.Name
		}
	}
	return copyTemplate(in.Cluster, in.Blueprint.ControlPlaneMachines, name, ClusterLabels(in.Cluster)), nil
}

// controlPlane returns the control plane object before patches. machines is the template of its machines, nil if it has none.
func controlPlane(in Input, name string, machines *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	topology, class := &in.Cluster.Spec.Topology.ControlPlane, &in.Blueprint.Class.Spec.ControlPlane
	labels := merge(class.Metadata.Labels, topology.Metadata.Labels, ClusterLabels(in.Cluster))
	annotations := merge(class.Metadata.Annotations, topology.Metadata.Annotations)
	object, err := contract.Clone(contract.CloneInput{
		Template:    in.Blueprint.ControlPlane,
		Name:        name,
		Namespace:   in.Cluster.Namespace,
		ClusterName: in.Cluster.Name,
		Owner:       controller(in.Cluster),
		Labels:      labels,
		Annotations: annotations,
	})
	if err != nil {
		return nil, err
	}
	fields := contract.ControlPlaneOf(contract.Object{Unstructured: object, Contract: in.Current.Contract})
	if err := fields.SetVersion(in.Versions.ControlPlane); err != nil {
		return nil, err
	}
	if topology.Replicas != nil {
		if err := fields.SetReplicas(*topology.Replicas); err != nil {
			return nil, err
		}
	}
	if machines != nil {
		if err := setMachines(fields, machines, labels, annotations); err != nil {
			return nil, err
		}
	}
	return object, errors.Join(
		setTimeouts(fields, topology, class),
		fields.SetReadinessGates(firstSet(topology.ReadinessGates, class.ReadinessGates)),
		fields.SetTaints(firstSet(topology.Taints, class.Taints)),
		fields.SetRolloutAfter(topology.Rollout.After),
	)
}

// firstSet returns the list of a topology, or else that of its class.
func firstSet[T any](topology, class []T) []T {
	if len(topology) > 0 {
		return topology
	}
	return class
}

// setMachines sets the infrastructure template and the metadata of the control plane's machines. Metadata from the control
// plane's template is kept unless class or topology override it.
func setMachines(fields contract.ControlPlane, machines *unstructured.Unstructured, labels, annotations map[string]string) error {
	if err := fields.SetInfrastructureRef(RefTo(machines)); err != nil {
		return err
	}
	fromTemplate, err := fields.MachineMetadata()
	if err != nil {
		return err
	}
	return fields.SetMachineMetadata(clusterv1.ObjectMeta{
		Labels:      merge(fromTemplate.Labels, labels),
		Annotations: merge(fromTemplate.Annotations, annotations),
	})
}

// setTimeouts sets the timeouts that topology or class set; others are left to the template.
func setTimeouts(fields contract.ControlPlane, topology *clusterv1.ControlPlaneTopology, class *clusterv1.ControlPlaneClass) error {
	if err := fields.SetNodeTimeouts(timeouts(topology.Deletion, class.Deletion)); err != nil {
		return fmt.Errorf("setting the timeouts of the control plane: %w", err)
	}
	return nil
}

// timeouts returns the timeouts of a topology, or of its class.
func timeouts(topology, class clusterv1.MachineDeletionSpec) clusterv1.MachineDeletionSpec {
	return clusterv1.MachineDeletionSpec{
		NodeDrainTimeoutSeconds:        or(topology.NodeDrainTimeoutSeconds, class.NodeDrainTimeoutSeconds),
		NodeVolumeDetachTimeoutSeconds: or(topology.NodeVolumeDetachTimeoutSeconds, class.NodeVolumeDetachTimeoutSeconds),
		NodeDeletionTimeoutSeconds:     or(topology.NodeDeletionTimeoutSeconds, class.NodeDeletionTimeoutSeconds),
	}
}

func controlPlaneHealthCheck(in Input, name string) *clusterv1.MachineHealthCheck {
	class := &in.Blueprint.Class.Spec.ControlPlane
	if !class.MachineInfrastructure.TemplateRef.IsDefined() {
		return nil
	}
	topology := &in.Cluster.Spec.Topology.ControlPlane.HealthCheck
	own := clusterv1.ControlPlaneClassHealthCheck{Checks: topology.Checks, Remediation: topology.Remediation}
	check := healthCheckClass(class.HealthCheck, topology.Enabled, own)
	return healthCheck(in.Cluster, name, check, clusterv1.MachineControlPlaneLabel, "")
}
