package v1alpha2

// Conditions of providers.
const (
	// ReadyCondition is the condition Available of the provider's Deployments, or why the provider is not installed.
	ReadyCondition = "Ready"
	// PreflightCheckCondition reports whether the spec is valid and fits the other providers.
	PreflightCheckCondition = "PreflightCheckPassed"
	// ProviderInstalledCondition reports whether the provider's objects are as the spec demands.
	ProviderInstalledCondition = "ProviderInstalled"
	// ProviderUpgradedCondition reports the last change of the version.
	ProviderUpgradedCondition = "ProviderUpgraded"
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
	// SecretNotFoundReason: the Secret of the variables does not exist.
	SecretNotFoundReason = "SecretNotFound"
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
	// ComponentsUpgradeErrorReason: the upgrade failed; the former version was put back.
	ComponentsUpgradeErrorReason = "ComponentsUpgradeError"
	// OldComponentsDeletionErrorReason: components cannot be deleted.
	OldComponentsDeletionErrorReason = "OldComponentsDeletionError"
	// InstallFailedReason: the components cannot be written.
	InstallFailedReason = "InstallFailed"
	// TimedOutWaitingForDeploymentReason: a Deployment did not become available in time.
	TimedOutWaitingForDeploymentReason = "TimedOutWaitingForDeployment"
	// InProgressReason: the objects are being written.
	InProgressReason = "InProgress"
)

// Reasons of ReadyCondition.
const (
	// DeploymentAvailableReason: all Deployments are available.
	DeploymentAvailableReason = "DeploymentAvailable"
	// NoDeploymentAvailableReason: the provider has no Deployment, or it does not report its availability.
	NoDeploymentAvailableReason = "NoDeploymentAvailableConditionReason"
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
	// PausedReplicasAnnotation is, on Deployments of paused providers, their number of replicas before.
	PausedReplicasAnnotation = "operator.cluster.x-k8s.io/paused-replicas"
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
