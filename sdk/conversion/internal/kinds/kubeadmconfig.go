package kinds

import (
	bootstrapv1beta1 "sigs.k8s.io/cluster-api/api/bootstrap/v1beta1"
	bootstrapv1 "sigs.k8s.io/cluster-api/api/bootstrap/v1beta2"
	"sigs.k8s.io/cluster-api/sdk/conversion/internal/lossless"
)

// kubeadmKinds returns the kinds of the kubeadm providers.
func kubeadmKinds() []*lossless.Kind {
	return []*lossless.Kind{config(), configTemplate(), controlPlane(), controlPlaneTemplate()}
}

// present are the fields that differ if empty from being absent: no taints instead of kubeadm's, and that a machine joins as
// a control plane machine.
func present() []string { return []string{"taints", "controlPlane"} }

// grouping are the objects in a KubeadmConfigSpec of v1beta2 that have timeouts which v1beta1 has elsewhere, or nowhere. So their absence
// in v1beta1 does not mean that they were removed.
func grouping() []string { return []string{initConfiguration, joinConfiguration, "timeouts"} }

// configStatus is how the status of KubeadmConfigs differs.
func configStatus() status { return status{done: [][2]string{{"ready", "dataSecretCreated"}}} }

// config is how KubeadmConfigs are converted.
func config() *lossless.Kind {
	return &lossless.Kind{
		Hub:   at[bootstrapv1.KubeadmConfig](bootstrapv1.GroupVersion, "KubeadmConfig"),
		Spoke: at[bootstrapv1beta1.KubeadmConfig](bootstrapv1beta1.GroupVersion, "KubeadmConfig"),
		Up: func(o object) {
			specUp(lossless.At(o, "spec"))
			configStatus().up(lossless.At(o, "status"))
		},
		Down: func(o object, _ lossless.VersionOf) {
			specDown(lossless.At(o, "spec"))
			configStatus().down(lossless.At(o, "status"))
		},
		Present:  present(),
		Grouping: append(grouping(), statusGrouping()...),
	}
}

// configTemplate is how KubeadmConfigTemplates are converted.
func configTemplate() *lossless.Kind {
	return &lossless.Kind{
		Hub:      at[bootstrapv1.KubeadmConfigTemplate](bootstrapv1.GroupVersion, "KubeadmConfigTemplate"),
		Spoke:    at[bootstrapv1beta1.KubeadmConfigTemplate](bootstrapv1beta1.GroupVersion, "KubeadmConfigTemplate"),
		Up:       func(o object) { specUp(lossless.At(o, "spec", "template", "spec")) },
		Down:     func(o object, _ lossless.VersionOf) { specDown(lossless.At(o, "spec", "template", "spec")) },
		Present:  present(),
		Grouping: grouping(),
	}
}
