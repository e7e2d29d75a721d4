package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// GroupVersion is the API group and version of the kinds in this package.
var GroupVersion = schema.GroupVersion{Group: "fleet.cluster.x-k8s.io", Version: "v1alpha1"}

// Names of the kinds of this package, as they appear in manifests and references.
const (
	// BackupStoreKind is the kind of BackupStore.
	BackupStoreKind = "BackupStore"
	// EtcdBackupKind is the kind of EtcdBackup.
	EtcdBackupKind = "EtcdBackup"
	// EtcdBackupPolicyKind is the kind of EtcdBackupPolicy.
	EtcdBackupPolicyKind = "EtcdBackupPolicy"
	// ControlPlaneRestoreKind is the kind of ControlPlaneRestore.
	ControlPlaneRestoreKind = "ControlPlaneRestore"
	// ControlPlaneRecoveryKind is the kind of ControlPlaneRecovery.
	ControlPlaneRecoveryKind = "ControlPlaneRecovery"
	// CertificateAuthorityRotationKind is the kind of CertificateAuthorityRotation.
	CertificateAuthorityRotationKind = "CertificateAuthorityRotation"
	// ClusterRolloutKind is the kind of ClusterRollout.
	ClusterRolloutKind = "ClusterRollout"
	// ClusterRolloutStrategyKind is the kind of ClusterRolloutStrategy.
	ClusterRolloutStrategyKind = "ClusterRolloutStrategy"
)

// AddToScheme registers the kinds of this package, and their lists, in the scheme.
func AddToScheme(s *runtime.Scheme) error {
	return (&runtime.SchemeBuilder{addKnownTypes}).AddToScheme(s)
}

func addKnownTypes(s *runtime.Scheme) error {
	s.AddKnownTypes(GroupVersion,
		&BackupStore{}, &BackupStoreList{},
		&EtcdBackup{}, &EtcdBackupList{},
		&EtcdBackupPolicy{}, &EtcdBackupPolicyList{},
		&ControlPlaneRestore{}, &ControlPlaneRestoreList{},
		&ControlPlaneRecovery{}, &ControlPlaneRecoveryList{},
		&CertificateAuthorityRotation{}, &CertificateAuthorityRotationList{},
		&ClusterRollout{}, &ClusterRolloutList{},
		&ClusterRolloutStrategy{}, &ClusterRolloutStrategyList{},
	)
	metav1.AddToGroupVersion(s, GroupVersion)
	return nil
}
