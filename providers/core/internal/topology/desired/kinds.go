package desired

import (
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
)

// The kinds of workers.
const (
	MachineDeploymentKind = "MachineDeployment"
	MachinePoolKind       = clusterv1.MachinePoolKind
)

// WorkersID identifies workers in a topology, or a class of workers: each kind has its own names.
type WorkersID struct{ Kind, Name string }

// WorkersObject is a MachineDeployment or a MachinePool. The other one is nil.
type WorkersObject struct {
	Deployment *clusterv1.MachineDeployment
	Pool       *clusterv1.MachinePool
}

// Kind returns the kind of the object.
func (w WorkersObject) Kind() string {
	if w.Pool != nil {
		return MachinePoolKind
	}
	return MachineDeploymentKind
}

// Object returns the object.
func (w WorkersObject) Object() client.Object {
	if w.Pool != nil {
		return w.Pool
	}
	return w.Deployment
}

// Template returns the object's template of Machines.
func (w WorkersObject) Template() *clusterv1.MachineTemplateSpec {
	if w.Pool != nil {
		return &w.Pool.Spec.Template
	}
	return &w.Deployment.Spec.Template
}

// Workers are a MachineDeployment or a MachinePool, with the objects that belong to it.
type Workers struct {
	WorkersObject
	// TopologyName is the name in the topology.
	TopologyName string
	// Bootstrap and Infrastructure are what Template refers to: the templates of a MachineDeployment, the objects of a MachinePool.
	Bootstrap, Infrastructure *unstructured.Unstructured
	// HealthCheck is nil for MachinePools, and for MachineDeployments without one.
	HealthCheck *clusterv1.MachineHealthCheck
	// OnHold is set if the workers wait for their upgrade: see Objects.ControlPlaneOnHold.
	OnHold bool
}

// ID returns the identity in the topology.
func (w *Workers) ID() WorkersID { return WorkersID{w.Kind(), w.TopologyName} }

// Requested are workers of a Cluster's topology.
type Requested struct {
	WorkersID
	// Class is the name of the class of workers.
	Class string
	// Metadata are labels and annotations in the topology.
	Metadata clusterv1.ObjectMeta
	// Version is their own version in the topology. Empty: they have that of the topology.
	Version string
}

// RequestedBy returns the workers of a Cluster's topology in its order, MachineDeployments first.
func RequestedBy(cluster *clusterv1.Cluster) []Requested {
	workers := &cluster.Spec.Topology.Workers
	var all []Requested
	for i := range workers.MachineDeployments {
		t := &workers.MachineDeployments[i]
		all = append(all, Requested{WorkersID{MachineDeploymentKind, t.Name}, t.Class, t.Metadata, t.Version})
	}
	for i := range workers.MachinePools {
		t := &workers.MachinePools[i]
		all = append(all, Requested{WorkersID{MachinePoolKind, t.Name}, t.Class, t.Metadata, t.Version})
	}
	return all
}

// TemplatesOf returns the references of a class of workers to its templates. ok is false if a ClusterClass does not define it.
func TemplatesOf(
	class *clusterv1.ClusterClass, workers WorkersID,
) (bootstrap, infrastructure clusterv1.ClusterClassTemplateReference, ok bool) {
	if workers.Kind == MachinePoolKind {
		if c := machinePoolClass(class, workers.Name); c != nil {
			return c.Bootstrap.TemplateRef, c.Infrastructure.TemplateRef, true
		}
		return bootstrap, infrastructure, false
	}
	if c := machineDeploymentClass(class, workers.Name); c != nil {
		return c.Bootstrap.TemplateRef, c.Infrastructure.TemplateRef, true
	}
	return bootstrap, infrastructure, false
}
