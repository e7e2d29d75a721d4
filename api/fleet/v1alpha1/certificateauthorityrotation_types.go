package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

const (
	// RotationFinalizer is on CertificateAuthorityRotations, and removed when nothing depends on them.
	RotationFinalizer = "fleet.cluster.x-k8s.io/rotation"
	// RotatedAnnotation is set by users on MachinePools whose machines they have replaced, to RotationMark of the rotation and its step.
	RotatedAnnotation = "fleet.cluster.x-k8s.io/rotated"
)

// RotationMark is the value of RotatedAnnotation.
func RotationMark(rotation, step string) string { return rotation + "/" + step }

// Authority is a CA, or a key, that all Machines of a control plane share.
type Authority string

const (
	// ClusterCA is the CA of API servers, kubelets and other clients of the API server.
	ClusterCA Authority = "ClusterCA"
	// EtcdCA is the CA of etcd members and their clients.
	EtcdCA Authority = "EtcdCA"
	// FrontProxyCA is the CA by which aggregated API servers recognize the API server.
	FrontProxyCA Authority = "FrontProxyCA"
	// ServiceAccountKey is the key that signs tokens of ServiceAccounts.
	ServiceAccountKey Authority = "ServiceAccountKey"
)

// Steps of a CertificateAuthorityRotation, in status.steps.
const (
	// TrustBothStep makes all Machines trust the new authorities beside the old ones, which still sign.
	TrustBothStep = "TrustBoth"
	// ReissueStep makes the new authorities sign everything; the old ones are still trusted.
	ReissueStep = "Reissue"
	// DropOldStep ends the trust in the old authorities.
	DropOldStep = "DropOld"
)

// CertificateAuthorityRotationSpec is what is rotated. It is immutable, except for confirm and paused.
// +kubebuilder:validation:XValidation:rule="self.clusterName == oldSelf.clusterName",message="clusterName is immutable"
// +kubebuilder:validation:XValidation:rule="has(self.authorities) == has(oldSelf.authorities) && (!has(self.authorities) || self.authorities == oldSelf.authorities)",message="authorities is immutable"
// +kubebuilder:validation:XValidation:rule="has(self.keyAlgorithm) == has(oldSelf.keyAlgorithm) && (!has(self.keyAlgorithm) || self.keyAlgorithm == oldSelf.keyAlgorithm)",message="keyAlgorithm is immutable"
// +kubebuilder:validation:XValidation:rule="has(self.machinePools) == has(oldSelf.machinePools) && (!has(self.machinePools) || self.machinePools == oldSelf.machinePools)",message="machinePools is immutable"
type CertificateAuthorityRotationSpec struct {
	// clusterName is the name of the Cluster, in the same namespace. Its control plane must be a KubeadmControlPlane.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	ClusterName string `json:"clusterName,omitempty"`

	// authorities are what is rotated. When unset, all: ClusterCA, EtcdCA, FrontProxyCA and ServiceAccountKey.
	// +optional
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=4
	// +kubebuilder:validation:items:Enum=ClusterCA;EtcdCA;FrontProxyCA;ServiceAccountKey
	// +listType=set
	Authorities []Authority `json:"authorities,omitempty"`

	// confirm permits the rotation. The condition Completed says which value it must have, and how many Machines will be replaced.
	// +optional
	// +kubebuilder:validation:MaxLength=128
	Confirm string `json:"confirm,omitempty"`

	// paused stops the rotation before its next change. Machines that are being replaced already are still replaced.
	// +optional
	Paused *bool `json:"paused,omitempty"`

	// keyAlgorithm is the algorithm of the new keys. When unset, each new key has the algorithm of the old one.
	// +optional
	// +kubebuilder:validation:Enum=ECDSA-P256;ECDSA-P384;RSA-2048;RSA-3072;RSA-4096
	KeyAlgorithm string `json:"keyAlgorithm,omitempty"`

	// machinePools is who replaces the machines of MachinePools, for which there is no rollout: with User, the rotation waits in each step
	// until the annotation fleet.cluster.x-k8s.io/rotated says that it was done. When unset, Refuse: there must be no MachinePools.
	// +optional
	// +kubebuilder:validation:Enum=Refuse;User
	MachinePools MachinePoolRotation `json:"machinePools,omitempty"`
}

// MachinePoolRotation is who replaces the machines of MachinePools.
type MachinePoolRotation string

const (
	// MachinePoolRotationRefuse refuses to rotate authorities of Clusters with MachinePools.
	MachinePoolRotationRefuse MachinePoolRotation = "Refuse"
	// MachinePoolRotationUser leaves the machines of MachinePools to the user.
	MachinePoolRotationUser MachinePoolRotation = "User"
)

// CertificateAuthorityRotationStatus is the observed state of a CertificateAuthorityRotation.
type CertificateAuthorityRotationStatus struct {
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

	// completionTime is when it has succeeded or failed.
	// +optional
	CompletionTime *metav1.Time `json:"completionTime,omitempty"`

	// steps are the steps: TrustBoth, Reissue and DropOld. A step that has a completionTime is not taken again.
	// +optional
	// +kubebuilder:validation:MaxItems=8
	// +listType=map
	// +listMapKey=name
	Steps []RotationStep `json:"steps,omitempty"`

	// authorities are what is rotated.
	// +optional
	// +kubebuilder:validation:MaxItems=4
	// +listType=map
	// +listMapKey=name
	Authorities []AuthorityStatus `json:"authorities,omitempty"`
}

// RotationStep is a step of a rotation.
type RotationStep struct {
	OperationStep `json:",inline"`

	// rolloutTime is set when the step's certificates were distributed: Machines that were created before it are replaced.
	// +optional
	RolloutTime *metav1.Time `json:"rolloutTime,omitempty"`

	// rollouts is how often the control plane has been told to replace its Machines in this step.
	// +optional
	Rollouts *int32 `json:"rollouts,omitempty"`

	// workersRolloutTime is set when the control plane was complete: other Machines that were created before it are replaced.
	// +optional
	WorkersRolloutTime *metav1.Time `json:"workersRolloutTime,omitempty"`

	// controlPlane counts the Machines of the control plane.
	// +optional
	ControlPlane *RotatedMachines `json:"controlPlane,omitempty"`

	// workers counts the other Machines.
	// +optional
	Workers *RotatedMachines `json:"workers,omitempty"`
}

// RotatedMachines counts Machines.
type RotatedMachines struct {
	// total is how many there are, or should be.
	// +optional
	Total int32 `json:"total,omitempty"`

	// replaced is how many of them have the step's certificates, and are ready.
	// +optional
	Replaced *int32 `json:"replaced,omitempty"`
}

// AuthorityStatus is an authority that is rotated.
type AuthorityStatus struct {
	// name is ClusterCA, EtcdCA, FrontProxyCA or ServiceAccountKey.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=64
	Name Authority `json:"name,omitempty"`

	// old is the fingerprint of the old public key: sha256: and the SHA-256 hash of its public key information, in hexadecimal. kubeadm
	// calls it the hash of a CA.
	// +optional
	// +kubebuilder:validation:MaxLength=128
	Old string `json:"old,omitempty"`

	// new is the fingerprint of the new public key.
	// +optional
	// +kubebuilder:validation:MaxLength=128
	New string `json:"new,omitempty"`
}

// +kubebuilder:object:root=true
// +kubebuilder:metadata:labels="clusterctl.cluster.x-k8s.io/move="
// +kubebuilder:resource:path=certificateauthorityrotations,scope=Namespaced,categories=cluster-api
// +kubebuilder:subresource:status
// +kubebuilder:printcolumn:name="Cluster",type="string",JSONPath=".spec.clusterName",description="Name of the Cluster"
// +kubebuilder:printcolumn:name="Phase",type="string",JSONPath=".status.phase",description="Pending, Running, Completed or Failed"
// +kubebuilder:printcolumn:name="Reason",type="string",JSONPath=`.status.conditions[?(@.type=="Completed")].reason`,description="Reason of the condition Completed"
// +kubebuilder:printcolumn:name="Step",type="string",JSONPath=".status.steps[-1:].name",description="The latest step"
// +kubebuilder:printcolumn:name="Completed",type="date",JSONPath=".status.completionTime",description="Time since completion"
// +kubebuilder:printcolumn:name="Message",type="string",JSONPath=`.status.conditions[?(@.type=="Completed")].message`,description="Message of the condition Completed",priority=10
// +kubebuilder:printcolumn:name="Age",type="date",JSONPath=".metadata.creationTimestamp",description="Time since creation",priority=10

// CertificateAuthorityRotation replaces the certificate authorities of a Cluster, and the key of its ServiceAccount tokens, in three steps.
// In each, all Machines are replaced.
type CertificateAuthorityRotation struct {
	metav1.TypeMeta `json:",inline"`

	// metadata is the metadata of the object.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty,omitzero"`

	// spec is what is rotated.
	// +required
	Spec CertificateAuthorityRotationSpec `json:"spec,omitempty,omitzero"`

	// status is the observed state.
	// +optional
	Status CertificateAuthorityRotationStatus `json:"status,omitempty,omitzero"`
}

// Step returns a step, nil if it has not begun.
func (r *CertificateAuthorityRotation) Step(name string) *RotationStep {
	for i := range r.Status.Steps {
		if r.Status.Steps[i].Name == name {
			return &r.Status.Steps[i]
		}
	}
	return nil
}

// GetConditions returns the conditions.
func (r *CertificateAuthorityRotation) GetConditions() []metav1.Condition { return r.Status.Conditions }

// SetConditions sets the conditions.
func (r *CertificateAuthorityRotation) SetConditions(conditions []metav1.Condition) {
	r.Status.Conditions = conditions
}

// Ended reports whether nothing more happens.
func (r *CertificateAuthorityRotation) Ended() bool {
	return r.Status.Phase == OperationPhaseCompleted || r.Status.Phase == OperationPhaseFailed
}

// +kubebuilder:object:root=true

// CertificateAuthorityRotationList is a list of CertificateAuthorityRotations.
type CertificateAuthorityRotationList struct {
	metav1.TypeMeta `json:",inline"`

	// metadata is the metadata of the list.
	// +optional
	metav1.ListMeta `json:"metadata,omitempty"`

	// items are the objects.
	Items []CertificateAuthorityRotation `json:"items"`
}
