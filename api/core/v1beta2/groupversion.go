package v1beta2

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// GroupVersion is the API group and version of the kinds in this package.
var GroupVersion = schema.GroupVersion{Group: "cluster.x-k8s.io", Version: "v1beta2"}

// Names of the kinds of this package, as they appear in manifests and references.
const (
	// ClusterKind is the kind of Cluster.
	ClusterKind = "Cluster"
	// ClusterClassKind is the kind of ClusterClass.
	ClusterClassKind = "ClusterClass"
	// MachineKind is the kind of Machine.
	MachineKind = "Machine"
	// MachineSetKind is the kind of MachineSet.
	MachineSetKind = "MachineSet"
	// MachineDeploymentKind is the kind of MachineDeployment.
	MachineDeploymentKind = "MachineDeployment"
	// MachinePoolKind is the kind of MachinePool.
	MachinePoolKind = "MachinePool"
	// MachineHealthCheckKind is the kind of MachineHealthCheck.
	MachineHealthCheckKind = "MachineHealthCheck"
	// MachineDrainRuleKind is the kind of MachineDrainRule.
	MachineDrainRuleKind = "MachineDrainRule"
)

// AddToScheme registers the kinds of this package, and their lists, in the scheme.
func AddToScheme(s *runtime.Scheme) error {
	return (&runtime.SchemeBuilder{addKnownTypes}).AddToScheme(s)
}

// Resource qualifies a resource name, such as "machines", with this group.
func Resource(resource string) schema.GroupResource {
	return GroupVersion.WithResource(resource).GroupResource()
}

func addKnownTypes(s *runtime.Scheme) error {
	s.AddKnownTypes(GroupVersion,
		&Cluster{}, &ClusterList{},
		&ClusterClass{}, &ClusterClassList{},
		&Machine{}, &MachineList{},
		&MachineSet{}, &MachineSetList{},
		&MachineDeployment{}, &MachineDeploymentList{},
		&MachinePool{}, &MachinePoolList{},
		&MachineHealthCheck{}, &MachineHealthCheckList{},
		&MachineDrainRule{}, &MachineDrainRuleList{},
	)
	metav1.AddToGroupVersion(s, GroupVersion)
	return nil
}
