package v1alpha1

import (
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// RolloutPhase summarizes a ClusterRollout, for people.
type RolloutPhase string

// Phases of ClusterRollouts.
const (
	// RolloutPlanning: Clusters are being selected, and it is found out what the change does to each; none is changed yet.
	RolloutPlanning RolloutPhase = "Planning"
	// RolloutWaitingForApproval: the next stage waits for an entry in spec.approvals.
	RolloutWaitingForApproval RolloutPhase = "WaitingForApproval"
	// RolloutProgressing: Clusters are being changed, or wait for their turn.
	RolloutProgressing RolloutPhase = "Progressing"
	// RolloutSoaking: all Clusters of a stage are changed, and must stay healthy for a while.
	RolloutSoaking RolloutPhase = "Soaking"
	// RolloutPaused: spec.paused is set.
	RolloutPaused RolloutPhase = "Paused"
	// RolloutHalted: no more Clusters are changed, because too many have failed, or the class was changed; see the condition Halted.
	RolloutHalted RolloutPhase = "Halted"
	// RolloutRollingBack: Clusters are being set back to what they were.
	RolloutRollingBack RolloutPhase = "RollingBack"
	// RolloutCompleted: every Cluster was changed, or skipped.
	RolloutCompleted RolloutPhase = "Completed"
	// RolloutAborted: spec.abort has ended it.
	RolloutAborted RolloutPhase = "Aborted"
)

const (
	// RolloutCompletedCondition is True if all Clusters were changed, or skipped.
	RolloutCompletedCondition = "Completed"
	// RolloutHaltedCondition is True if no more Clusters are changed until a user acts.
	RolloutHaltedCondition = "Halted"
)

// Reasons of the conditions of ClusterRollouts, besides its phases.
const (
	// RolloutInvalidReason: the spec is invalid, or refers to what does not exist.
	RolloutInvalidReason = "Invalid"
	// RolloutOutsideWindowReason: none of the windows is open.
	RolloutOutsideWindowReason = "OutsideWindow"
	// RolloutTooManyFailuresReason: more Clusters of a stage have failed than its maxFailures.
	RolloutTooManyFailuresReason = "TooManyFailures"
	// RolloutClassChangedReason: the ClusterClass was changed since the plan.
	RolloutClassChangedReason = "ClassChanged"
	// RolloutNotHaltedReason: it is not halted.
	RolloutNotHaltedReason = "NotHalted"
)

// RolloutAbort is how a ClusterRollout is ended early.
type RolloutAbort string

const (
	// RolloutAbortStop changes no more Clusters. Those that are in change continue.
	RolloutAbortStop RolloutAbort = "Stop"
	// RolloutAbortRollback changes no more Clusters, and sets the classRef and variables of all that it has changed back.
	RolloutAbortRollback RolloutAbort = "Rollback"
)

// ClusterRolloutSpec is a change, and how it reaches many Clusters. It is immutable, except for paused, approvals, attempt, includeNew and
// abort.
// +kubebuilder:validation:XValidation:rule="self.change == oldSelf.change",message="change is immutable: create another ClusterRollout"
// +kubebuilder:validation:XValidation:rule="has(self.clusterSelector) == has(oldSelf.clusterSelector) && (!has(self.clusterSelector) || self.clusterSelector == oldSelf.clusterSelector)",message="clusterSelector is immutable"
// +kubebuilder:validation:XValidation:rule="has(self.classNames) == has(oldSelf.classNames) && (!has(self.classNames) || self.classNames == oldSelf.classNames)",message="classNames is immutable"
// +kubebuilder:validation:XValidation:rule="has(self.strategy) == has(oldSelf.strategy) && (!has(self.strategy) || self.strategy == oldSelf.strategy)",message="strategy is immutable"
// +kubebuilder:validation:XValidation:rule="has(self.strategyRef) == has(oldSelf.strategyRef) && (!has(self.strategyRef) || self.strategyRef == oldSelf.strategyRef)",message="strategyRef is immutable"
// +kubebuilder:validation:XValidation:rule="has(self.strategy) != has(self.strategyRef)",message="exactly one of strategy and strategyRef must be set"
// +kubebuilder:validation:XValidation:rule="!has(oldSelf.abort) || has(self.abort)",message="abort cannot be unset: create another ClusterRollout"
// +kubebuilder:validation:XValidation:rule="!has(oldSelf.attempt) || has(self.attempt) && self.attempt >= oldSelf.attempt",message="attempt cannot decrease"
type ClusterRolloutSpec struct {
	// clusterSelector selects Clusters with a topology in the same namespace, by label. An empty selector selects all of them. Which ones is
	// determined once, before the first is changed; see includeNew.
	// +optional
	ClusterSelector metav1.LabelSelector `json:"clusterSelector,omitempty,omitzero"`

	// classNames restricts the selected Clusters to those whose ClusterClass has one of these names. When unset, of any class.
	// +optional
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=100
	// +kubebuilder:validation:items:MaxLength=253
	// +listType=set
	ClassNames []string `json:"classNames,omitempty"`

	// change is what is set in spec.topology of each Cluster.
	// +required
	Change RolloutChange `json:"change,omitempty,omitzero"`

	// strategy is how the change reaches the Clusters.
	// +optional
	Strategy *RolloutStrategy `json:"strategy,omitempty"`

	// strategyRef is a ClusterRolloutStrategy in the same namespace, instead of strategy.
	// +optional
	StrategyRef RolloutStrategyReference `json:"strategyRef,omitempty,omitzero"`

	// includeNew includes Clusters that the selector selects only after the rollout has begun, in their stage or, if that has ended, in the
	// current one. When unset, false.
	// +optional
	IncludeNew *bool `json:"includeNew,omitempty"`

	// force changes Clusters although another field manager applies the fields of the change, such as a GitOps controller, which may
	// take the change back. When unset, false: such Clusters are not changed.
	// +optional
	Force *bool `json:"force,omitempty"`

	// paused ends changes of further Clusters, until it is unset. Those that are in change continue.
	// +optional
	Paused *bool `json:"paused,omitempty"`

	// approvals permit stages with the gate Approval.
	// +optional
	// +kubebuilder:validation:MaxItems=20
	// +listType=map
	// +listMapKey=stage
	Approvals []RolloutApproval `json:"approvals,omitempty"`

	// attempt is increased to try again: Clusters that have failed are considered anew, and a rollout that has halted continues. A changed
	// ClusterClass is planned anew.
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=1000
	Attempt *int32 `json:"attempt,omitempty"`

	// abort ends the rollout: Stop, or Rollback, which sets the classRef and variables of the Clusters that were changed back.
	// +optional
	// +kubebuilder:validation:Enum=Stop;Rollback
	Abort RolloutAbort `json:"abort,omitempty"`
}

// RolloutChange is what is set in spec.topology of Clusters.
// +kubebuilder:validation:MinProperties=1
type RolloutChange struct {
	// classRef is the new ClusterClass.
	// +optional
	ClassRef RolloutClassReference `json:"classRef,omitempty,omitzero"`

	// version is the new Kubernetes version, such as v1.34.1. It never goes back.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=256
	Version string `json:"version,omitempty"`

	// variables are set in spec.topology.variables. Other variables are kept.
	// +optional
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=100
	// +listType=map
	// +listMapKey=name
	Variables []RolloutVariable `json:"variables,omitempty"`
}

// RolloutClassReference refers to a ClusterClass.
type RolloutClassReference struct {
	// name is the name of the ClusterClass.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name,omitempty"`

	// namespace is the namespace of the ClusterClass. When unset, that of the Cluster.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	Namespace string `json:"namespace,omitempty"`
}

// RolloutVariable is the value of a variable of a ClusterClass.
type RolloutVariable struct {
	// name is the name of the variable.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=256
	Name string `json:"name,omitempty"`

	// value is its value.
	// +required
	Value apiextensionsv1.JSON `json:"value,omitempty,omitzero"`
}

// RolloutStrategyReference refers to a ClusterRolloutStrategy in the same namespace.
type RolloutStrategyReference struct {
	// name is the name of the ClusterRolloutStrategy.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name,omitempty"`
}

// RolloutApproval permits a stage.
type RolloutApproval struct {
	// stage is the name of the stage.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	Stage string `json:"stage,omitempty"`

	// planHash is status.plan.hash: an approval of another plan does not count.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=64
	PlanHash string `json:"planHash,omitempty"`

	// user is who has approved, as the client wrote it: clusterctl rollout approve writes the user of its kubeconfig. Everybody who may
	// update the ClusterRollout can approve.
	// +optional
	// +kubebuilder:validation:MaxLength=256
	User string `json:"user,omitempty"`

	// time is when it was approved.
	// +optional
	Time *metav1.Time `json:"time,omitempty"`
}

// ClusterRolloutStatus is the observed state of a ClusterRollout. It counts Clusters; what happens to each one is in its annotation
// fleet.cluster.x-k8s.io/rollout.
type ClusterRolloutStatus struct {
	// conditions are the current conditions: Completed, Halted and Paused.
	// +optional
	// +kubebuilder:validation:MaxItems=32
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty"`

	// observedGeneration is the generation that the status is of.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// phase is Planning, WaitingForApproval, Progressing, Soaking, Paused, Halted, RollingBack, Completed or Aborted.
	// +optional
	Phase RolloutPhase `json:"phase,omitempty"`

	// strategy is the strategy that the rollout has begun with.
	// +optional
	Strategy *RolloutStrategy `json:"strategy,omitempty"`

	// plan is what the change does.
	// +optional
	Plan *RolloutPlan `json:"plan,omitempty"`

	// stages count the Clusters of each stage, in order.
	// +optional
	// +kubebuilder:validation:MaxItems=20
	// +listType=map
	// +listMapKey=name
	Stages []RolloutStageStatus `json:"stages,omitempty"`

	// clusters is the number of Clusters in all stages.
	// +optional
	Clusters *int32 `json:"clusters,omitempty"`

	// done is the number of them that were changed, and are healthy.
	// +optional
	Done *int32 `json:"done,omitempty"`

	// failed is the number of them that have failed.
	// +optional
	Failed *int32 `json:"failed,omitempty"`

	// startTime is when the first stage began.
	// +optional
	StartTime *metav1.Time `json:"startTime,omitempty"`

	// completionTime is when the rollout ended.
	// +optional
	CompletionTime *metav1.Time `json:"completionTime,omitempty"`
}

// RolloutPlan is what a change does to the selected Clusters, before it begins.
type RolloutPlan struct {
	// hash identifies the plan: the change, the class, and what it does to each Cluster. It is empty until all Clusters are planned.
	// +optional
	// +kubebuilder:validation:MaxLength=64
	Hash string `json:"hash,omitempty"`

	// attempt is spec.attempt when the plan was made.
	// +optional
	Attempt int32 `json:"attempt,omitempty"`

	// class is the ClusterClass of the change, as it was planned.
	// +optional
	Class *PlannedClass `json:"class,omitempty"`

	// clusters is the number of planned Clusters.
	// +optional
	Clusters *int32 `json:"clusters,omitempty"`

	// unchanged is the number of them on which the change has no effect.
	// +optional
	Unchanged *int32 `json:"unchanged,omitempty"`

	// inPlace is the number of them that change without a Machine being replaced.
	// +optional
	InPlace *int32 `json:"inPlace,omitempty"`

	// replacing is the number of them of which Machines are replaced.
	// +optional
	Replacing *int32 `json:"replacing,omitempty"`

	// machines is the number of Machines that are replaced in all Clusters.
	// +optional
	Machines *int32 `json:"machines,omitempty"`

	// forbidden is the number of Clusters that cannot be changed, and are skipped.
	// +optional
	Forbidden *int32 `json:"forbidden,omitempty"`

	// unknown is the number of Clusters for which no plan could be made.
	// +optional
	Unknown *int32 `json:"unknown,omitempty"`

	// examples are Clusters that cannot be changed or planned, with the reason; at most 10.
	// +optional
	// +kubebuilder:validation:MaxItems=10
	// +listType=atomic
	Examples []RolloutExample `json:"examples,omitempty"`

	// irreversible is what of the change cannot go back, such as the version; empty if all of it can.
	// +optional
	// +kubebuilder:validation:MaxLength=512
	Irreversible string `json:"irreversible,omitempty"`
}

// PlannedClass identifies a ClusterClass as it was planned.
type PlannedClass struct {
	// namespace is its namespace.
	// +optional
	// +kubebuilder:validation:MaxLength=63
	Namespace string `json:"namespace,omitempty"`

	// name is its name.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name,omitempty"`

	// uid is its UID.
	// +optional
	// +kubebuilder:validation:MaxLength=64
	UID string `json:"uid,omitempty"`

	// generation is its generation.
	// +optional
	Generation int64 `json:"generation,omitempty"`
}

// RolloutExample is a Cluster, and what to know about it.
type RolloutExample struct {
	// cluster is the name of the Cluster.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Cluster string `json:"cluster,omitempty"`

	// reason is what to know about it.
	// +optional
	// +kubebuilder:validation:MaxLength=512
	Reason string `json:"reason,omitempty"`
}

// RolloutStageStatus counts the Clusters of a stage.
type RolloutStageStatus struct {
	// name is the name of the stage.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	Name string `json:"name,omitempty"`

	// total is how many Clusters it has, and the others how many of them are in each state.
	Total int32 `json:"total"`
	// waiting is how many wait for their turn.
	Waiting int32 `json:"waiting"`
	// updating is how many are in change.
	Updating int32 `json:"updating"`
	// done is how many were changed, and are healthy.
	Done int32 `json:"done"`
	// failed is how many have failed.
	Failed int32 `json:"failed"`
	// skipped is how many are left as they are.
	Skipped int32 `json:"skipped"`
	// rolledBack is how many were set back, or are being set back.
	RolledBack int32 `json:"rolledBack"`

	// soakUntil is when the soak time of the stage ends, if it has begun.
	// +optional
	SoakUntil *metav1.Time `json:"soakUntil,omitempty"`

	// approvedBy is who has approved the stage.
	// +optional
	// +kubebuilder:validation:MaxLength=256
	ApprovedBy string `json:"approvedBy,omitempty"`
}

// +kubebuilder:object:root=true
// +kubebuilder:metadata:labels="clusterctl.cluster.x-k8s.io/move="
// +kubebuilder:resource:path=clusterrollouts,scope=Namespaced,categories=cluster-api
// +kubebuilder:subresource:status
// +kubebuilder:printcolumn:name="Phase",type="string",JSONPath=".status.phase",description="Planning, WaitingForApproval, Progressing, Soaking, Paused, Halted, RollingBack, Completed or Aborted"
// +kubebuilder:printcolumn:name="Clusters",type="integer",JSONPath=".status.clusters",description="Number of Clusters in all stages"
// +kubebuilder:printcolumn:name="Done",type="integer",JSONPath=".status.done",description="Number of Clusters that were changed, and are healthy"
// +kubebuilder:printcolumn:name="Failed",type="integer",JSONPath=".status.failed",description="Number of Clusters that have failed"
// +kubebuilder:printcolumn:name="Message",type="string",JSONPath=".status.conditions[?(@.type=='Completed')].message",description="What it does or waits for",priority=10
// +kubebuilder:printcolumn:name="Age",type="date",JSONPath=".metadata.creationTimestamp",description="Time since creation"

// ClusterRollout changes many Clusters in stages, a few at the same time, and halts when they fail.
type ClusterRollout struct {
	metav1.TypeMeta `json:",inline"`

	// metadata is the metadata of the object.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty,omitzero"`

	// spec is the change, and how it reaches the Clusters.
	// +required
	Spec ClusterRolloutSpec `json:"spec,omitempty,omitzero"`

	// status is the observed state.
	// +optional
	Status ClusterRolloutStatus `json:"status,omitempty,omitzero"`
}

// GetConditions returns the conditions.
func (r *ClusterRollout) GetConditions() []metav1.Condition { return r.Status.Conditions }

// SetConditions sets the conditions.
func (r *ClusterRollout) SetConditions(conditions []metav1.Condition) {
	r.Status.Conditions = conditions
}

// Ended reports whether nothing more happens.
func (r *ClusterRollout) Ended() bool {
	return r.Status.Phase == RolloutCompleted || r.Status.Phase == RolloutAborted
}

// +kubebuilder:object:root=true

// ClusterRolloutList is a list of ClusterRollouts.
type ClusterRolloutList struct {
	metav1.TypeMeta `json:",inline"`

	// metadata is the metadata of the list.
	// +optional
	metav1.ListMeta `json:"metadata,omitempty"`

	// items are the objects.
	Items []ClusterRollout `json:"items"`
}
