package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

const (
	// EtcdBackupFinalizer is on EtcdBackups, and removed when the archive has been deleted, or must be kept.
	EtcdBackupFinalizer = "fleet.cluster.x-k8s.io/archive"
	// PolicyLabel is the label with the name of the EtcdBackupPolicy that created an EtcdBackup. The annotation of this name has it,
	// too, even if it is too long for a label.
	PolicyLabel = "fleet.cluster.x-k8s.io/policy"
	// ArchiveAnnotation is the annotation of an EtcdBackup with the key of an archive that exists: no backup is made, and the archive is
	// adopted, with what is described beside it. It must be of the Cluster of the EtcdBackup. It has an effect only before the EtcdBackup
	// has ended. The provider sets it when an archive is complete: programs that move objects do not copy their status.
	ArchiveAnnotation = "fleet.cluster.x-k8s.io/archive-key"
	// SlotAnnotation is the annotation of EtcdBackups of a policy with the time, in RFC 3339, for which it was due.
	SlotAnnotation = "fleet.cluster.x-k8s.io/due"
)

// Conditions of EtcdBackups.
const (
	// BackupCompletedCondition is True if the archive is in the store, complete. False with reason Failed is final.
	BackupCompletedCondition = "Completed"
	// BackupVerifiedCondition is True if the archive has been read back, and what it contains can be restored.
	BackupVerifiedCondition = "Verified"
)

// Reasons of the conditions of EtcdBackups.
const (
	// BackupCompletedReason: the archive is in the store.
	BackupCompletedReason = "Completed"
	// BackupPendingReason: the backup has not begun, or is repeated after an error; the message says why.
	BackupPendingReason = "Pending"
	// BackupRunningReason: the snapshot is being taken and stored, for longer than a few seconds; the message says how far it is.
	BackupRunningReason = "Running"
	// BackupFailedReason: the backup could not be made within its time. It is not tried again.
	BackupFailedReason = "Failed"
	// BackupVerifiedReason: the archive was read back and verified; status.verified says how.
	BackupVerifiedReason = "Verified"
	// BackupNotVerifiedReason: the archive has not been verified yet.
	BackupNotVerifiedReason = "NotVerified"
	// BackupDamagedReason: the archive, or the snapshot in it, is damaged: it cannot be restored.
	BackupDamagedReason = "Damaged"
	// BackupDeletionReason: the archive is being deleted, or cannot be; the message says why.
	BackupDeletionReason = "DeletingArchive"
)

// BackupPhase summarizes an EtcdBackup, for people.
type BackupPhase string

// Phases of EtcdBackups.
const (
	// BackupPhasePending: it has not begun, or waits before it is tried again.
	BackupPhasePending BackupPhase = "Pending"
	// BackupPhaseRunning: the snapshot is being taken and stored, for longer than a few seconds.
	BackupPhaseRunning BackupPhase = "Running"
	// BackupPhaseCompleted: the archive is in the store.
	BackupPhaseCompleted BackupPhase = "Completed"
	// BackupPhaseFailed: there is no archive, or it is damaged.
	BackupPhaseFailed BackupPhase = "Failed"
)

// VerificationMethod is how an archive was verified.
type VerificationMethod string

// Methods of verification, each including those before it.
const (
	// VerificationChecksum: the archive was read back, and is the one that was written.
	VerificationChecksum VerificationMethod = "Checksum"
	// VerificationOpened: it was decrypted, and the snapshot in it was opened and has the expected revision.
	VerificationOpened VerificationMethod = "Opened"
	// VerificationRestored: the snapshot was restored into an etcd server, which served all keys.
	VerificationRestored VerificationMethod = "Restored"
)

// DeletionPolicy is what happens to an archive when its EtcdBackup is deleted.
type DeletionPolicy string

const (
	// DeletionPolicyDelete deletes the archive.
	DeletionPolicyDelete DeletionPolicy = "Delete"
	// DeletionPolicyRetain keeps it in the store.
	DeletionPolicyRetain DeletionPolicy = "Retain"
)

// EtcdBackupSpec is what is backed up, and where to. It is immutable, except for deletionPolicy.
// +kubebuilder:validation:XValidation:rule="self.clusterName == oldSelf.clusterName",message="clusterName is immutable"
// +kubebuilder:validation:XValidation:rule="self.storeRef == oldSelf.storeRef",message="storeRef is immutable"
// +kubebuilder:validation:XValidation:rule="self.encryption == oldSelf.encryption",message="encryption is immutable"
type EtcdBackupSpec struct {
	// clusterName is the name of the Cluster, in the same namespace.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	ClusterName string `json:"clusterName,omitempty"`

	BackupSettings `json:",inline"`

	// deletionPolicy is what happens to the archive when the EtcdBackup is deleted: Delete or Retain. When unset, Delete.
	// +optional
	// +kubebuilder:validation:Enum=Delete;Retain
	DeletionPolicy DeletionPolicy `json:"deletionPolicy,omitempty"`
}

// BackupSettings are the settings of a backup, which EtcdBackupPolicies pass on to their EtcdBackups.
type BackupSettings struct {
	// storeRef references the BackupStore in the same namespace.
	// +required
	StoreRef LocalReference `json:"storeRef,omitempty,omitzero"`

	// encryption is who can decrypt the archive. Archives are always encrypted: they contain all Secrets and CA keys of the cluster.
	// +required
	Encryption Encryption `json:"encryption,omitempty,omitzero"`

	// timeoutSeconds is how long a backup may be tried before it has failed. When unset, 3600.
	// +optional
	// +kubebuilder:validation:Minimum=60
	// +kubebuilder:validation:Maximum=86400
	TimeoutSeconds *int32 `json:"timeoutSeconds,omitempty"`

	// verification is how archives are verified: Checksum, Opened or Restored. When unset, Restored if encryption has an identity, and
	// Checksum otherwise.
	// +optional
	// +kubebuilder:validation:Enum=Checksum;Opened;Restored
	Verification VerificationMethod `json:"verification,omitempty"`
}

// Encryption is who can decrypt an archive, in the format of age (https://age-encryption.org).
// +kubebuilder:validation:XValidation:rule="has(self.recipients) || has(self.identitySecretRef)",message="recipients or identitySecretRef must be set: archives are always encrypted"
type Encryption struct {
	// recipients are public keys, such as age1ql3z7hjy54pw3hyww5ayyfg7zqgvc7w3j2elw8zmrj2kg5sfn9aqmcac8p.
	// +optional
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=16
	// +kubebuilder:validation:items:MaxLength=128
	// +listType=atomic
	Recipients []string `json:"recipients,omitempty"`

	// identitySecretRef references a Secret in the same namespace with the private key, as age-keygen writes it, under the key identity.
	// Its public key is a recipient, too. The provider needs it to verify archives beyond their checksum. Keep a copy of the key
	// elsewhere: without it, no archive can be restored.
	// +optional
	IdentitySecretRef *LocalReference `json:"identitySecretRef,omitempty"`
}

// IdentityKey is the key of the Secret that Encryption.IdentitySecretRef names.
const IdentityKey = "identity"

// EtcdBackupStatus is the observed state of an EtcdBackup.
type EtcdBackupStatus struct {
	// conditions are the current conditions: Completed, Verified and Paused.
	// +optional
	// +kubebuilder:validation:MaxItems=32
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty"`

	// phase is Pending, Running, Completed or Failed.
	// +optional
	Phase BackupPhase `json:"phase,omitempty"`

	// attempts is how often the backup was begun.
	// +optional
	Attempts int32 `json:"attempts,omitempty"`

	// startTime is when the successful attempt, or the latest one, began.
	// +optional
	StartTime *metav1.Time `json:"startTime,omitempty"`

	// completionTime is when the archive was complete, or the backup had failed.
	// +optional
	CompletionTime *metav1.Time `json:"completionTime,omitempty"`

	// archive describes the archive in the store.
	// +optional
	Archive *ArchiveStatus `json:"archive,omitempty"`

	// etcd describes the snapshot in the archive.
	// +optional
	Etcd *SnapshotStatus `json:"etcd,omitempty"`

	// kubernetesVersion is the version of the cluster's control plane, such as v1.36.3.
	// +optional
	KubernetesVersion string `json:"kubernetesVersion,omitempty"`

	// verified is the latest successful verification.
	// +optional
	Verified *VerificationStatus `json:"verified,omitempty"`
}

// ArchiveStatus describes an archive.
type ArchiveStatus struct {
	// key is the key of the archive in the store, below the store's prefix.
	// +optional
	Key string `json:"key,omitempty"`

	// sizeBytes is the size of the archive in bytes.
	// +optional
	SizeBytes int64 `json:"sizeBytes,omitempty"`

	// sha256 is the SHA-256 checksum of the archive, in hexadecimal.
	// +optional
	SHA256 string `json:"sha256,omitempty"`

	// contents are the parts of the archive besides the snapshot: PKI for the Secrets with the cluster's CAs and keys, Objects for the
	// objects that describe the cluster.
	// +optional
	// +listType=set
	Contents []string `json:"contents,omitempty"`
}

// SnapshotStatus describes a snapshot of etcd.
type SnapshotStatus struct {
	// member is the name of the member, and Node, that it is from.
	// +optional
	Member string `json:"member,omitempty"`

	// clusterID is the ID of the etcd cluster, in hexadecimal.
	// +optional
	ClusterID string `json:"clusterID,omitempty"`

	// revision is etcd's revision: that of the snapshot once it is verified by Opened or Restored, before that the one when it began.
	// +optional
	Revision int64 `json:"revision,omitempty"`

	// sizeBytes is the size of the snapshot in bytes.
	// +optional
	SizeBytes int64 `json:"sizeBytes,omitempty"`

	// sha256 is the SHA-256 checksum of the database, which etcd appends to a snapshot, in hexadecimal.
	// +optional
	SHA256 string `json:"sha256,omitempty"`

	// version is the version of etcd, such as 3.6.4.
	// +optional
	Version string `json:"version,omitempty"`
}

// VerificationStatus is the result of a verification.
type VerificationStatus struct {
	// time is when it was done.
	// +optional
	Time metav1.Time `json:"time,omitempty,omitzero"`

	// method is Checksum, Opened or Restored.
	// +optional
	Method VerificationMethod `json:"method,omitempty"`

	// keys is the number of keys that the restored etcd served.
	// +optional
	Keys int64 `json:"keys,omitempty"`

	// encryptedKeys is the number of those whose values the API server has encrypted, so that only their presence was verified.
	// +optional
	EncryptedKeys int64 `json:"encryptedKeys,omitempty"`
}

// +kubebuilder:object:root=true
// +kubebuilder:metadata:labels="clusterctl.cluster.x-k8s.io/move="
// +kubebuilder:resource:path=etcdbackups,scope=Namespaced,categories=cluster-api
// +kubebuilder:subresource:status
// +kubebuilder:printcolumn:name="Cluster",type="string",JSONPath=".spec.clusterName",description="Name of the Cluster"
// +kubebuilder:printcolumn:name="Phase",type="string",JSONPath=".status.phase",description="Pending, Running, Completed or Failed"
// +kubebuilder:printcolumn:name="Verified",type="string",JSONPath=".status.verified.method",description="How the archive was verified"
// +kubebuilder:printcolumn:name="Revision",type="integer",JSONPath=".status.etcd.revision",description="Revision of etcd"
// +kubebuilder:printcolumn:name="Size",type="integer",JSONPath=".status.archive.sizeBytes",description="Size of the archive in bytes"
// +kubebuilder:printcolumn:name="Completed",type="date",JSONPath=".status.completionTime",description="Time since completion"
// +kubebuilder:printcolumn:name="Key",type="string",JSONPath=".status.archive.key",description="Key of the archive in the store",priority=10
// +kubebuilder:printcolumn:name="Age",type="date",JSONPath=".metadata.creationTimestamp",description="Time since creation",priority=10

// EtcdBackup is one backup of the etcd of a Cluster's control plane, with the Secrets of its CAs and the objects that describe it.
type EtcdBackup struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec   EtcdBackupSpec   `json:"spec,omitempty,omitzero"`
	Status EtcdBackupStatus `json:"status,omitempty,omitzero"`
}

// GetConditions returns the conditions.
func (b *EtcdBackup) GetConditions() []metav1.Condition { return b.Status.Conditions }

// SetConditions replaces the conditions.
func (b *EtcdBackup) SetConditions(conditions []metav1.Condition) { b.Status.Conditions = conditions }

// Ended reports whether the backup has completed or failed: nothing is tried again.
func (b *EtcdBackup) Ended() bool {
	return b.Status.Phase == BackupPhaseCompleted || b.Status.Phase == BackupPhaseFailed
}

// +kubebuilder:object:root=true

// EtcdBackupList is a list of EtcdBackups.
type EtcdBackupList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []EtcdBackup `json:"items"`
}
