package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// PolicyHealthyCondition is True if every selected Cluster has a recent backup.
const PolicyHealthyCondition = "Healthy"

// Reasons of the condition Healthy of EtcdBackupPolicies.
const (
	// PolicyHealthyReason: every selected Cluster has a recent backup.
	PolicyHealthyReason = "Healthy"
	// PolicyOverdueReason: the message names Clusters without one.
	PolicyOverdueReason = "BackupsOverdue"
	// PolicyInvalidReason: the spec is invalid.
	PolicyInvalidReason = "Invalid"
	// PolicySuspendedReason: spec.paused is set.
	PolicySuspendedReason = "Suspended"
	// PolicyWaitingReason: the first backups of the Clusters in the message are not overdue yet.
	PolicyWaitingReason = "WaitingForBackups"
	// PolicyNoClustersReason: the selector selects no Cluster.
	PolicyNoClustersReason = "NoClusters"
)

// EtcdBackupPolicySpec is which Clusters are backed up, how often, and which backups are kept.
// +kubebuilder:validation:XValidation:rule="has(self.schedule) != has(self.intervalSeconds)",message="exactly one of schedule and intervalSeconds must be set"
type EtcdBackupPolicySpec struct {
	// clusterSelector selects Clusters in the same namespace by label. An empty selector selects all of them.
	// +optional
	ClusterSelector metav1.LabelSelector `json:"clusterSelector,omitempty,omitzero"`

	// schedule is when backups are due, in the format of cron, such as "0 2 * * *". Times are in UTC, unless it begins with a time zone,
	// such as "CRON_TZ=Europe/Berlin 0 2 * * *".
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=128
	Schedule string `json:"schedule,omitempty"`

	// intervalSeconds is the time between two backups of a Cluster.
	// +optional
	// +kubebuilder:validation:Minimum=60
	// +kubebuilder:validation:Maximum=31536000
	IntervalSeconds *int32 `json:"intervalSeconds,omitempty"`

	// spreadSeconds is the time over which the backups of all Clusters are spread after a time of the schedule. When unset, 600; with
	// intervalSeconds, backups are always spread over the interval.
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=86400
	SpreadSeconds *int32 `json:"spreadSeconds,omitempty"`

	// maxConcurrent is how many backups of the policy may run at the same time. When unset, 4.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=100
	MaxConcurrent *int32 `json:"maxConcurrent,omitempty"`

	// retention is which backups are kept. When unset, the latest 7 of each Cluster.
	// +optional
	Retention Retention `json:"retention,omitempty,omitzero"`

	BackupSettings `json:",inline"`

	// paused ends the creation and the deletion of backups by the policy, until it is unset.
	// +optional
	Paused *bool `json:"paused,omitempty"`
}

// Retention is which completed backups of a Cluster are kept: those that any of the rules keeps. The latest one that is not damaged is
// always kept.
type Retention struct {
	// count is how many of the latest backups are kept.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=1000
	Count *int32 `json:"count,omitempty"`

	// maxAgeSeconds is the age until which all backups are kept.
	// +optional
	// +kubebuilder:validation:Minimum=60
	MaxAgeSeconds *int64 `json:"maxAgeSeconds,omitempty"`

	// keepDaily is for how many days the latest backup of the day is kept. Days are in UTC.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=1000
	KeepDaily *int32 `json:"keepDaily,omitempty"`

	// keepWeekly is for how many weeks the latest backup of the week is kept. Weeks begin on Monday.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=1000
	KeepWeekly *int32 `json:"keepWeekly,omitempty"`
}

// EtcdBackupPolicyStatus is the observed state of an EtcdBackupPolicy.
type EtcdBackupPolicyStatus struct {
	// conditions are the current conditions: Healthy and Paused.
	// +optional
	// +kubebuilder:validation:MaxItems=32
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty"`

	// clusters is the number of selected Clusters.
	// +optional
	Clusters *int32 `json:"clusters,omitempty"`

	// current is the number of them with a recent backup.
	// +optional
	Current *int32 `json:"current,omitempty"`

	// failed is the number of them whose latest backup that has ended has failed.
	// +optional
	Failed *int32 `json:"failed,omitempty"`

	// oldestSuccessTime is the time of the oldest of their latest completed backups.
	// +optional
	OldestSuccessTime *metav1.Time `json:"oldestSuccessTime,omitempty"`

	// observedGeneration is the latest metadata.generation observed by the controller.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
}

// +kubebuilder:object:root=true
// +kubebuilder:metadata:labels="clusterctl.cluster.x-k8s.io/move="
// +kubebuilder:resource:path=etcdbackuppolicies,scope=Namespaced,categories=cluster-api
// +kubebuilder:subresource:status
// +kubebuilder:printcolumn:name="Healthy",type="string",JSONPath=`.status.conditions[?(@.type=="Healthy")].status`,description="Whether every Cluster has a recent backup"
// +kubebuilder:printcolumn:name="Clusters",type="integer",JSONPath=".status.clusters",description="Number of selected Clusters"
// +kubebuilder:printcolumn:name="Current",type="integer",JSONPath=".status.current",description="Number of Clusters with a recent backup"
// +kubebuilder:printcolumn:name="Failed",type="integer",JSONPath=".status.failed",description="Number of Clusters whose latest backup failed"
// +kubebuilder:printcolumn:name="Oldest",type="date",JSONPath=".status.oldestSuccessTime",description="Age of the oldest of the latest backups"
// +kubebuilder:printcolumn:name="Store",type="string",JSONPath=".spec.storeRef.name",description="Name of the BackupStore",priority=10
// +kubebuilder:printcolumn:name="Age",type="date",JSONPath=".metadata.creationTimestamp",description="Time since creation"

// EtcdBackupPolicy creates an EtcdBackup of each Cluster that it selects, again and again, and deletes those that are no longer to be kept.
type EtcdBackupPolicy struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec   EtcdBackupPolicySpec   `json:"spec,omitempty,omitzero"`
	Status EtcdBackupPolicyStatus `json:"status,omitempty,omitzero"`
}

// GetConditions returns the conditions.
func (p *EtcdBackupPolicy) GetConditions() []metav1.Condition { return p.Status.Conditions }

// SetConditions replaces the conditions.
func (p *EtcdBackupPolicy) SetConditions(conditions []metav1.Condition) {
	p.Status.Conditions = conditions
}

// +kubebuilder:object:root=true

// EtcdBackupPolicyList is a list of EtcdBackupPolicies.
type EtcdBackupPolicyList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []EtcdBackupPolicy `json:"items"`
}
