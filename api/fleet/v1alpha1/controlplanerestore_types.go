package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

const (
	// ControlPlaneRestoreFinalizer is on ControlPlaneRestores until the control plane is given back, and what was stored for it is deleted.
	ControlPlaneRestoreFinalizer = "fleet.cluster.x-k8s.io/restore"
	// AbandonAnnotation on a ControlPlaneRestore that is being deleted gives its control plane back although it is not restored: it may have
	// no Machine then. Presence counts.
	AbandonAnnotation = "fleet.cluster.x-k8s.io/abandon"
)

// Steps of ControlPlaneRestores, in order, in status.steps.
const (
	// RestoreStepInspect: the archive was read, and its snapshot checked. Nothing is changed until the next step.
	RestoreStepInspect = "Inspect"
	// RestoreStepHold: the controller of the control plane changes no Machines from then on.
	RestoreStepHold = "Hold"
	// RestoreStepPrepare: the data of etcd is where the first Machine can download it, and missing CAs are restored.
	RestoreStepPrepare = "Prepare"
	// RestoreStepFence: the previous control plane Machines are gone.
	RestoreStepFence = "Fence"
	// RestoreStepCreate: a Machine runs the control plane, with the data of the backup.
	RestoreStepCreate = "Create"
	// RestoreStepMember: its etcd has one member, with the right address and revision.
	RestoreStepMember = "Member"
	// RestoreStepNodes: Nodes of Machines that no longer exist are deleted.
	RestoreStepNodes = "Nodes"
	// RestoreStepRelease: the controller of the control plane creates the other Machines from then on.
	RestoreStepRelease = "Release"
)

// ControlPlaneRestoreSpec is what is restored, and from which backup. It is immutable, except for what users confirm.
// +kubebuilder:validation:XValidation:rule="has(self.backupName) != has(self.archive)",message="exactly one of backupName and archive must be set"
// +kubebuilder:validation:XValidation:rule="!has(self.archive) || has(self.identitySecretRef)",message="identitySecretRef must be set with archive"
// +kubebuilder:validation:XValidation:rule="self.clusterName == oldSelf.clusterName",message="clusterName is immutable"
// +kubebuilder:validation:XValidation:rule="has(self.backupName) == has(oldSelf.backupName) && (!has(self.backupName) || self.backupName == oldSelf.backupName)",message="backupName is immutable"
// +kubebuilder:validation:XValidation:rule="has(self.archive) == has(oldSelf.archive) && (!has(self.archive) || self.archive == oldSelf.archive)",message="archive is immutable"
type ControlPlaneRestoreSpec struct {
	// clusterName is the name of the Cluster, in the same namespace, whose control plane is replaced.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	ClusterName string `json:"clusterName,omitempty"`

	// backupName is the name of an EtcdBackup in the same namespace.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	BackupName string `json:"backupName,omitempty"`

	// archive is an archive without an EtcdBackup in this namespace: of a management cluster that is lost, or of another one.
	// +optional
	Archive *ArchiveReference `json:"archive,omitempty"`

	// identitySecretRef references a Secret in the same namespace with the private key of the archive, as age-keygen writes it, under the key
	// identity. When unset, the one of the EtcdBackup.
	// +optional
	IdentitySecretRef *LocalReference `json:"identitySecretRef,omitempty"`

	// confirm is <name of the Cluster>@<revision of the backup>: all control plane Machines of the Cluster are deleted, and what was written
	// to the cluster since the backup is lost. Without it, the condition Completed says what would happen, and nothing is changed.
	// +optional
	// +kubebuilder:validation:MaxLength=128
	Confirm string `json:"confirm,omitempty"`

	// fenced confirms that control plane Machines which cannot be deleted, because their hardware is lost, do not run, and never will again:
	// they are removed without their infrastructure.
	// +optional
	Fenced *bool `json:"fenced,omitempty"`

	// acceptOtherCluster confirms that the archive is of another Cluster. What it contains belongs to that one: controllers in the restored
	// cluster act on the load balancers and the volumes of its Services and PersistentVolumes.
	// +optional
	AcceptOtherCluster *bool `json:"acceptOtherCluster,omitempty"`
}

// ArchiveReference is an archive in a store.
type ArchiveReference struct {
	// storeRef references the BackupStore in the same namespace.
	// +required
	StoreRef LocalReference `json:"storeRef,omitempty,omitzero"`

	// key is the key of the archive in the store, such as default/my-cluster/nightly-1.age. The description beside it ends with .age.json.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=512
	Key string `json:"key,omitempty"`
}

// ControlPlaneRestoreStatus is the observed state of a ControlPlaneRestore.
type ControlPlaneRestoreStatus struct {
	// conditions are the current conditions: Completed and Paused.
	// +optional
	// +kubebuilder:validation:MaxItems=32
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty"`

	// phase is Pending, Running, Completed or Failed.
	// +optional
	Phase OperationPhase `json:"phase,omitempty"`

	// steps are the steps that were begun, in order.
	// +optional
	// +kubebuilder:validation:MaxItems=16
	// +listType=map
	// +listMapKey=name
	Steps []OperationStep `json:"steps,omitempty"`

	// completionTime is when it has succeeded or failed.
	// +optional
	CompletionTime *metav1.Time `json:"completionTime,omitempty"`

	// backup is what the archive contains.
	// +optional
	Backup *RestoredBackup `json:"backup,omitempty"`

	// data is what the first Machine downloads.
	// +optional
	Data *RestoreDataStatus `json:"data,omitempty"`

	// fencedMachines are the control plane Machines that are deleted.
	// +optional
	// +kubebuilder:validation:MaxItems=100
	// +listType=map
	// +listMapKey=uid
	FencedMachines []FencedMachine `json:"fencedMachines,omitempty"`

	// machineName is the name of the Machine that has the restored data.
	// +optional
	MachineName string `json:"machineName,omitempty"`

	// warnings are what users should look at after the restore.
	// +optional
	// +kubebuilder:validation:MaxItems=16
	// +kubebuilder:validation:items:MaxLength=2048
	// +listType=atomic
	Warnings []string `json:"warnings,omitempty"`
}

// RestoredBackup is what an archive contains.
type RestoredBackup struct {
	// namespace and cluster are those of the Cluster that was backed up.
	// +optional
	Namespace string `json:"namespace,omitempty"`

	// cluster is the name of the Cluster that was backed up.
	// +optional
	Cluster string `json:"cluster,omitempty"`

	// clusterUID is its UID.
	// +optional
	ClusterUID types.UID `json:"clusterUID,omitempty"`

	// time is when the backup was made.
	// +optional
	Time *metav1.Time `json:"time,omitempty"`

	// etcdVersion is the version of etcd, such as 3.6.4.
	// +optional
	EtcdVersion string `json:"etcdVersion,omitempty"`

	// kubernetesVersion is the version of the control plane, such as v1.36.3.
	// +optional
	KubernetesVersion string `json:"kubernetesVersion,omitempty"`

	// storeName and key are where the archive is.
	// +optional
	StoreName string `json:"storeName,omitempty"`

	// key is the key of the archive in the store.
	// +optional
	Key string `json:"key,omitempty"`

	// revision is the revision of etcd.
	// +optional
	Revision int64 `json:"revision,omitempty"`

	// sizeBytes is the size of the snapshot in bytes.
	// +optional
	SizeBytes int64 `json:"sizeBytes,omitempty"`

	// keys is the number of keys of etcd.
	// +optional
	Keys int64 `json:"keys,omitempty"`

	// loadBalancers is the number of Services of type LoadBalancer.
	// +optional
	LoadBalancers int64 `json:"loadBalancers,omitempty"`

	// otherCluster is true if the archive is of another Cluster than spec.clusterName.
	// +optional
	OtherCluster bool `json:"otherCluster,omitempty"`

	// persistentVolumes is the number of PersistentVolumes.
	// +optional
	PersistentVolumes int64 `json:"persistentVolumes,omitempty"`
}

// RestoreDataStatus is what the first Machine downloads.
type RestoreDataStatus struct {
	// key is its key in the store.
	// +optional
	Key string `json:"key,omitempty"`

	// sizeBytes is its size in bytes.
	// +optional
	SizeBytes int64 `json:"sizeBytes,omitempty"`

	// expirationTime is when its address, which is in the bootstrap data of the Machine, is no longer valid.
	// +optional
	ExpirationTime *metav1.Time `json:"expirationTime,omitempty"`
}

// FencedMachine is a control plane Machine that is deleted.
type FencedMachine struct {
	// uid is its UID.
	// +required
	UID types.UID `json:"uid,omitempty"`

	// name is its name.
	// +optional
	Name string `json:"name,omitempty"`

	// nodeName is the name of its Node.
	// +optional
	NodeName string `json:"nodeName,omitempty"`
}

// +kubebuilder:object:root=true
// +kubebuilder:metadata:labels="clusterctl.cluster.x-k8s.io/move="
// +kubebuilder:resource:path=controlplanerestores,scope=Namespaced,categories=cluster-api
// +kubebuilder:subresource:status
// +kubebuilder:printcolumn:name="Cluster",type="string",JSONPath=".spec.clusterName",description="Name of the Cluster"
// +kubebuilder:printcolumn:name="Backup",type="string",JSONPath=".spec.backupName",description="Name of the EtcdBackup"
// +kubebuilder:printcolumn:name="Phase",type="string",JSONPath=".status.phase",description="Pending, Running, Completed or Failed"
// +kubebuilder:printcolumn:name="Reason",type="string",JSONPath=`.status.conditions[?(@.type=="Completed")].reason`,description="Reason of the condition Completed"
// +kubebuilder:printcolumn:name="Step",type="string",JSONPath=".status.steps[-1:].name",description="The latest step"
// +kubebuilder:printcolumn:name="Completed",type="date",JSONPath=".status.completionTime",description="Time since completion"
// +kubebuilder:printcolumn:name="Message",type="string",JSONPath=`.status.conditions[?(@.type=="Completed")].message`,description="Message of the condition Completed",priority=10
// +kubebuilder:printcolumn:name="Age",type="date",JSONPath=".metadata.creationTimestamp",description="Time since creation",priority=10

// ControlPlaneRestore replaces the control plane of a Cluster by one with the data of a backup. It is made once.
type ControlPlaneRestore struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec   ControlPlaneRestoreSpec   `json:"spec,omitempty,omitzero"`
	Status ControlPlaneRestoreStatus `json:"status,omitempty,omitzero"`
}

// GetConditions returns the conditions.
func (r *ControlPlaneRestore) GetConditions() []metav1.Condition { return r.Status.Conditions }

// SetConditions replaces the conditions.
func (r *ControlPlaneRestore) SetConditions(conditions []metav1.Condition) {
	r.Status.Conditions = conditions
}

// Ended reports whether the restore has completed or failed: it is over.
func (r *ControlPlaneRestore) Ended() bool {
	return r.Status.Phase == OperationPhaseCompleted || r.Status.Phase == OperationPhaseFailed
}

// +kubebuilder:object:root=true

// ControlPlaneRestoreList is a list of ControlPlaneRestores.
type ControlPlaneRestoreList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []ControlPlaneRestore `json:"items"`
}
