package v1alpha2

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
)

// Conditions of providers.
const (
	// ReadyCondition is the condition Available of the provider's Deployments, or why the provider is not installed.
	ReadyCondition clusterv1.ConditionType = "Ready"
	// PreflightCheckCondition reports whether the spec is valid and fits the other providers.
	PreflightCheckCondition clusterv1.ConditionType = "PreflightCheckPassed"
	// ProviderInstalledCondition reports whether the provider's objects are as the spec demands.
	ProviderInstalledCondition clusterv1.ConditionType = "ProviderInstalled"
	// ProviderUpgradedCondition reports the last change of the version.
	ProviderUpgradedCondition clusterv1.ConditionType = "ProviderUpgraded"
)

// Reasons of PreflightCheckCondition.
const (
	// PreflightChecksPassedReason: all checks passed.
	PreflightChecksPassedReason = "PreflightChecksPassed"
	// MoreThanOneProviderInstanceExistsReason: another object declares the same provider, or another core provider.
	MoreThanOneProviderInstanceExistsReason = "MoreThanOneExists"
	// IncorrectVersionFormatReason: the version is not a semantic version.
	IncorrectVersionFormatReason = "IncorrectVersionFormat"
	// IncorrectCoreProviderNameReason: the core provider must be named cluster-api.
	IncorrectCoreProviderNameReason = "IncorrectCoreProviderNameReason"
	// EmptyVersionReason: the version must be set, because the source does not list its versions.
	EmptyVersionReason = "EmptyVersionReason"
	// FetchConfigValidationErrorReason: fetchConfig is invalid.
	FetchConfigValidationErrorReason = "FetchConfigValidationError"
	// UnknownProviderReason: the provider is not built in, and has no fetchConfig.
	UnknownProviderReason = "UnknownProvider"
	// WaitingForCoreProviderReadyReason: the core provider is not ready yet.
	WaitingForCoreProviderReadyReason = "WaitingForCoreProviderReady"
	// InvalidGithubTokenReason: GitHub does not accept the token.
	InvalidGithubTokenReason = "InvalidGithubTokenError"
	// UnsupportedProviderDowngradeReason: the version is older than the installed one.
	UnsupportedProviderDowngradeReason = "UnsupportedProviderDowngradeReason"
	// IncompatibleContractReason: the version implements another contract than the core provider, and not all providers are paused.
	IncompatibleContractReason = "CAPIVersionIncompatibility"
)

// Reasons of ProviderInstalledCondition and ProviderUpgradedCondition.
const (
	// ProviderInstalledReason: the provider's objects are as the spec demands.
	ProviderInstalledReason = "ProviderInstalled"
	// ProviderUpgradedReason: the last upgrade succeeded.
	ProviderUpgradedReason = "ProviderUpgraded"
	// ComponentsFetchErrorReason: the release cannot be read.
	ComponentsFetchErrorReason = "ComponentsFetchError"
	// ComponentsCustomizationErrorReason: the spec does not fit the provider's components.
	ComponentsCustomizationErrorReason = "ComponentsCustomizationError"
	// ComponentsRefusedReason: the components contain what no provider needs.
	ComponentsRefusedReason = "ComponentsRefused"
	// ComponentsUpgradeErrorReason: the upgrade failed and was rolled back.
	ComponentsUpgradeErrorReason = "ComponentsUpgradeError"
	// OldComponentsDeletionErrorReason: components cannot be deleted.
	OldComponentsDeletionErrorReason = "OldComponentsDeletionError"
	// InstallFailedReason: the components cannot be written.
	InstallFailedReason = "InstallFailed"
	// TimedOutWaitingForDeploymentReason: a Deployment did not become available in time.
	TimedOutWaitingForDeploymentReason = "TimedOutWaitingForDeployment"
)

// Reasons of ReadyCondition.
const (
	// DeploymentAvailableReason: all Deployments are available.
	DeploymentAvailableReason = "DeploymentAvailable"
	// NoDeploymentAvailableReason: the provider has no Deployment, or it does not report its availability.
	NoDeploymentAvailableReason = "NoDeploymentAvailableConditionReason"
	// PausingReason: the provider is being paused, and its managers have not stopped yet.
	PausingReason = "Pausing"
	// PausedReason: the provider is paused.
	PausedReason = "Paused"
	// DeletionBlockedReason: the provider is being deleted and still in use.
	DeletionBlockedReason = "DeletionBlocked"
)

const (
	// ProviderFinalizer is removed when the provider's components are deleted.
	ProviderFinalizer = "provider.cluster.x-k8s.io"
	// AppliedSpecHashAnnotation is, on providers, the hash of what was last applied.
	AppliedSpecHashAnnotation = "operator.cluster.x-k8s.io/applied-spec-hash"
	// AppliedSourceHashAnnotation is, on providers, the hash of spec.fetchConfig when the components were last applied.
	AppliedSourceHashAnnotation = "operator.cluster.x-k8s.io/applied-source-hash"
	// AppliedComponentsHashAnnotation is, on providers, the hash of the components that were last applied.
	AppliedComponentsHashAnnotation = "operator.cluster.x-k8s.io/applied-components-hash"
	// PausedReplicasAnnotation is, on Deployments of paused providers, their number of replicas before.
	PausedReplicasAnnotation = "operator.cluster.x-k8s.io/paused-replicas"
	// AllowAllPermissionsAnnotation is "true" on providers whose components may have all permissions in the management cluster.
	AllowAllPermissionsAnnotation = "operator.cluster.x-k8s.io/allow-all-permissions"
	// DeclarationsLabel is on ConfigMaps in the operator's namespace, each of whose values is a provider object. The operator changes
	// objects that exist accordingly, whenever their declaration changes; it creates and deletes none.
	DeclarationsLabel = "operator.cluster.x-k8s.io/declarations"
	// DeclaredSpecAnnotation is, on providers that such a ConfigMap declares, the spec that was last declared, in JSON.
	DeclaredSpecAnnotation = "operator.cluster.x-k8s.io/declared-spec"
	// CompressedAnnotation is "true" on ConfigMaps whose components are compressed with gzip, in binaryData.
	CompressedAnnotation = "provider.cluster.x-k8s.io/compressed"
	// VersionLabel is, on ConfigMaps with a release, its version. Without it, the name of the ConfigMap is the version.
	VersionLabel = "provider.cluster.x-k8s.io/version"
	// ProviderTypeLabel is, on ConfigMaps with a release, the type of the provider.
	ProviderTypeLabel = "provider.cluster.x-k8s.io/type"
	// ProviderNameLabel is, on ConfigMaps with a release, the name of the provider.
	ProviderNameLabel = "provider.cluster.x-k8s.io/name"
	// ManagedByOperatorLabel is "true" on objects that the operator writes.
	ManagedByOperatorLabel = "managed-by.operator.cluster.x-k8s.io"
)

// Keys of ConfigMaps.
const (
	// ComponentsKey has the components of a release.
	ComponentsKey = "components"
	// MetadataKey has the metadata.yaml of a release.
	MetadataKey = "metadata"
	// ManifestsKey has additional manifests.
	ManifestsKey = "manifests"
	// GitHubTokenKey, in Secrets with variables, has a token for GitHub.
	GitHubTokenKey = "github-token"
)

// defaultReason is the reason of a condition that is True: the API requires one.
func defaultReason(kind clusterv1.ConditionType) string {
	switch kind {
	case PreflightCheckCondition:
		return PreflightChecksPassedReason
	case ProviderInstalledCondition:
		return ProviderInstalledReason
	case ProviderUpgradedCondition:
		return ProviderUpgradedReason
	}
	return DeploymentAvailableReason
}

// conditions returns the conditions in the form of the other kinds of Cluster API. The severity of all that are False is Error: these
// conditions have none.
func (s *ProviderStatus) conditions() clusterv1.Conditions {
	var list clusterv1.Conditions
	for _, c := range s.Conditions {
		out := clusterv1.Condition{
			Type: clusterv1.ConditionType(c.Type), Status: corev1.ConditionStatus(c.Status), Reason: c.Reason, Message: c.Message,
			LastTransitionTime: c.LastTransitionTime,
		}
		switch {
		case c.Status == metav1.ConditionTrue && c.Reason == defaultReason(out.Type):
			out.Reason = ""
		case c.Status == metav1.ConditionFalse:
			out.Severity = clusterv1.ConditionSeverityError
		}
		list = append(list, out)
	}
	return list
}

func (s *ProviderStatus) setConditions(list clusterv1.Conditions) {
	s.Conditions = nil
	for _, c := range list {
		out := metav1.Condition{
			Type: string(c.Type), Status: metav1.ConditionStatus(c.Status), Reason: c.Reason, Message: c.Message,
			LastTransitionTime: c.LastTransitionTime,
		}
		if out.Reason == "" {
			out.Reason = defaultReason(c.Type)
		}
		s.Conditions = append(s.Conditions, out)
	}
}
