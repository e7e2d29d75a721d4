package tree

import (
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
)

const (
	coreVersion           = "cluster.x-k8s.io/v1beta1"
	infrastructureVersion = "infrastructure.cluster.x-k8s.io/v1beta1"
	bootstrapVersion      = "bootstrap.cluster.x-k8s.io/v1beta1"
	controlPlaneVersion   = "controlplane.cluster.x-k8s.io/v1beta1"
)

var (
	testCluster = types.NamespacedName{Namespace: "ns", Name: "c1"}
	testTime    = time.Date(2030, 1, 2, 12, 0, 0, 0, time.UTC)
)

// object builds one object of a tree.
type object struct{ *unstructured.Unstructured }

// newObject returns an object of the test's Cluster; its UID is its kind and name.
func newObject(apiVersion, kind, name string) object {
	o := object{&unstructured.Unstructured{Object: map[string]any{}}}
	o.SetAPIVersion(apiVersion)
	o.SetKind(kind)
	o.SetNamespace(testCluster.Namespace)
	o.SetName(name)
	o.SetUID(types.UID(kind + "/" + name))
	o.SetLabels(map[string]string{clusterv1.ClusterNameLabel: testCluster.Name})
	return o
}

// owned makes another object the controlling owner.
func (o object) owned(kind, name string) object {
	controller := true
	o.SetOwnerReferences([]metav1.OwnerReference{{Kind: kind, Name: name, UID: types.UID(kind + "/" + name), Controller: &controller}})
	return o
}

func (o object) label(key string) object {
	labels := o.GetLabels()
	labels[key] = ""
	o.SetLabels(labels)
	return o
}

// ref puts a reference at a path.
func (o object) ref(apiVersion, kind, name string, path ...string) object {
	o.set(map[string]any{"apiVersion": apiVersion, "kind": kind, "name": name, "namespace": testCluster.Namespace}, path...)
	return o
}

func (o object) set(value any, path ...string) object {
	if err := unstructured.SetNestedField(o.Object, value, path...); err != nil {
		panic(err)
	}
	return o
}

// condition adds a condition that has been so for some time.
func (o object) condition(kind, status, severity, reason, message string, since time.Duration) object {
	list, _, _ := unstructured.NestedSlice(o.Object, "status", "conditions")
	c := map[string]any{"type": kind, "status": status, "lastTransitionTime": testTime.Add(-since).Format(time.RFC3339)}
	for key, value := range map[string]string{"severity": severity, "reason": reason, "message": message} {
		if value != "" {
			c[key] = value
		}
	}
	return o.set(append(list, c), "status", "conditions")
}

func (o object) ready(since time.Duration) object {
	return o.condition("Ready", "True", "", "", "", since)
}

func (o object) deleting() object {
	now := metav1.NewTime(testTime)
	o.SetDeletionTimestamp(&now)
	return o
}

// machine returns a Machine with its infrastructure and bootstrap objects, all ready for a minute.
func machine(name, ownerKind, owner string) []object {
	return []object{
		newObject(coreVersion, "Machine", name).owned(ownerKind, owner).ready(time.Minute).
			ref(infrastructureVersion, "ToyMachine", name, machineInfrastructure...).
			ref(bootstrapVersion, "KubeadmConfig", name, machineBootstrap...),
		newObject(infrastructureVersion, "ToyMachine", name).ready(time.Minute),
		newObject(bootstrapVersion, "KubeadmConfig", name).ready(time.Minute),
	}
}

// base returns a Cluster with its infrastructure, a control plane of three Machines and a MachineDeployment of two.
func base() *Objects {
	list := []object{
		newObject(coreVersion, "Cluster", "c1").ready(time.Hour).condition("InfrastructureReady", "True", "", "", "", 2*time.Hour).
			ref(infrastructureVersion, "ToyCluster", "c1", clusterInfrastructure...).
			ref(controlPlaneVersion, "KubeadmControlPlane", "c1-cp", clusterControlPlane...),
		newObject(infrastructureVersion, "ToyCluster", "c1").ready(2 * time.Hour),
		newObject(controlPlaneVersion, "KubeadmControlPlane", "c1-cp").ready(time.Hour).
			condition("Available", "True", "", "", "", time.Hour).
			condition("EtcdClusterHealthy", "False", "Warning", "EtcdClusterUnhealthy", "one member\nis slow", time.Minute).
			ref(infrastructureVersion, "ToyMachineTemplate", "c1-cp", planeInfrastructure...),
		newObject(infrastructureVersion, "ToyMachineTemplate", "c1-cp"),
		newObject(infrastructureVersion, "ToyMachineTemplate", "c1-md"),
		newObject(bootstrapVersion, "KubeadmConfigTemplate", "c1-md"),
		newObject(coreVersion, "MachineDeployment", "c1-md").ready(30*time.Minute).
			ref(infrastructureVersion, "ToyMachineTemplate", "c1-md", templateInfrastructure...).
			ref(bootstrapVersion, "KubeadmConfigTemplate", "c1-md", templateBootstrap...),
		newObject(coreVersion, "MachineSet", "c1-md-1").owned("MachineDeployment", "c1-md").ready(10 * time.Minute),
	}
	for i := range 3 {
		cp := machine(fmt.Sprintf("c1-cp-%d", i), "KubeadmControlPlane", "c1-cp")
		cp[0].label(clusterv1.MachineControlPlaneLabel)
		list = append(list, cp...)
	}
	list = append(list, machine("c1-md-1-a", "MachineSet", "c1-md-1")...)
	list = append(list, machine("c1-md-1-b", "MachineSet", "c1-md-1")...)
	return with(NewObjects(), list...)
}

func with(objects *Objects, list ...object) *Objects {
	for _, o := range list {
		objects.Add(o.Unstructured)
	}
	return objects
}
