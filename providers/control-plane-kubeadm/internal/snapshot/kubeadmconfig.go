package snapshot

import (
	"context"
	"encoding/json"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	bootstrapv1beta1 "sigs.k8s.io/cluster-api/api/bootstrap/v1beta1"
	bootstrapv1 "sigs.k8s.io/cluster-api/api/bootstrap/v1beta2"
	controlplanev1beta1 "sigs.k8s.io/cluster-api/api/controlplane/v1beta1"
	"sigs.k8s.io/cluster-api/providers/internal/kubeadm"
	"sigs.k8s.io/cluster-api/sdk/conversion"
)

// clusterConfigurationDiffers compares the recorded clusterConfiguration of the Machine, except for dns: CoreDNS is updated in place.
func clusterConfigurationDiffers(_ context.Context, s Spec, m *Machine) (string, error) {
	recorded, ok := m.Annotations[controlplanev1beta1.KubeadmClusterConfigurationAnnotation]
	if !ok {
		return unrecordedDiffers(s, m), nil
	}
	made, wanted := &bootstrapv1beta1.ClusterConfiguration{}, &bootstrapv1beta1.ClusterConfiguration{}
	if err := json.Unmarshal([]byte(recorded), &made); err != nil {
		return "its annotation with clusterConfiguration is invalid", nil
	}
	if made == nil { // The annotation is null.
		made = &bootstrapv1beta1.ClusterConfiguration{}
	}
	if s.older.ClusterConfiguration != nil {
		wanted = s.older.ClusterConfiguration.DeepCopy()
	}
	made.DNS, wanted.DNS = bootstrapv1beta1.DNS{}, bootstrapv1beta1.DNS{}
	made.TypeMeta, wanted.TypeMeta = metav1.TypeMeta{}, metav1.TypeMeta{}
	if equality.Semantic.DeepEqual(made, wanted) {
		return "", nil
	}
	return clusterConfigurationChanged, nil
}

const clusterConfigurationChanged = "clusterConfiguration changed"

// unrecordedDiffers compares the clusterConfiguration of Machines without a record. Versions after v1.7 have it in the KubeadmConfig of
// each Machine, with the feature gate that they add. A Machine that is older than the control plane was adopted: it was never compared.
func unrecordedDiffers(s Spec, m *Machine) string {
	if m.Config == nil || !kubeadm.Defined(m.Config.Spec.ClusterConfiguration) || m.CreationTimestamp.Before(&s.since) {
		return ""
	}
	made, wanted := m.Config.Spec.ClusterConfiguration.DeepCopy(), s.KubeadmConfigSpec.ClusterConfiguration.DeepCopy()
	made.DNS, wanted.DNS = bootstrapv1.DNS{}, bootstrapv1.DNS{}
	made.ControlPlaneEndpoint, wanted.ControlPlaneEndpoint = "", "" // The bootstrap provider sets it.
	if _, chosen := wanted.FeatureGates[kubeadm.KubeletLocalMode]; !chosen {
		delete(made.FeatureGates, kubeadm.KubeletLocalMode)
	}
	if equality.Semantic.DeepEqual(made, wanted) {
		return ""
	}
	return clusterConfigurationChanged
}

// kubeadmConfigDiffers compares the other fields of the KubeadmConfig, except for those that the bootstrap provider has set.
func kubeadmConfigDiffers(ctx context.Context, s Spec, m *Machine) (string, error) {
	if m.Config == nil || s.created(m) {
		return "", nil
	}
	config := &bootstrapv1beta1.KubeadmConfig{}
	if err := conversion.Shared().Convert(ctx, m.Config, config); err != nil {
		return "", err
	}
	made, wanted := &config.Spec, s.older.DeepCopy()
	made.ClusterConfiguration, wanted.ClusterConfiguration = nil, nil
	for _, spec := range []*bootstrapv1beta1.KubeadmConfigSpec{made, wanted} {
		if spec.Format == "" {
			spec.Format = bootstrapv1beta1.CloudConfig
		}
	}
	made.InitConfiguration, wanted.InitConfiguration = comparableInit(made.InitConfiguration, wanted.InitConfiguration)
	made.JoinConfiguration, wanted.JoinConfiguration = comparableJoin(made.JoinConfiguration, wanted.JoinConfiguration)
	if equality.Semantic.DeepEqual(made, wanted) && sameTaintIntent(made, wanted) {
		return "", nil
	}
	return "kubeadmConfigSpec changed", nil
}

// comparableInit returns no sections if the Machine has none, because it has joined.
func comparableInit(made, wanted *bootstrapv1beta1.InitConfiguration) (left, right *bootstrapv1beta1.InitConfiguration) {
	if made == nil {
		return nil, nil
	}
	if wanted == nil {
		wanted = &bootstrapv1beta1.InitConfiguration{}
	}
	made.TypeMeta, wanted.TypeMeta = metav1.TypeMeta{}, metav1.TypeMeta{}
	// The bootstrap provider adds a token if the user provides none.
	if len(wanted.BootstrapTokens) == 0 {
		made.BootstrapTokens = nil
	}
	defaultRegistration(&made.NodeRegistration)
	defaultRegistration(&wanted.NodeRegistration)
	return made, wanted
}

// comparableJoin returns no sections if the Machine has none, because it has initialized the cluster. Discovery is not
// compared: it contains the token of the Machine.
func comparableJoin(made, wanted *bootstrapv1beta1.JoinConfiguration) (left, right *bootstrapv1beta1.JoinConfiguration) {
	if made == nil {
		return nil, nil
	}
	if wanted == nil {
		wanted = &bootstrapv1beta1.JoinConfiguration{}
	}
	made.TypeMeta, wanted.TypeMeta = metav1.TypeMeta{}, metav1.TypeMeta{}
	made.Discovery, wanted.Discovery = bootstrapv1beta1.Discovery{}, bootstrapv1beta1.Discovery{}
	if wanted.ControlPlane == nil || *wanted.ControlPlane == (bootstrapv1beta1.JoinControlPlane{}) {
		made.ControlPlane, wanted.ControlPlane = nil, nil
	}
	if unset(wanted.NodeRegistration) {
		made.NodeRegistration, wanted.NodeRegistration = bootstrapv1beta1.NodeRegistrationOptions{}, bootstrapv1beta1.NodeRegistrationOptions{}
	}
	defaultRegistration(&made.NodeRegistration)
	defaultRegistration(&wanted.NodeRegistration)
	return made, wanted
}

func defaultRegistration(r *bootstrapv1beta1.NodeRegistrationOptions) {
	if r.ImagePullPolicy == "" {
		r.ImagePullPolicy = string(corev1.PullIfNotPresent)
	}
}

// unset reports whether only defaulted fields are set.
func unset(r bootstrapv1beta1.NodeRegistrationOptions) bool {
	if r.ImagePullPolicy == string(corev1.PullIfNotPresent) {
		r.ImagePullPolicy = ""
	}
	return r.Taints == nil && equality.Semantic.DeepEqual(r, bootstrapv1beta1.NodeRegistrationOptions{})
}

// sameTaintIntent distinguishes no list of taints, which means the default of kubeadm, from an empty list, which means no
// taints.
func sameTaintIntent(a, b *bootstrapv1beta1.KubeadmConfigSpec) bool {
	if a.InitConfiguration != nil &&
		(a.InitConfiguration.NodeRegistration.Taints == nil) != (b.InitConfiguration.NodeRegistration.Taints == nil) {
		return false
	}
	return a.JoinConfiguration == nil ||
		(a.JoinConfiguration.NodeRegistration.Taints == nil) == (b.JoinConfiguration.NodeRegistration.Taints == nil)
}
