package snapshot

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	bootstrapv1 "sigs.k8s.io/cluster-api/api/bootstrap/v1beta1"
	controlplanev1 "sigs.k8s.io/cluster-api/api/controlplane/v1beta1"
)

// clusterConfigurationDiffers compares the recorded clusterConfiguration of the Machine, except for dns: CoreDNS is updated in place.
func clusterConfigurationDiffers(kcp *controlplanev1.KubeadmControlPlane, m *Machine) string {
	recorded, ok := m.Annotations[controlplanev1.KubeadmClusterConfigurationAnnotation]
	if !ok {
		return ""
	}
	made, wanted := &bootstrapv1.ClusterConfiguration{}, &bootstrapv1.ClusterConfiguration{}
	if err := json.Unmarshal([]byte(recorded), &made); err != nil {
		return "its annotation with clusterConfiguration is invalid"
	}
	if made == nil { // The annotation is null.
		made = &bootstrapv1.ClusterConfiguration{}
	}
	if kcp.Spec.KubeadmConfigSpec.ClusterConfiguration != nil {
		wanted = kcp.Spec.KubeadmConfigSpec.ClusterConfiguration.DeepCopy()
	}
	made.DNS, wanted.DNS = bootstrapv1.DNS{}, bootstrapv1.DNS{}
	made.TypeMeta, wanted.TypeMeta = metav1.TypeMeta{}, metav1.TypeMeta{}
	if equality.Semantic.DeepEqual(made, wanted) {
		return ""
	}
	return "clusterConfiguration changed"
}

// kubeadmConfigDiffers compares the other fields of the KubeadmConfig, except for those that the bootstrap provider has set.
func kubeadmConfigDiffers(kcp *controlplanev1.KubeadmControlPlane, m *Machine) string {
	if m.Config == nil || createdFrom(kcp, m) {
		return ""
	}
	made, wanted := m.Config.Spec.DeepCopy(), kcp.Spec.KubeadmConfigSpec.DeepCopy()
	made.ClusterConfiguration, wanted.ClusterConfiguration = nil, nil
	for _, spec := range []*bootstrapv1.KubeadmConfigSpec{made, wanted} {
		if spec.Format == "" {
			spec.Format = bootstrapv1.CloudConfig
		}
	}
	made.InitConfiguration, wanted.InitConfiguration = comparableInit(made.InitConfiguration, wanted.InitConfiguration)
	made.JoinConfiguration, wanted.JoinConfiguration = comparableJoin(made.JoinConfiguration, wanted.JoinConfiguration)
	if equality.Semantic.DeepEqual(made, wanted) && sameTaintIntent(made, wanted) {
		return ""
	}
	return "kubeadmConfigSpec changed"
}

// ConfigAnnotation is the annotation of Machines with the ConfigHash of the spec that they were created from. Their
// KubeadmConfigs may differ from that spec, because third-party webhooks may have changed them, as they would change that of
// a replacement.
const ConfigAnnotation = "controlplane.cluster.x-k8s.io/kubeadm-config-hash"

// ConfigHash returns a hash of kubeadmConfigSpec without clusterConfiguration, which is recorded in another annotation.
func ConfigHash(kcp *controlplanev1.KubeadmControlPlane) (string, error) {
	spec := kcp.Spec.KubeadmConfigSpec
	spec.ClusterConfiguration = nil
	encoded, err := json.Marshal(spec)
	if err != nil {
		return "", fmt.Errorf("encoding kubeadmConfigSpec: %w", err)
	}
	sum := sha256.Sum256(encoded)
	return hex.EncodeToString(sum[:]), nil
}

// createdFrom reports whether the Machine was created from the current spec. If not, or if that is unknown, it may still be the
// same.
func createdFrom(kcp *controlplanev1.KubeadmControlPlane, m *Machine) bool {
	recorded, ok := m.Annotations[ConfigAnnotation]
	if !ok {
		return false
	}
	wanted, err := ConfigHash(kcp)
	return err == nil && wanted == recorded
}

// comparableInit returns no sections if the Machine has none, because it has joined.
func comparableInit(made, wanted *bootstrapv1.InitConfiguration) (left, right *bootstrapv1.InitConfiguration) {
	if made == nil {
		return nil, nil
	}
	if wanted == nil {
		wanted = &bootstrapv1.InitConfiguration{}
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
func comparableJoin(made, wanted *bootstrapv1.JoinConfiguration) (left, right *bootstrapv1.JoinConfiguration) {
	if made == nil {
		return nil, nil
	}
	if wanted == nil {
		wanted = &bootstrapv1.JoinConfiguration{}
	}
	made.TypeMeta, wanted.TypeMeta = metav1.TypeMeta{}, metav1.TypeMeta{}
	made.Discovery, wanted.Discovery = bootstrapv1.Discovery{}, bootstrapv1.Discovery{}
	if wanted.ControlPlane == nil || *wanted.ControlPlane == (bootstrapv1.JoinControlPlane{}) {
		made.ControlPlane, wanted.ControlPlane = nil, nil
	}
	if unset(wanted.NodeRegistration) {
		made.NodeRegistration, wanted.NodeRegistration = bootstrapv1.NodeRegistrationOptions{}, bootstrapv1.NodeRegistrationOptions{}
	}
	defaultRegistration(&made.NodeRegistration)
	defaultRegistration(&wanted.NodeRegistration)
	return made, wanted
}

func defaultRegistration(r *bootstrapv1.NodeRegistrationOptions) {
	if r.ImagePullPolicy == "" {
		r.ImagePullPolicy = string(corev1.PullIfNotPresent)
	}
}

// unset reports whether only defaulted fields are set.
func unset(r bootstrapv1.NodeRegistrationOptions) bool {
	if r.ImagePullPolicy == string(corev1.PullIfNotPresent) {
		r.ImagePullPolicy = ""
	}
	return r.Taints == nil && equality.Semantic.DeepEqual(r, bootstrapv1.NodeRegistrationOptions{})
}

// sameTaintIntent distinguishes no list of taints, which means the default of kubeadm, from an empty list, which means no
// taints.
func sameTaintIntent(a, b *bootstrapv1.KubeadmConfigSpec) bool {
	if a.InitConfiguration != nil &&
		(a.InitConfiguration.NodeRegistration.Taints == nil) != (b.InitConfiguration.NodeRegistration.Taints == nil) {
		return false
	}
	return a.JoinConfiguration == nil ||
		(a.JoinConfiguration.NodeRegistration.Taints == nil) == (b.JoinConfiguration.NodeRegistration.Taints == nil)
}
