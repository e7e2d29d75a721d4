package desired

import (
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta1"
	"sigs.k8s.io/cluster-api/core/internal/topology/names"
	"sigs.k8s.io/cluster-api/provider/contract"
)

func infrastructureCluster(in Input) (*unstructured.Unstructured, error) {
	return contract.Clone(contract.CloneInput{
		Template:    in.Blueprint.InfrastructureCluster,
		Name:        names.InfrastructureCluster(in.Cluster),
		Namespace:   in.Cluster.Namespace,
		ClusterName: in.Cluster.Name,
		Owner:       controller(in.Cluster),
		Labels:      ClusterLabels(in.Cluster),
	})
}

// controlPlaneMachines is the template of control plane machines.
func controlPlaneMachines(in Input, controlPlane string) (*unstructured.Unstructured, error) {
	name := names.Template(in.Cluster, in.Cluster.Name, names.ForMachines, controlPlane)
	if current := in.Current.ControlPlane; current != nil {
		ref, err := contract.ControlPlaneOf(current).InfrastructureRef()
		if err != nil {
			return nil, err
		}
		if ref != nil {
			name = ref.Name
		}
	}
	return copyTemplate(in.Cluster, in.Blueprint.ControlPlaneMachines, name, ClusterLabels(in.Cluster)), nil
}

// controlPlane is the control plane object without patches; machines is the template of its machines, nil if it has
// none.
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
	view := contract.ControlPlaneOf(object)
	if err := view.SetVersion(in.Versions.ControlPlane); err != nil {
		return nil, err
	}
	if topology.Replicas != nil {
		if err := view.SetReplicas(*topology.Replicas); err != nil {
			return nil, err
		}
	}
	if machines != nil {
		if err := setMachines(view, machines, labels, annotations); err != nil {
			return nil, err
		}
	}
	return object, setTimeouts(view, topology, class)
}

// setMachines writes what the control plane's machines are made of. What the template of the control plane says of
// their metadata stays unless class or topology say otherwise.
func setMachines(view contract.ControlPlane, machines *unstructured.Unstructured, labels, annotations map[string]string) error {
	if err := view.SetInfrastructureRef(RefTo(machines)); err != nil {
		return err
	}
	own, err := view.MachineMetadata()
	if err != nil {
		return err
	}
	return view.SetMachineMetadata(clusterv1.ObjectMeta{
		Labels:      merge(own.Labels, labels),
		Annotations: merge(own.Annotations, annotations),
	})
}

// setTimeouts writes the timeouts that topology or class set; others are left to the template.
func setTimeouts(view contract.ControlPlane, topology *clusterv1.ControlPlaneTopology, class *clusterv1.ControlPlaneClass) error {
	for name, value := range map[string]*metav1.Duration{
		"nodeDrainTimeout":        or(topology.NodeDrainTimeout, class.NodeDrainTimeout),
		"nodeVolumeDetachTimeout": or(topology.NodeVolumeDetachTimeout, class.NodeVolumeDetachTimeout),
		"nodeDeletionTimeout":     or(topology.NodeDeletionTimeout, class.NodeDeletionTimeout),
	} {
		if value == nil {
			continue
		}
		if err := view.SetDuration(value, "spec", "machineTemplate", name); err != nil {
			return fmt.Errorf("setting the timeouts of the control plane: %w", err)
		}
	}
	return nil
}

func controlPlaneHealthCheck(in Input, name string) *clusterv1.MachineHealthCheck {
	class := &in.Blueprint.Class.Spec.ControlPlane
	if class.MachineInfrastructure == nil {
		return nil
	}
	check := healthCheckClass(class.MachineHealthCheck, in.Cluster.Spec.Topology.ControlPlane.MachineHealthCheck)
	return healthCheck(in.Cluster, name, check, map[string]string{clusterv1.MachineControlPlaneLabel: ""})
}
