package machineset

import (
	"maps"
	"strconv"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/sdk/contract"
	"sigs.k8s.io/cluster-api/sdk/naming"
	"sigs.k8s.io/cluster-api/sdk/ownership"
)

// machineLabels returns the labels of the set's Machines and their objects.
func machineLabels(set *clusterv1.MachineSet) map[string]string {
	out := maps.Clone(set.Spec.Template.Labels)
	if out == nil {
		out = map[string]string{}
	}
	out[clusterv1.ClusterNameLabel] = set.Spec.ClusterName
	out[clusterv1.MachineSetNameLabel] = naming.LabelValue(set.Name)
	if deployment, ok := set.Labels[clusterv1.MachineDeploymentNameLabel]; ok {
		out[clusterv1.MachineDeploymentNameLabel] = deployment
	}
	return out
}

// newMachine returns a Machine from the template. Its name belongs to a generation; the objects that it refers to have the same
// name.
func newMachine(set *clusterv1.MachineSet, name string, generation int) *clusterv1.Machine {
	spec := set.Spec.Template.Spec.DeepCopy()
	spec.ClusterName = set.Spec.ClusterName
	spec.MinReadySeconds = nil // That of the MachineSet counts, see MinReady.
	spec.InfrastructureRef = clonedReference(spec.InfrastructureRef, name)
	if spec.Bootstrap.ConfigRef.IsDefined() {
		spec.Bootstrap.ConfigRef = clonedReference(spec.Bootstrap.ConfigRef, name)
	}
	m := &clusterv1.Machine{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: set.Namespace, Name: name,
			Labels:      machineLabels(set),
			Annotations: maps.Clone(set.Spec.Template.Annotations),
			Finalizers:  []string{clusterv1.MachineFinalizer},
			OwnerReferences: []metav1.OwnerReference{
				ownership.Reference(set, clusterv1.GroupVersion.WithKind(machineSetKind), true),
			},
		},
		Spec: *spec,
	}
	delete(m.Annotations, generationAnnotation)
	if generation > 0 {
		metav1.SetMetaDataAnnotation(&m.ObjectMeta, generationAnnotation, strconv.Itoa(generation))
	}
	return m
}

// clonedReference returns the reference to the object that is created from a template.
func clonedReference(template clusterv1.ContractVersionedObjectReference, name string) clusterv1.ContractVersionedObjectReference {
	return clusterv1.ContractVersionedObjectReference{APIGroup: template.APIGroup, Kind: contract.KindOf(template.Kind), Name: name}
}
