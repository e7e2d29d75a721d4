package snapshot

import (
	"context"
	"maps"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	bootstrapv1 "sigs.k8s.io/cluster-api/api/bootstrap/v1beta2"
	controlplanev1 "sigs.k8s.io/cluster-api/api/controlplane/v1beta2"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/providers/internal/inplace"
	"sigs.k8s.io/cluster-api/providers/internal/kubeadm"
	"sigs.k8s.io/cluster-api/sdk/condition"
	"sigs.k8s.io/cluster-api/sdk/naming"
)

// ControlPlane is a control plane with its Cluster and Machines, as they were read.
type ControlPlane struct {
	KCP *controlplanev1.KubeadmControlPlane
	// Cluster is nil if no Cluster owns the control plane yet.
	Cluster *clusterv1.Cluster
	// Machines are the Machines that the control plane controls, oldest first.
	Machines []*Machine
	// Orphans are control plane Machines of the Cluster that have no controller.
	Orphans []*clusterv1.Machine
	// Remediation is the record of the remediation in progress, empty if there was none.
	Remediation string
}

// Machine is a Machine of the control plane, with the objects that it was created from. These are not read, nor is the Machine compared
// with the spec, while the control plane is being deleted.
type Machine struct {
	*clusterv1.Machine
	// Config is nil if the KubeadmConfig does not exist.
	Config *bootstrapv1.KubeadmConfig
	// Infrastructure is nil if the infrastructure machine does not exist.
	Infrastructure *unstructured.Unstructured
	// Outdated are the reasons to replace the Machine, see OutdatedReasons.
	Outdated []string
	// Expired is true if one of the reasons is that time passed: its spec alone is not enough to make it up to date.
	Expired bool
	// Due is when there will be a reason only because time passes. Zero if that is unknown.
	Due time.Time
}

// NodeRole is the label and the taint by which kubeadm marks the Nodes of a control plane.
const NodeRole = "node-role.kubernetes.io/control-plane"

// ConfigKind returns the kind of the bootstrap configs that control plane Machines are created with.
func ConfigKind() schema.GroupVersionKind { return bootstrapv1.GroupVersion.WithKind("KubeadmConfig") }

// Deleting reports whether the Machine is being deleted.
func (m *Machine) Deleting() bool { return m.DeletionTimestamp != nil }

// Updating reports whether the Machine is being updated in place: its objects are as desired, and the machine may not be.
func (m *Machine) Updating() bool { return !m.Deleting() && inplace.IsUpdating(m.Machine) }

// Node returns the name of the Machine's Node, empty if it has none yet.
func (m *Machine) Node() string {
	return m.Status.NodeRef.Name
}

// Compare sets Outdated and Due.
func (m *Machine) Compare(ctx context.Context, s Spec, at clock.PassiveClock) error {
	reasons, err := OutdatedReasons(ctx, s, m, at.Now())
	m.Outdated, m.Due, m.Expired = reasons, due(s, m), !m.Deleting() && expires(s, m, at.Now()) != ""
	return err
}

// CreatedFrom returns the objects that the Machine was created from, without those that do not exist.
func (m *Machine) CreatedFrom() []client.Object {
	var objects []client.Object
	if m.Config != nil {
		objects = append(objects, m.Config)
	}
	if m.Infrastructure != nil {
		objects = append(objects, m.Infrastructure)
	}
	return objects
}

// Key returns the key of the Cluster.
func (cp *ControlPlane) Key() types.NamespacedName { return client.ObjectKeyFromObject(cp.Cluster) }

// Named returns the Machine with this name, nil if there is none.
func (cp *ControlPlane) Named(name string) *Machine {
	for _, m := range cp.Machines {
		if m.Name == name {
			return m
		}
	}
	return nil
}

// Desired returns the desired number of Machines.
func (cp *ControlPlane) Desired() int {
	if cp.KCP.Spec.Replicas == nil {
		return 1
	}
	return int(*cp.KCP.Spec.Replicas)
}

// Initialized reports whether kubeadm init has completed. The condition of the Cluster counts even if the status of the control
// plane was lost.
func (cp *ControlPlane) Initialized() bool {
	return ptr.Deref(cp.KCP.Status.Initialization.ControlPlaneInitialized, false) ||
		condition.IsTrue(cp.Cluster, clusterv1.ControlPlaneInitializedV1Beta1Condition)
}

// StackedEtcd reports whether etcd runs on the Machines, and its members are managed here.
func (cp *ControlPlane) StackedEtcd() bool {
	return !kubeadm.Defined(cp.KCP.Spec.KubeadmConfigSpec.ClusterConfiguration.Etcd.External)
}

// OutdatedCount returns the number of Machines to replace, or that are being updated in place.
func (cp *ControlPlane) OutdatedCount() int {
	n := 0
	for _, m := range cp.Machines {
		if len(m.Outdated) > 0 || m.Updating() {
			n++
		}
	}
	return n
}

// AnyUpdating reports whether any Machine is being updated in place.
func (cp *ControlPlane) AnyUpdating() bool {
	return slices.ContainsFunc(cp.Machines, (*Machine).Updating)
}

// WithoutNode reports whether any Machine other than these has no Node.
func (cp *ControlPlane) WithoutNode(except ...*Machine) bool {
	return slices.ContainsFunc(cp.Machines, func(m *Machine) bool { return m.Node() == "" && !slices.Contains(except, m) })
}

// Owner returns the owner reference for objects that the control plane controls.
func (cp *ControlPlane) Owner() *metav1.OwnerReference {
	return metav1.NewControllerRef(cp.KCP, controlplanev1.GroupVersion.WithKind("KubeadmControlPlane"))
}

// MachineLabels returns the labels of every Machine, infrastructure machine and KubeadmConfig.
func (cp *ControlPlane) MachineLabels() map[string]string {
	labels := map[string]string{}
	maps.Copy(labels, cp.KCP.Spec.MachineTemplate.ObjectMeta.Labels)
	labels[clusterv1.ClusterNameLabel] = cp.Cluster.Name
	labels[clusterv1.MachineControlPlaneLabel] = ""
	labels[clusterv1.MachineControlPlaneNameLabel] = naming.LabelValue(cp.KCP.Name)
	return labels
}

// MachineAnnotations returns the annotations of every Machine, infrastructure machine and KubeadmConfig.
func (cp *ControlPlane) MachineAnnotations() map[string]string {
	annotations := map[string]string{}
	maps.Copy(annotations, cp.KCP.Spec.MachineTemplate.ObjectMeta.Annotations)
	return annotations
}
