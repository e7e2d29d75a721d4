package webhook

import (
	"context"

	"k8s.io/apimachinery/pkg/util/validation/field"

	bootstrapv1beta1 "sigs.k8s.io/cluster-api/api/bootstrap/v1beta1"
	bootstrapv1 "sigs.k8s.io/cluster-api/api/bootstrap/v1beta2"
	controlplanev1beta1 "sigs.k8s.io/cluster-api/api/controlplane/v1beta1"
	controlplanev1 "sigs.k8s.io/cluster-api/api/controlplane/v1beta2"
	"sigs.k8s.io/cluster-api/providers/internal/kubeadm"
	"sigs.k8s.io/cluster-api/sdk/conversion"
)

// olderSpec returns the spec of a control plane in v1beta1 if it has something that v1beta2 does not have; otherwise an empty one.
func olderSpec(ctx context.Context, kcp *controlplanev1.KubeadmControlPlane) (*controlplanev1beta1.KubeadmControlPlaneSpec, error) {
	older := &controlplanev1beta1.KubeadmControlPlane{}
	_, err := conversion.Older(ctx, kcp, older)
	return &older.Spec, err
}

// olderTemplate is olderSpec for a template.
func olderTemplate(
	ctx context.Context, t *controlplanev1.KubeadmControlPlaneTemplate,
) (*controlplanev1beta1.KubeadmControlPlaneTemplateResourceSpec, error) {
	older := &controlplanev1beta1.KubeadmControlPlaneTemplate{}
	_, err := conversion.Older(ctx, t, older)
	return &older.Spec.Template.Spec, err
}

// validateOlder validates what only the spec in v1beta1 has. Paths are those of v1beta2, where it has the field.
func validateOlder(
	older *controlplanev1beta1.KubeadmControlPlaneSpec, kcp *controlplanev1.KubeadmControlPlane, ignition bool,
) field.ErrorList {
	path := field.NewPath("spec")
	all := validateOlderRollout(older.RolloutBefore, path.Child("rollout"))
	if namespace := older.MachineTemplate.InfrastructureRef.Namespace; namespace != "" && namespace != kcp.Namespace {
		at := path.Child("machineTemplate", "spec", "infrastructureRef", "namespace")
		all = append(all, field.Invalid(at, namespace, "must match metadata.namespace"))
	}
	config := path.Child("kubeadmConfigSpec")
	all = append(all, validateOlderConfig(&older.KubeadmConfigSpec, &kcp.Spec.KubeadmConfigSpec, config, ignition)...)
	cluster := older.KubeadmConfigSpec.ClusterConfiguration
	if cluster != nil && cluster.Etcd.External != nil && kcp.DeletionTimestamp.IsZero() &&
		!kubeadm.Defined(kcp.Spec.KubeadmConfigSpec.ClusterConfiguration.Etcd.External) {
		all = append(all, noEndpoints(config.Child("clusterConfiguration", "etcd", "external")))
	}
	return all
}

// validateOlderRollout validates a number of days that is zero, which v1beta2 does not have.
func validateOlderRollout(before *controlplanev1beta1.RolloutBefore, path *field.Path) field.ErrorList {
	if before == nil || before.CertificatesExpiryDays == nil || *before.CertificatesExpiryDays != 0 {
		return nil
	}
	return validateExpiryDays(0, path.Child("before", "certificatesExpiryDays"))
}

// validateOlderConfig validates what only the older one of two forms of a spec has: that includes etcds that are empty.
func validateOlderConfig(
	older *bootstrapv1beta1.KubeadmConfigSpec, spec *bootstrapv1.KubeadmConfigSpec, path *field.Path, ignition bool,
) field.ErrorList {
	all := kubeadm.ValidateOlderConfigSpec(older, path, ignition)
	cluster, etcd := older.ClusterConfiguration, spec.ClusterConfiguration.Etcd
	if cluster != nil && cluster.Etcd.Local != nil && cluster.Etcd.External != nil &&
		(!kubeadm.Defined(etcd.Local) || !kubeadm.Defined(etcd.External)) {
		all = append(all, bothEtcds(path.Child("clusterConfiguration", "etcd", "local")))
	}
	return all
}
