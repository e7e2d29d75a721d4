package kubeadm

import (
	"context"

	bootstrapv1beta1 "sigs.k8s.io/cluster-api/api/bootstrap/v1beta1"
	bootstrapv1 "sigs.k8s.io/cluster-api/api/bootstrap/v1beta2"
	"sigs.k8s.io/cluster-api/sdk/conversion/internal/lossless"
)

// object is the JSON of an object.
type object = lossless.Object

// ConfigToHub converts a KubeadmConfig from v1beta1 to v1beta2.
func ConfigToHub(ctx context.Context, src *bootstrapv1beta1.KubeadmConfig, dst *bootstrapv1.KubeadmConfig) error {
	return config().ToHub(ctx, src, dst)
}

// ConfigFromHub converts a KubeadmConfig from v1beta2 to v1beta1.
func ConfigFromHub(ctx context.Context, src *bootstrapv1.KubeadmConfig, dst *bootstrapv1beta1.KubeadmConfig) error {
	return config().ToSpoke(ctx, src, dst)
}

// ConfigTemplateToHub converts a KubeadmConfigTemplate from v1beta1 to v1beta2.
func ConfigTemplateToHub(ctx context.Context, src *bootstrapv1beta1.KubeadmConfigTemplate, dst *bootstrapv1.KubeadmConfigTemplate) error {
	return configTemplate().ToHub(ctx, src, dst)
}

// ConfigTemplateFromHub converts a KubeadmConfigTemplate from v1beta2 to v1beta1.
func ConfigTemplateFromHub(ctx context.Context, src *bootstrapv1.KubeadmConfigTemplate, dst *bootstrapv1beta1.KubeadmConfigTemplate) error {
	return configTemplate().ToSpoke(ctx, src, dst)
}

// present are the fields that differ if empty from being absent: no taints instead of kubeadm's, and that a machine joins as
// a control plane machine.
func present() []string { return []string{"taints", "controlPlane"} }

// grouping are the objects in a KubeadmConfigSpec of v1beta2 that have timeouts which v1beta1 has elsewhere, or nowhere. So their absence
// in v1beta1 does not mean that they were removed.
func grouping() []string { return []string{initConfiguration, joinConfiguration, "timeouts"} }

// config is how KubeadmConfigs are converted.
func config() *lossless.Kind[*bootstrapv1.KubeadmConfig, *bootstrapv1beta1.KubeadmConfig] {
	return &lossless.Kind[*bootstrapv1.KubeadmConfig, *bootstrapv1beta1.KubeadmConfig]{
		Hub:      bootstrapv1.GroupVersion.WithKind("KubeadmConfig"),
		Spoke:    bootstrapv1beta1.GroupVersion.WithKind("KubeadmConfig"),
		NewHub:   func() *bootstrapv1.KubeadmConfig { return &bootstrapv1.KubeadmConfig{} },
		NewSpoke: func() *bootstrapv1beta1.KubeadmConfig { return &bootstrapv1beta1.KubeadmConfig{} },
		Up: func(o object) {
			specUp(lossless.At(o, "spec"))
			statusUp(lossless.At(o, "status"), "ready", "dataSecretCreated")
		},
		Down: func(_ context.Context, o object) {
			specDown(lossless.At(o, "spec"))
			statusDown(lossless.At(o, "status"), "ready", "dataSecretCreated")
		},
		Present:  present(),
		Grouping: append(grouping(), "initialization", "deprecated", "v1beta1"),
	}
}

// configTemplate is how KubeadmConfigTemplates are converted.
func configTemplate() *lossless.Kind[*bootstrapv1.KubeadmConfigTemplate, *bootstrapv1beta1.KubeadmConfigTemplate] {
	return &lossless.Kind[*bootstrapv1.KubeadmConfigTemplate, *bootstrapv1beta1.KubeadmConfigTemplate]{
		Hub:      bootstrapv1.GroupVersion.WithKind("KubeadmConfigTemplate"),
		Spoke:    bootstrapv1beta1.GroupVersion.WithKind("KubeadmConfigTemplate"),
		NewHub:   func() *bootstrapv1.KubeadmConfigTemplate { return &bootstrapv1.KubeadmConfigTemplate{} },
		NewSpoke: func() *bootstrapv1beta1.KubeadmConfigTemplate { return &bootstrapv1beta1.KubeadmConfigTemplate{} },
		Up:       func(o object) { specUp(lossless.At(o, "spec", "template", "spec")) },
		Down:     func(_ context.Context, o object) { specDown(lossless.At(o, "spec", "template", "spec")) },
		Present:  present(),
		Grouping: grouping(),
	}
}
