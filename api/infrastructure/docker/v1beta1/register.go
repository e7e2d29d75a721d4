package v1beta1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// GroupVersion is the group and version under which the kinds of this package are served.
var GroupVersion = schema.GroupVersion{Group: "infrastructure.cluster.x-k8s.io", Version: "v1beta1"}

// AddToScheme registers the kinds of this package and the standard request options of their group version.
func AddToScheme(scheme *runtime.Scheme) error {
	scheme.AddKnownTypes(GroupVersion,
		&DevCluster{}, &DevClusterList{},
		&DevClusterTemplate{}, &DevClusterTemplateList{},
		&DevMachine{}, &DevMachineList{},
		&DevMachineTemplate{}, &DevMachineTemplateList{},
		&DockerCluster{}, &DockerClusterList{},
		&DockerClusterTemplate{}, &DockerClusterTemplateList{},
		&DockerMachine{}, &DockerMachineList{},
		&DockerMachineTemplate{}, &DockerMachineTemplateList{},
		&DockerMachinePool{}, &DockerMachinePoolList{},
		&DockerMachinePoolTemplate{}, &DockerMachinePoolTemplateList{},
	)
	metav1.AddToGroupVersion(scheme, GroupVersion)
	return nil
}
