package machines

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	bootstrapv1beta1 "sigs.k8s.io/cluster-api/api/bootstrap/v1beta1"
	bootstrapv1 "sigs.k8s.io/cluster-api/api/bootstrap/v1beta2"
	controlplanev1beta1 "sigs.k8s.io/cluster-api/api/controlplane/v1beta1"
	controlplanev1 "sigs.k8s.io/cluster-api/api/controlplane/v1beta2"
	"sigs.k8s.io/cluster-api/providers/internal/kubeadm"
	"sigs.k8s.io/cluster-api/sdk/conversion"
)

// newConfig returns the KubeadmConfig of a Machine, with no other metadata than the annotation for what only clients of v1beta1 can write.
func newConfig(ctx context.Context, kcp *controlplanev1.KubeadmControlPlane, role Role) (*bootstrapv1.KubeadmConfig, error) {
	config, older := &bootstrapv1.KubeadmConfig{}, &controlplanev1beta1.KubeadmControlPlane{}
	found, err := conversion.Older(ctx, kcp, older)
	if err != nil {
		return nil, err
	}
	written := &older.Spec.KubeadmConfigSpec
	canInitialize := kubeadm.Defined(kcp.Spec.KubeadmConfigSpec.ClusterConfiguration) || written.ClusterConfiguration != nil ||
		kubeadm.Defined(kcp.Spec.KubeadmConfigSpec.InitConfiguration) || written.InitConfiguration != nil
	if found {
		if role == Join {
			written.ClusterConfiguration, written.InitConfiguration = nil, nil
		} else {
			written.JoinConfiguration = nil
		}
		if err := conversion.Shared().Convert(ctx, &bootstrapv1beta1.KubeadmConfig{Spec: *written}, config); err != nil {
			return nil, err
		}
	}
	config.Spec = configSpec(kcp.Spec.KubeadmConfigSpec, role)
	if role == Initialize && !canInitialize {
		// Without either section, the bootstrap provider waits for another Machine to initialize the cluster.
		config.Spec.InitConfiguration.NodeRegistration.ImagePullPolicy = corev1.PullIfNotPresent
	}
	if role == Initialize {
		localMode(&config.Spec.ClusterConfiguration, kcp.Spec.Version)
	}
	return config, nil
}

// localMode sets the feature gate for kubelets that connect to the API server beside them, unless the spec has it. It is not recorded on
// the Machine, so that no existing Machine differs. Machines that join read it from the cluster.
func localMode(config *bootstrapv1.ClusterConfiguration, version string) {
	if set, _ := kubeadm.ChangeKubeletLocalMode(config.FeatureGates, version); !set {
		return
	}
	if config.FeatureGates == nil {
		config.FeatureGates = map[string]bool{}
	}
	config.FeatureGates[kubeadm.KubeletLocalMode] = true
}

// configSpec returns what the KubeadmConfig of a Machine has of kubeadmConfigSpec.
//
// In v1beta1, clusterConfiguration has one timeout for the components of all Machines: that of init if there is one. So the KubeadmConfig
// with clusterConfiguration has it for both, and all others only if it is another one. Their Machines record clusterConfiguration.
func configSpec(from bootstrapv1.KubeadmConfigSpec, role Role) bootstrapv1.KubeadmConfigSpec {
	spec := *from.DeepCopy()
	all, own := spec.InitConfiguration.Timeouts.ControlPlaneComponentHealthCheckSeconds, &spec.JoinConfiguration.Timeouts
	if role == Initialize {
		spec.JoinConfiguration = bootstrapv1.JoinConfiguration{Timeouts: bootstrapv1.Timeouts{ControlPlaneComponentHealthCheckSeconds: all}}
		return spec
	}
	if all == nil || ptr.Equal(all, own.ControlPlaneComponentHealthCheckSeconds) {
		own.ControlPlaneComponentHealthCheckSeconds = nil
	}
	spec.ClusterConfiguration, spec.InitConfiguration = bootstrapv1.ClusterConfiguration{}, bootstrapv1.InitConfiguration{}
	return spec
}
