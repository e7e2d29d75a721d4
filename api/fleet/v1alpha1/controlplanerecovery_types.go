package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// ControlPlaneRecoveryFinalizer is on ControlPlaneRecoveries, and removed when the control plane is given back to its controller.
const ControlPlaneRecoveryFinalizer = "fleet.cluster.x-k8s.io/recovery"

// Steps of ControlPlaneRecoveries, in order, in status.steps.
const (
	// RecoveryStepHold: the controller of the control plane changes nothing from then on.
	RecoveryStepHold = "Hold"
	// RecoveryStepCheck: the members were asked again, and the recovery is certain. Nothing is deleted until the next step.
	RecoveryStepCheck = "Check"
	// RecoveryStepFence: the lost machines do not run.
	RecoveryStepFence = "Fence"
	// RecoveryStepForceNewCluster: the member of the survivor is the only one of etcd.
	RecoveryStepForceNewCluster = "ForceNewCluster"
	// RecoveryStepServe: the API server responds.
	RecoveryStepServe = "Serve"
	// RecoveryStepRemoveNodes: the Nodes of the lost machines are deleted.
	RecoveryStepRemoveNodes = "RemoveNodes"
	// RecoveryStepRelease: the controller of the control plane continues.
	RecoveryStepRelease = "Release"
)

// ControlPlaneRecoverySpec is which etcd member survives. It can be changed until spec.confirm is set.
// +kubebuilder:validation:XValidation:rule="self.clusterName == oldSelf.clusterName",message="clusterName is immutable"
// +kubebuilder:validation:XValidation:rule="!has(oldSelf.confirm) || self == oldSelf",message="spec is immutable once confirm is set"
type ControlPlaneRecoverySpec struct {
	// clusterName is the name of the Cluster, in the same namespace.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	ClusterName string `json:"clusterName,omitempty"`

	// survivor is the name of the Machine whose etcd member becomes the only one. What it does not have is lost. Without it, the members are
	// shown in the status, to choose one.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Survivor string `json:"survivor,omitempty"`

	// lostMachines are the names of all other Machines of the control plane. They are deleted.
	// +optional
	// +kubebuilder:validation:MaxItems=32
	// +kubebuilder:validation:items:MaxLength=253
	// +listType=set
	LostMachines []string `json:"lostMachines,omitempty"`

	// fenced is whether you are sure that the machines of lostMachines do not run, and never will with the disks that they have. If their
	// infrastructure is not deleted within a minute, the recovery then removes their Machines without it. Set it only if the infrastructure
	// provider cannot delete them.
	// +optional
	Fenced bool `json:"fenced,omitempty"`

	// allowLowerRaftIndex allows a survivor although another member that responds has a higher raft index: what only that one has is lost.
	// +optional
	AllowLowerRaftIndex bool `json:"allowLowerRaftIndex,omitempty"`

	// minimumLossSeconds is for how long the quorum must have been lost. Until then, it may return by itself, and nothing is lost. When unset,
	// 600.
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=86400
	MinimumLossSeconds *int32 `json:"minimumLossSeconds,omitempty"`

	// confirm starts the recovery: the names of Cluster and survivor, separated by a slash.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=512
	Confirm string `json:"confirm,omitempty"`
}

// RecoveryMember is a Machine of the control plane, and what its etcd member reports.
type RecoveryMember struct {
	// machine is the name of the Machine.
	// +required
	// +kubebuilder:validation:MinLength=1
	Machine string `json:"machine,omitempty"`

	// node is the name of its Node.
	// +optional
	Node string `json:"node,omitempty"`

	// reachable is whether the member responds to the infrastructure provider.
	// +optional
	Reachable bool `json:"reachable,omitempty"`

	// message is why it is not reachable, as far as it is known.
	// +optional
	// +kubebuilder:validation:MaxLength=1024
	Message string `json:"message,omitempty"`

	// id is the ID of the member, in hexadecimal.
	// +optional
	ID string `json:"id,omitempty"`

	// leader is the ID of the leader that the member knows; empty if it knows none.
	// +optional
	Leader string `json:"leader,omitempty"`

	// learner is whether the member does not vote yet: its data may be incomplete.
	// +optional
	Learner bool `json:"learner,omitempty"`

	// raftIndex is the index of the last committed entry of its log.
	// +optional
	RaftIndex int64 `json:"raftIndex,omitempty"`

	// raftTerm is the term of its log.
	// +optional
	RaftTerm int64 `json:"raftTerm,omitempty"`

	// revision is the revision of its data.
	// +optional
	Revision int64 `json:"revision,omitempty"`

	// infrastructure is the kind and name of the infrastructure machine, such as DockerMachine/a.
	// +optional
	Infrastructure string `json:"infrastructure,omitempty"`
}

// ControlPlaneRecoveryStatus is the observed state of a ControlPlaneRecovery.
type ControlPlaneRecoveryStatus struct {
	// conditions are the current conditions: Completed and Paused.
	// +optional
	// +kubebuilder:validation:MaxItems=32
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty"`

	// observedGeneration is the generation that the status is of.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// phase is Pending, Running, Completed or Failed.
	// +optional
	Phase OperationPhase `json:"phase,omitempty"`

	// members are the Machines of the control plane with their etcd members, as they were before the recovery.
	// +optional
	// +kubebuilder:validation:MaxItems=64
	// +listType=map
	// +listMapKey=machine
	Members []RecoveryMember `json:"members,omitempty"`

	// voters is the number of voting members of etcd, as far as the members that respond know.
	// +optional
	Voters int32 `json:"voters,omitempty"`

	// inspection is the number of rounds of questions to the members.
	// +optional
	Inspection int64 `json:"inspection,omitempty"`

	// inspectionTime is when the latest round of questions to the members began.
	// +optional
	InspectionTime *metav1.Time `json:"inspectionTime,omitempty"`

	// quorumLostTime is since when no member that responds knows a leader.
	// +optional
	QuorumLostTime *metav1.Time `json:"quorumLostTime,omitempty"`

	// completionTime is when the control plane was given back to its controller.
	// +optional
	CompletionTime *metav1.Time `json:"completionTime,omitempty"`

	// steps are the steps that were begun, in order: Hold, Check, Fence, ForceNewCluster, Serve, RemoveNodes and Release.
	// +optional
	// +kubebuilder:validation:MaxItems=16
	// +listType=map
	// +listMapKey=name
	Steps []OperationStep `json:"steps,omitempty"`
}

// +kubebuilder:object:root=true
// +kubebuilder:metadata:labels="clusterctl.cluster.x-k8s.io/move="
// +kubebuilder:resource:path=controlplanerecoveries,scope=Namespaced,categories=cluster-api
// +kubebuilder:subresource:status
// +kubebuilder:printcolumn:name="Cluster",type="string",JSONPath=".spec.clusterName",description="Name of the Cluster"
// +kubebuilder:printcolumn:name="Survivor",type="string",JSONPath=".spec.survivor",description="Machine whose etcd member survives"
// +kubebuilder:printcolumn:name="Phase",type="string",JSONPath=".status.phase",description="Pending, Running, Completed or Failed"
// +kubebuilder:printcolumn:name="Reason",type="string",JSONPath=`.status.conditions[?(@.type=="Completed")].reason`,description="Reason of the condition Completed"
// +kubebuilder:printcolumn:name="Step",type="string",JSONPath=".status.steps[-1:].name",description="The latest step"
// +kubebuilder:printcolumn:name="Completed",type="date",JSONPath=".status.completionTime",description="Time since completion"
// +kubebuilder:printcolumn:name="Message",type="string",JSONPath=`.status.conditions[?(@.type=="Completed")].message`,description="Message of the condition Completed",priority=10
// +kubebuilder:printcolumn:name="Age",type="date",JSONPath=".metadata.creationTimestamp",description="Time since creation",priority=10
// +kubebuilder:printcolumn:name="Quorum lost",type="date",JSONPath=".status.quorumLostTime",description="Time since the quorum is lost",priority=10

// ControlPlaneRecovery gives a control plane that has lost the quorum of its etcd a new one, made of one member that survives. What that
// member does not have is lost, and the other Machines of the control plane are deleted. Without spec.confirm, it only reports.
type ControlPlaneRecovery struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec   ControlPlaneRecoverySpec   `json:"spec,omitempty,omitzero"`
	Status ControlPlaneRecoveryStatus `json:"status,omitempty,omitzero"`
}

// GetConditions returns the conditions.
func (r *ControlPlaneRecovery) GetConditions() []metav1.Condition { return r.Status.Conditions }

// SetConditions replaces the conditions.
func (r *ControlPlaneRecovery) SetConditions(conditions []metav1.Condition) {
	r.Status.Conditions = conditions
}

// Ended reports whether the recovery has completed or failed: nothing is tried again.
func (r *ControlPlaneRecovery) Ended() bool {
	return r.Status.Phase == OperationPhaseCompleted || r.Status.Phase == OperationPhaseFailed
}

// +kubebuilder:object:root=true

// ControlPlaneRecoveryList is a list of ControlPlaneRecoveries.
type ControlPlaneRecoveryList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []ControlPlaneRecovery `json:"items"`
}
