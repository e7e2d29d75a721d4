package v1alpha2

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// ProviderSpec declares a provider.
//
// +kubebuilder:validation:XValidation:message="Cannot set both 'patches' and 'manifestPatches'",rule="!(has(self.manifestPatches) && has(self.patches))"
// +kubebuilder:validation:XValidation:message="Cannot set both 'secretName' and 'configSecret'",rule="!(has(self.secretName) && has(self.configSecret))"
type ProviderSpec struct {
	// version of the provider, such as v1.7.4. The default is the latest version for the contract of this operator, which is
	// written here.
	// +optional
	Version string `json:"version,omitempty"`

	// manager sets options of the provider's controller manager.
	// +optional
	Manager *ManagerSpec `json:"manager,omitempty"`

	// deployment changes the provider's Deployment.
	// +optional
	Deployment *DeploymentSpec `json:"deployment,omitempty"`

	// secretName is the name of a Secret in the provider's namespace with values of variables in the components, such as
	// credentials. New contents are applied at once; to change them together with the spec, create another Secret and change the
	// name.
	// +optional
	SecretName *string `json:"secretName,omitempty"`

	// configSecret is the same as secretName for a Secret in any namespace.
	// +optional
	ConfigSecret *SecretReference `json:"configSecret,omitempty"`

	// fetchConfig is where the releases of the provider are. The default is the built-in location for the kind and the name. It
	// is used when the provider is installed, changed or upgraded; a change of it alone changes nothing.
	// +optional
	FetchConfig *FetchConfiguration `json:"fetchConfig,omitempty"`

	// paused scales the provider's Deployments to zero replicas. Changes of the version are possible meanwhile; all providers
	// have to be paused for a change of the contract.
	// +optional
	Paused bool `json:"paused,omitempty"`

	// additionalManifests refers to a ConfigMap whose key manifests has objects that belong to the provider.
	// +optional
	AdditionalManifests *ConfigmapReference `json:"additionalManifests,omitempty"`

	// manifestPatches are merge patches (RFC 7396) in YAML, applied in their order to the provider's objects with the same kind,
	// and the same apiVersion, name and namespace if they have these.
	// +optional
	ManifestPatches []string `json:"manifestPatches,omitempty"`

	// patches are strategic merge patches or JSON patches (RFC 6902), applied in their order to the objects that they target.
	// +optional
	Patches []*Patch `json:"patches,omitempty"`

	// additionalDeployments changes other Deployments of the provider, by their names.
	// +optional
	AdditionalDeployments map[string]AdditionalDeployments `json:"additionalDeployments,omitempty"`
}

// AdditionalDeployments changes a Deployment of the provider.
type AdditionalDeployments struct {
	// manager sets options of the Deployment's controller manager.
	// +optional
	Manager *ManagerSpec `json:"manager,omitempty"`

	// deployment changes the Deployment.
	// +optional
	Deployment *DeploymentSpec `json:"deployment,omitempty"`
}

// Patch is a patch with its target.
type Patch struct {
	// patch is a strategic merge patch or a JSON patch, in YAML.
	// +optional
	Patch string `json:"patch,omitempty"`

	// target selects the objects. The default is those with the kind, the name and the namespace of the patch.
	// +optional
	Target *PatchSelector `json:"target,omitempty"`
}

// PatchSelector selects objects. Empty fields select all.
type PatchSelector struct {
	// group is the API group.
	// +optional
	Group string `json:"group,omitempty"`

	// version is the API version.
	// +optional
	Version string `json:"version,omitempty"`

	// kind is the kind.
	// +optional
	Kind string `json:"kind,omitempty"`

	// name is the name.
	// +optional
	Name string `json:"name,omitempty"`

	// namespace is the namespace.
	// +optional
	Namespace string `json:"namespace,omitempty"`

	// labelSelector selects by labels, in the syntax of kubectl.
	// +optional
	LabelSelector string `json:"labelSelector,omitempty"`
}

// ConfigmapReference refers to a ConfigMap.
type ConfigmapReference struct {
	// name of the ConfigMap.
	Name string `json:"name"`

	// namespace of the ConfigMap. The default is the provider's.
	// +optional
	Namespace string `json:"namespace,omitempty"`
}

// SecretReference refers to a Secret.
type SecretReference struct {
	// name of the Secret.
	Name string `json:"name"`

	// namespace of the Secret. The default is the provider's.
	// +optional
	Namespace string `json:"namespace,omitempty"`
}

// DeploymentSpec changes a Deployment.
type DeploymentSpec struct {
	// replicas is the number of Pods. The default is that of the components.
	// +optional
	// +kubebuilder:validation:Minimum=0
	Replicas *int `json:"replicas,omitempty"`

	// nodeSelector replaces the node selector of the Pods.
	// +optional
	NodeSelector map[string]string `json:"nodeSelector,omitempty"`

	// tolerations replace the tolerations of the Pods.
	// +optional
	Tolerations []corev1.Toleration `json:"tolerations,omitempty"`

	// affinity replaces the scheduling constraints of the Pods.
	// +optional
	Affinity *corev1.Affinity `json:"affinity,omitempty"`

	// containers change containers, by name.
	// +optional
	Containers []ContainerSpec `json:"containers,omitempty"`

	// serviceAccountName replaces the ServiceAccount of the Pods.
	// +optional
	ServiceAccountName string `json:"serviceAccountName,omitempty"`

	// imagePullSecrets replace those of the Pods.
	// +optional
	ImagePullSecrets []corev1.LocalObjectReference `json:"imagePullSecrets,omitempty"`
}

// ContainerSpec changes a container.
//
// +kubebuilder:validation:XValidation:message="Cannot set both 'image' and 'imageUrl'",rule="!(has(self.image) && has(self.imageUrl))"
type ContainerSpec struct {
	// name of the container, which selects it.
	Name string `json:"name"`

	// imageUrl replaces the whole image.
	// +optional
	ImageURL *string `json:"imageUrl,omitempty"`

	// image replaces parts of the image.
	// +optional
	Image *ImageMeta `json:"image,omitempty"`

	// args sets arguments, by name, with or without leading dashes. Fields of manager take precedence, except that
	// <kind>-concurrency takes precedence over maxConcurrentReconciles. Numbers need no quotes. namespace is ignored.
	// +optional
	Args map[string]Argument `json:"args,omitempty"`

	// env sets environment variables, by name.
	// +optional
	Env []corev1.EnvVar `json:"env,omitempty"`

	// resources replace the resource requirements.
	// +optional
	Resources *corev1.ResourceRequirements `json:"resources,omitempty"`

	// command replaces the entrypoint.
	// +optional
	Command []string `json:"command,omitempty"`
}

// ImageMeta replaces parts of an image's name.
type ImageMeta struct {
	// repository replaces everything before the last element, such as registry.example.com/cluster-api.
	// +optional
	Repository *string `json:"repository,omitempty"`

	// name replaces the last element, without the tag.
	// +optional
	Name *string `json:"name,omitempty"`

	// tag replaces the tag.
	// +optional
	Tag *string `json:"tag,omitempty"`
}

// FetchConfiguration is where the releases of a provider are.
//
// +kubebuilder:validation:XValidation:message="Must specify one and only one of {oci, url, selector}",rule="[has(self.oci), has(self.url), has(self.selector)].exists_one(x,x)"
type FetchConfiguration struct {
	OCIConfiguration `json:",inline"`

	// url is the releases page of a GitHub repository, such as https://github.com/{owner}/{repository}/releases, or another URL of
	// a components file that clusterctl accepts.
	// +optional
	URL string `json:"url,omitempty"`

	// selector selects ConfigMaps in the provider's namespace. Each has the keys components and metadata, for the version in its
	// label provider.cluster.x-k8s.io/version, or else in its name.
	// +optional
	Selector *metav1.LabelSelector `json:"selector,omitempty"`
}

// OCIConfiguration is an artifact in an OCI registry.
type OCIConfiguration struct {
	// oci is the artifact, as [http://]registry/repository[:tag]. The default of the tag is the version.
	// +optional
	OCI string `json:"oci,omitempty"`
}

// ProviderStatus is the observed state of a provider.
type ProviderStatus struct {
	// contract is the contract of Cluster API that the installed version implements, such as v1beta1.
	// +optional
	Contract *string `json:"contract,omitempty"`

	// conditions are Ready, PreflightCheckPassed, ProviderInstalled and ProviderUpgraded.
	// +optional
	Conditions []metav1.Condition `json:"conditions,omitempty"`

	// observedGeneration is the generation of the spec that the status is about.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// installedVersion is the installed version.
	// +optional
	InstalledVersion *string `json:"installedVersion,omitempty"`
}
