package desired

import (
	"reflect"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta1"
)

// healthCheckClass returns the definition of a health check: that of the topology if any field is set, otherwise that of the
// class. It is nil if the topology disables the check, or neither defines one.
func healthCheckClass(
	class *clusterv1.MachineHealthCheckClass, topology *clusterv1.MachineHealthCheckTopology,
) *clusterv1.MachineHealthCheckClass {
	if topology == nil {
		return class
	}
	if topology.Enable != nil && !*topology.Enable {
		return nil
	}
	if !reflect.DeepEqual(topology.MachineHealthCheckClass, clusterv1.MachineHealthCheckClass{}) {
		return &topology.MachineHealthCheckClass
	}
	return class
}

// healthCheck returns a MachineHealthCheck with the same defaults that admission sets, so that applying it again changes
// nothing. It is nil if class is nil.
func healthCheck(
	cluster *clusterv1.Cluster, name string, class *clusterv1.MachineHealthCheckClass, selector map[string]string,
) *clusterv1.MachineHealthCheck {
	if class == nil {
		return nil
	}
	class = class.DeepCopy()
	all := intstr.FromString("100%")
	check := &clusterv1.MachineHealthCheck{
		TypeMeta: metav1.TypeMeta{APIVersion: clusterv1.GroupVersion.String(), Kind: "MachineHealthCheck"},
		ObjectMeta: metav1.ObjectMeta{
			Namespace: cluster.Namespace, Name: name, Labels: ClusterLabels(cluster),
			OwnerReferences: []metav1.OwnerReference{owner(cluster)},
		},
		Spec: clusterv1.MachineHealthCheckSpec{
			ClusterName:                cluster.Name,
			Selector:                   metav1.LabelSelector{MatchLabels: selector},
			UnhealthyConditions:        class.UnhealthyConditions,
			UnhealthyMachineConditions: class.UnhealthyMachineConditions,
			MaxUnhealthy:               or(class.MaxUnhealthy, &all),
			UnhealthyRange:             class.UnhealthyRange,
			NodeStartupTimeout:         or(class.NodeStartupTimeout, &metav1.Duration{Duration: clusterv1.DefaultNodeStartupTimeout}),
			RemediationTemplate:        class.RemediationTemplate,
		},
	}
	if ref := check.Spec.RemediationTemplate; ref != nil && ref.Namespace == "" {
		ref.Namespace = cluster.Namespace
	}
	return check
}
