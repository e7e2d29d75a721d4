package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// RolloutGate is what a stage waits for before its first Cluster is changed.
type RolloutGate string

const (
	// RolloutGateNone waits for the stages before it only.
	RolloutGateNone RolloutGate = "None"
	// RolloutGateApproval waits for an entry in spec.approvals of the ClusterRollout.
	RolloutGateApproval RolloutGate = "Approval"
)

// RolloutFailureAction is what happens when more Clusters of a stage fail than it permits.
type RolloutFailureAction string

const (
	// RolloutHalt changes no more Clusters.
	RolloutHalt RolloutFailureAction = "Halt"
	// RolloutRollback changes no more Clusters, and sets those that have failed back to what they were.
	RolloutRollback RolloutFailureAction = "Rollback"
)

// UnhealthyClusters is what a rollout does with Clusters that are not healthy before it changes them.
type UnhealthyClusters string

const (
	// UnhealthyClustersSkip leaves them as they are. They do not count as failures.
	UnhealthyClustersSkip UnhealthyClusters = "Skip"
	// UnhealthyClustersBlock waits until they are healthy.
	UnhealthyClustersBlock UnhealthyClusters = "Block"
	// UnhealthyClustersUpdate changes them like the others.
	UnhealthyClustersUpdate UnhealthyClusters = "Update"
)

// RolloutStrategy is how a change reaches many Clusters.
type RolloutStrategy struct {
	// stages are taken one after the other. Each Cluster is in the first stage that selects it; those that no stage selects are not changed.
	// +required
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=20
	// +listType=map
	// +listMapKey=name
	Stages []RolloutStage `json:"stages,omitempty"`

	// progressDeadlineSeconds is how long the change of one Cluster may take. A Cluster that is not healthy by then has failed. When unset,
	// 3600.
	// +optional
	// +kubebuilder:validation:Minimum=10
	// +kubebuilder:validation:Maximum=604800
	ProgressDeadlineSeconds *int32 `json:"progressDeadlineSeconds,omitempty"`

	// healthChecks are conditions in CEL that a Cluster must meet, in addition to being available and up to date, before and after its
	// change. In each, self is the Cluster in v1beta2.
	// +optional
	// +kubebuilder:validation:MaxItems=10
	// +listType=atomic
	HealthChecks []RolloutHealthCheck `json:"healthChecks,omitempty"`

	// onFailure is what happens when more Clusters of a stage fail than its maxFailures: Halt, or Rollback, which also sets the classRef and
	// variables of those that have failed back. A version never goes back. When unset, Halt.
	// +optional
	// +kubebuilder:validation:Enum=Halt;Rollback
	OnFailure RolloutFailureAction `json:"onFailure,omitempty"`

	// unhealthyClusters is what happens to Clusters that are not healthy before their change: Skip, Block or Update. When unset, Skip.
	// +optional
	// +kubebuilder:validation:Enum=Skip;Block;Update
	UnhealthyClusters UnhealthyClusters `json:"unhealthyClusters,omitempty"`

	// windows are when the changes of Clusters may begin. When unset, at any time. What has begun continues outside of them.
	// +optional
	// +kubebuilder:validation:MaxItems=20
	// +listType=atomic
	Windows []RolloutWindow `json:"windows,omitempty"`
}

// RolloutStage is a group of Clusters that are changed before those of the next stage.
// +kubebuilder:validation:XValidation:rule="!(has(self.selector) && has(self.percent))",message="only one of selector and percent may be set"
type RolloutStage struct {
	// name is the name of the stage.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9]*[a-z0-9])?$`
	Name string `json:"name,omitempty"`

	// selector selects Clusters, of those that are in no stage before, by label.
	// +optional
	Selector *metav1.LabelSelector `json:"selector,omitempty"`

	// percent is the share of all Clusters of the rollout that are changed in this stage, rounded up, of those that are in no stage before.
	// Which ones follows from their UIDs. When neither selector nor percent is set, the stage has all that are left.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=100
	Percent *int32 `json:"percent,omitempty"`

	// maxConcurrent is how many Clusters of the stage may be in change at the same time: a number, or a percentage of the stage such as 10%,
	// rounded down, at least 1. When unset, 1.
	// +optional
	// +kubebuilder:validation:XIntOrString
	MaxConcurrent *intstr.IntOrString `json:"maxConcurrent,omitempty"`

	// maxFailures is how many Clusters of the stage may fail before the rollout halts: a number, or a percentage of the stage such as 5%,
	// rounded down. When unset, 0: the first failure halts it.
	// +optional
	// +kubebuilder:validation:XIntOrString
	MaxFailures *intstr.IntOrString `json:"maxFailures,omitempty"`

	// soakSeconds is how long all changed Clusters of the stage must stay healthy, after the last of them was changed, before the next stage
	// begins. When unset, 0.
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=2592000
	SoakSeconds *int32 `json:"soakSeconds,omitempty"`

	// gate is what the stage waits for: None, or Approval by an entry in spec.approvals. When unset, None.
	// +optional
	// +kubebuilder:validation:Enum=None;Approval
	Gate RolloutGate `json:"gate,omitempty"`
}

// RolloutHealthCheck is a condition that a Cluster must meet.
type RolloutHealthCheck struct {
	// expression is an expression in CEL that is true for a healthy Cluster, which is self, such as
	// self.status.conditions.exists(c, c.type == 'BackupUpToDate' && c.status == 'True').
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=1024
	Expression string `json:"expression,omitempty"`

	// message is what is wrong with a Cluster for which it is false.
	// +optional
	// +kubebuilder:validation:MaxLength=256
	Message string `json:"message,omitempty"`
}

// RolloutWindow is when changes may begin.
type RolloutWindow struct {
	// schedule is when the window opens, in the format of cron, such as "0 22 * * 1-4". Times are in UTC, unless it begins with a time zone,
	// such as "CRON_TZ=Europe/Berlin 0 22 * * 1-4".
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=128
	Schedule string `json:"schedule,omitempty"`

	// durationSeconds is how long it is open.
	// +required
	// +kubebuilder:validation:Minimum=60
	// +kubebuilder:validation:Maximum=604800
	DurationSeconds int32 `json:"durationSeconds,omitempty"`
}

// +kubebuilder:object:root=true
// +kubebuilder:metadata:labels="clusterctl.cluster.x-k8s.io/move="
// +kubebuilder:resource:path=clusterrolloutstrategies,scope=Namespaced,categories=cluster-api
// +kubebuilder:printcolumn:name="Stages",type="string",JSONPath=".spec.stages[*].name",description="The stages, in order"
// +kubebuilder:printcolumn:name="On Failure",type="string",JSONPath=".spec.onFailure",description="What happens when a stage fails",priority=10
// +kubebuilder:printcolumn:name="Age",type="date",JSONPath=".metadata.creationTimestamp",description="Time since creation"

// ClusterRolloutStrategy is a RolloutStrategy for many ClusterRollouts. A rollout that has begun keeps the strategy that it began with.
type ClusterRolloutStrategy struct {
	metav1.TypeMeta `json:",inline"`

	// metadata is the metadata of the object.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty,omitzero"`

	// spec is the strategy.
	// +required
	Spec RolloutStrategy `json:"spec,omitempty,omitzero"`
}

// +kubebuilder:object:root=true

// ClusterRolloutStrategyList is a list of ClusterRolloutStrategies.
type ClusterRolloutStrategyList struct {
	metav1.TypeMeta `json:",inline"`

	// metadata is the metadata of the list.
	// +optional
	metav1.ListMeta `json:"metadata,omitempty"`

	// items are the objects.
	Items []ClusterRolloutStrategy `json:"items"`
}
