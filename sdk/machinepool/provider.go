package machinepool

import (
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/sdk/step"
)

// Provider declares the kinds of a provider: pools of type P with machines of type M. All fields are required, except for those that
// say otherwise.
type Provider[P, M step.Object] struct {
	// Name is the controller's name in logs and metrics, such as "dockermachinepool".
	Name string
	// Pool and Machine are the kinds.
	Pool, Machine schema.GroupVersionKind
	// NewPool returns an empty pool; NewPools and NewMachines return empty lists.
	NewPool               func() P
	NewPools, NewMachines func() client.ObjectList
	// Finalizer blocks the deletion of a pool until its machines are gone.
	Finalizer string
	// Annotations are the names of annotations.
	Annotations Annotations

	// Fields returns the fields of the contract in a pool.
	Fields func(pool P) Fields
	// Replicas returns how many machines the infrastructure wants the pool to have, if replicas are managed externally. Nil, or a
	// nil result: as many as there are.
	Replicas func(pool P) *int32
	// Domain returns the field of a machine with its failure domain, spec.failureDomain in the contract. Nil: it is in the annotation.
	Domain func(m M) *string
	// Claim sets other fields of a pool, before it has machines. May be nil.
	Claim func(pool P, cluster *clusterv1.Cluster)
	// Report sets other fields of the status. May be nil.
	Report func(pool P, members []Member[M])

	// MachineName returns the name of the machine with an ordinal. It must depend on the pool's UID.
	MachineName func(pool P, ordinal int) string
	// NewMachine returns a machine from the pool's template. The controller sets name, namespace, owner, the annotations, and the
	// labels of the contract.
	NewMachine func(pool P) M
	// Observe returns the state of a machine.
	Observe func(m M) Observation
	// Outdated returns how a machine differs from the pool's template; empty if it does not. recorded is whether this
	// controller created it: it is false for machines of Cluster API v1.7.
	Outdated func(pool P, m M, recorded bool) string
	// SameTemplate reports whether two versions of a pool have the same template.
	SameTemplate func(a, b P) bool
	// Changed selects changes of machines that Report depends on. May be nil.
	Changed func(before, after M) bool
}

// Annotations are the names of annotations of pools and machines.
type Annotations struct {
	// Ordinal is the ordinal that the name of a machine derives from. On a pool, it is the ordinal of the next one: ordinals are not
	// used again, because a Node may outlive its machine.
	Ordinal string
	// Domain is the failure domain of a machine. Empty: Provider.Domain has it.
	Domain string
	// Data is the name of the Secret with the bootstrap data that a machine was created with.
	Data string
}

// Fields are the fields of the contract in an infrastructure pool.
type Fields struct {
	// ProviderIDs is spec.providerIDList.
	ProviderIDs *[]string
	// MachineKind is status.infrastructureMachineKind.
	MachineKind *string
	// Replicas is status.replicas.
	Replicas *int32
	// Ready is status.ready.
	Ready *bool
	// Provisioned is status.initialization.provisioned. Nil: the pool is in contract v1beta1 only.
	Provisioned **bool
	// ObservedGeneration is status.observedGeneration.
	ObservedGeneration *int64
}

// Observation is the state of an infrastructure machine.
type Observation struct {
	// ProviderID is empty until it is known.
	ProviderID string
	// Joined is whether the Node of the machine joined the cluster, and the machine was not lost since.
	Joined bool
}

// Member is a machine of a pool.
type Member[M step.Object] struct {
	Object M
	// Machine is nil until the core provider has created it.
	Machine *clusterv1.Machine
	// Observation is the state of Object.
	Observation
}

// Conditions of pools, whose reasons are those of the same conditions of other kinds. Ready summarizes all of them.
const (
	// MachinesCreatedCondition reports whether the machines could be created.
	MachinesCreatedCondition = clusterv1.MachinesCreatedV1Beta1Condition
	// ResizedCondition reports whether the number of machines is as desired.
	ResizedCondition = clusterv1.ResizedV1Beta1Condition
	// ReplicasReadyCondition reports whether the machines are ready.
	ReplicasReadyCondition = clusterv1.ReplicasReadyV1Beta1Condition
)

// Reasons of ReplicasReadyCondition, of severity Info, while a pool has no machines yet.
const (
	// WaitingForClusterInfrastructureReason: the Cluster's infrastructure is not ready yet.
	WaitingForClusterInfrastructureReason = "WaitingForClusterInfrastructure"
	// WaitingForBootstrapDataReason: the bootstrap data does not exist yet.
	WaitingForBootstrapDataReason = "WaitingForBootstrapData"
)
