package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// BackupStoreFinalizer is on BackupStores, and removed when no EtcdBackup needs the store to delete its archive.
const BackupStoreFinalizer = "fleet.cluster.x-k8s.io/backupstore"

// ImportAnnotation on a BackupStore has the provider create EtcdBackups for the archives of a Cluster in the store, if they have none:
// their objects were lost with a management cluster. The value is the name of the Cluster, or * for all of the namespace. The archives must
// be of Clusters of the same namespace. It is done once per value: to repeat it, append a slash and anything else, such as ledger/2.
const ImportAnnotation = "fleet.cluster.x-k8s.io/import"

// StoreImportedCondition is True if what ImportAnnotation asks for is done. There is none without the annotation.
const StoreImportedCondition = "Imported"

// Reasons of the condition Imported of BackupStores.
const (
	// StoreImportedReason: the EtcdBackups were created; the message says how many.
	StoreImportedReason = "Imported"
	// StoreImportLimitedReason: there are more archives than are imported at once. The newest have EtcdBackups.
	StoreImportLimitedReason = "LimitReached"
	// StoreImportFailedReason: the archives could not be listed, or EtcdBackups not be created; it is tried again.
	StoreImportFailedReason = "Failed"
	// StoreImportInvalidReason: the value of the annotation is invalid.
	StoreImportInvalidReason = "Invalid"
)

// StoreReadyCondition is True if archives can be written to the BackupStore, and read.
const StoreReadyCondition = "Ready"

// Reasons of the condition Ready of BackupStores.
const (
	// StoreReadyReason: archives can be written and read.
	StoreReadyReason = "Ready"
	// StoreInvalidReason: the spec, or the Secret with the credentials, is invalid or incomplete.
	StoreInvalidReason = "Invalid"
	// StoreAddressReason: the endpoint has a loopback, link-local or multicast address, which the manager's flag --allow-local-stores allows.
	StoreAddressReason = "AddressRefused"
	// StoreRejectedReason: the store rejects the credentials.
	StoreRejectedReason = "AccessDenied"
	// StoreMissingReason: the bucket or directory does not exist.
	StoreMissingReason = "NotFound"
	// StoreFullReason: the store has no space left.
	StoreFullReason = "Full"
	// StoreUnreachableReason: the store does not respond.
	StoreUnreachableReason = "Unreachable"
	// StoreInUseReason: the BackupStore is being deleted, and waits for EtcdBackups whose archives must be deleted with them.
	StoreInUseReason = "InUse"
	// StoreFailedReason: the store reports another error.
	StoreFailedReason = "Failed"
)

// Keys of the Secret that S3Store.CredentialsRef names.
const (
	// AccessKeyIDKey is the key of the access key's ID.
	AccessKeyIDKey = "accessKeyID"
	// SecretAccessKeyKey is the key of the access key itself.
	SecretAccessKeyKey = "secretAccessKey"
	// SessionTokenKey is the key of a token that temporary credentials need.
	SessionTokenKey = "sessionToken"
)

// BackupStoreSpec is where archives are kept: one of s3 and directory.
// +kubebuilder:validation:XValidation:rule="has(self.s3) != has(self.directory)",message="exactly one of s3 and directory must be set"
type BackupStoreSpec struct {
	// s3 is a bucket of a service that is compatible with Amazon S3.
	// +optional
	S3 *S3Store `json:"s3,omitempty"`

	// directory is a directory that the manager can access: in the data directory of capi, or in a volume.
	// +optional
	Directory *DirectoryStore `json:"directory,omitempty"`
}

// S3Store is a bucket.
type S3Store struct {
	// endpoint is the URL of the service, such as https://s3.example.com:9000. Use http only within a trusted network: archives are
	// encrypted, requests are signed, but what is stored and deleted is visible. Loopback, link-local and multicast addresses need the
	// manager's flag --allow-local-stores.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=512
	// +kubebuilder:validation:Pattern=`^https?://[^/@]+/?$`
	Endpoint string `json:"endpoint,omitempty"`

	// bucket is the name of the bucket. It must exist.
	// +required
	// +kubebuilder:validation:MinLength=3
	// +kubebuilder:validation:MaxLength=63
	Bucket string `json:"bucket,omitempty"`

	// prefix precedes the keys of all objects, such as fleet/. Management clusters that share a bucket should have different ones.
	// +optional
	// +kubebuilder:validation:MaxLength=256
	Prefix string `json:"prefix,omitempty"`

	// region is the region of the bucket. When unset, us-east-1.
	// +optional
	// +kubebuilder:validation:MaxLength=64
	Region string `json:"region,omitempty"`

	// forcePathStyle puts the bucket into the path of requests instead of the host name. Services other than Amazon's often need it.
	// +optional
	ForcePathStyle *bool `json:"forcePathStyle,omitempty"`

	// credentialsRef references a Secret in the namespace of the BackupStore with the keys accessKeyID and secretAccessKey, and
	// sessionToken for temporary credentials.
	// +required
	CredentialsRef LocalReference `json:"credentialsRef,omitempty,omitzero"`

	// caBundle are the PEM-encoded CA certificates that sign the certificate of the service. When unset, those that the manager's image
	// trusts.
	// +optional
	// +kubebuilder:validation:MaxLength=65536
	CABundle []byte `json:"caBundle,omitempty"`
}

// DirectoryStore is a directory.
type DirectoryStore struct {
	// path is the path of the directory, such as nightly, relative to the manager's flag --data-dir. It is created if it does not exist.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=256
	// +kubebuilder:validation:Pattern=`^[A-Za-z0-9_][A-Za-z0-9_.-]*(/[A-Za-z0-9_][A-Za-z0-9_.-]*)*$`
	Path string `json:"path,omitempty"`
}

// LocalReference references an object in the same namespace.
type LocalReference struct {
	// name is the name of the object.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name,omitempty"`
}

// BackupStoreStatus is the observed state of a BackupStore.
type BackupStoreStatus struct {
	// conditions are the current conditions: Ready, Imported and Paused.
	// +optional
	// +kubebuilder:validation:MaxItems=32
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty"`

	// imported is the value of the annotation fleet.cluster.x-k8s.io/import that was last carried out.
	// +optional
	Imported string `json:"imported,omitempty"`

	// observedGeneration is the latest metadata.generation observed by the controller.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
}

// +kubebuilder:object:root=true
// +kubebuilder:metadata:labels="clusterctl.cluster.x-k8s.io/move="
// +kubebuilder:resource:path=backupstores,scope=Namespaced,categories=cluster-api
// +kubebuilder:subresource:status
// +kubebuilder:printcolumn:name="Ready",type="string",JSONPath=`.status.conditions[?(@.type=="Ready")].status`,description="Whether archives can be written and read"
// +kubebuilder:printcolumn:name="Reason",type="string",JSONPath=`.status.conditions[?(@.type=="Ready")].reason`,description="Reason of the condition Ready"
// +kubebuilder:printcolumn:name="Endpoint",type="string",JSONPath=".spec.s3.endpoint",description="URL of the service"
// +kubebuilder:printcolumn:name="Bucket",type="string",JSONPath=".spec.s3.bucket",description="Name of the bucket"
// +kubebuilder:printcolumn:name="Directory",type="string",JSONPath=".spec.directory.path",description="Path of the directory",priority=10
// +kubebuilder:printcolumn:name="Age",type="date",JSONPath=".metadata.creationTimestamp",description="Time since creation"

// BackupStore is where archives with backups are kept.
type BackupStore struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec   BackupStoreSpec   `json:"spec,omitempty,omitzero"`
	Status BackupStoreStatus `json:"status,omitempty,omitzero"`
}

// GetConditions returns the conditions.
func (s *BackupStore) GetConditions() []metav1.Condition { return s.Status.Conditions }

// SetConditions replaces the conditions.
func (s *BackupStore) SetConditions(conditions []metav1.Condition) { s.Status.Conditions = conditions }

// +kubebuilder:object:root=true

// BackupStoreList is a list of BackupStores.
type BackupStoreList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []BackupStore `json:"items"`
}
