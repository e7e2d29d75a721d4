package webhook

import (
	"context"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	bootstrapv1 "sigs.k8s.io/cluster-api/api/bootstrap/v1beta2"
	controlplanev1 "sigs.k8s.io/cluster-api/api/controlplane/v1beta2"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/providers/internal/kubeadm"
	"sigs.k8s.io/cluster-api/providers/internal/taint"
)

// controlPlanes are the webhooks of KubeadmControlPlane.
type controlPlanes struct {
	ignition, taints bool // The feature gates.
}

// Default implements Defaulter.
func (controlPlanes) Default(ctx context.Context, kcp *controlplanev1.KubeadmControlPlane) error {
	s := &kcp.Spec
	if s.Replicas == nil {
		s.Replicas = ptr.To[int32](1)
	}
	if s.Version != "" && !strings.HasPrefix(s.Version, "v") {
		s.Version = "v" + s.Version
	}
	defaultStrategy(&s.Rollout.Strategy)
	older, err := olderSpec(ctx, kcp)
	kubeadm.Default(ctx, &s.KubeadmConfigSpec, &older.KubeadmConfigSpec)
	return err
}

func defaultStrategy(r *controlplanev1.KubeadmControlPlaneRolloutStrategy) {
	if r.Type == "" {
		r.Type = controlplanev1.RollingUpdateStrategyType
	}
	if r.Type == controlplanev1.RollingUpdateStrategyType && r.RollingUpdate.MaxSurge == nil {
		r.RollingUpdate.MaxSurge = ptr.To(intstr.FromInt32(1))
	}
}

// ValidateCreate implements Validator.
func (w controlPlanes) ValidateCreate(ctx context.Context, kcp *controlplanev1.KubeadmControlPlane) (admission.Warnings, error) {
	all, err := w.validate(ctx, nil, kcp)
	if err != nil {
		return nil, err
	}
	all = append(all, validateNaming(kcp.Spec.MachineNaming, field.NewPath("spec"))...)
	all = append(all, taint.Check(w.taints, nil, kcp.Spec.MachineTemplate.Spec.Taints, taintsPath(field.NewPath("spec")))...)
	return nil, invalid("KubeadmControlPlane", kcp.Name, all)
}

// taintsPath returns the path of the taints below that of the spec of a control plane.
func taintsPath(spec *field.Path) *field.Path { return spec.Child("machineTemplate", "spec", "taints") }

// ValidateUpdate implements Validator.
func (w controlPlanes) ValidateUpdate(ctx context.Context, before, kcp *controlplanev1.KubeadmControlPlane) (admission.Warnings, error) {
	all, err := w.validate(ctx, &before.Spec.KubeadmConfigSpec, kcp)
	if err != nil {
		return nil, err
	}
	changes, err := immutablePaths(ctx, before, kcp)
	if err != nil {
		return nil, fmt.Errorf("comparing with the previous version of KubeadmControlPlane %s/%s: %w", kcp.Namespace, kcp.Name, err)
	}
	for _, path := range changes {
		all = append(all, field.Forbidden(path, "cannot be modified"))
	}
	if before.Spec.MachineNaming != kcp.Spec.MachineNaming {
		all = append(all, validateNaming(kcp.Spec.MachineNaming, field.NewPath("spec"))...)
	}
	all = append(all, taint.Check(w.taints, before.Spec.MachineTemplate.Spec.Taints, kcp.Spec.MachineTemplate.Spec.Taints,
		taintsPath(field.NewPath("spec")))...)
	all = append(all, validateVersionChange(before, kcp)...)
	all = append(all, validateEtcdChange(before, kcp)...)
	all = append(all, validateEtcdVersionChange(before, kcp)...)
	all = append(all, validateDNSChange(before, kcp)...)
	return warnOfEtcdVersion(before, kcp), invalid("KubeadmControlPlane", kcp.Name, all)
}

// ValidateDelete implements Validator.
func (controlPlanes) ValidateDelete(context.Context, *controlplanev1.KubeadmControlPlane) (admission.Warnings, error) {
	return nil, nil
}

// validate returns what is wrong with a control plane. old is nil on creation.
func (w controlPlanes) validate(
	ctx context.Context, old *bootstrapv1.KubeadmConfigSpec, kcp *controlplanev1.KubeadmControlPlane,
) (field.ErrorList, error) {
	older, err := olderSpec(ctx, kcp)
	if err != nil {
		return nil, err
	}
	path := field.NewPath("spec")
	s := &kcp.Spec
	all := validateReplicas(s, path.Child("replicas"))
	template := path.Child("machineTemplate")
	all = append(all, validateTemplateRef(s.MachineTemplate.Spec.InfrastructureRef, template.Child("spec", "infrastructureRef"))...)
	if !isVersion(s.Version) {
		all = append(all, field.Invalid(path.Child("version"), s.Version, "must be a semantic version with a leading v"))
	}
	all = append(all, validateMetadata(s.MachineTemplate.ObjectMeta, template.Child("metadata"))...)
	all = append(all, validateRollout(s.Rollout, s.Replicas, path.Child("rollout"))...)
	config := path.Child("kubeadmConfigSpec")
	cluster := config.Child("clusterConfiguration")
	all = append(all, validateClusterConfiguration(&s.KubeadmConfigSpec.ClusterConfiguration, cluster)...)
	if kcp.DeletionTimestamp.IsZero() {
		all = append(all, validateExternalEtcd(s.KubeadmConfigSpec.ClusterConfiguration.Etcd.External, cluster.Child("etcd", "external"))...)
	}
	all = append(all, kubeadm.ValidateConfigSpec(old, &s.KubeadmConfigSpec, config, w.ignition)...)
	return append(all, validateOlder(older, kcp, w.ignition)...), nil
}

func validateReplicas(s *controlplanev1.KubeadmControlPlaneSpec, path *field.Path) field.ErrorList {
	if s.Replicas == nil {
		return field.ErrorList{field.Required(path, "must be set")}
	}
	if reason := refuseReplicas(*s.Replicas, s); reason != "" {
		return field.ErrorList{field.Forbidden(path, reason)}
	}
	return nil
}

// refuseReplicas returns why the number of replicas is invalid, empty if it is valid. With stacked etcd, an even number
// tolerates no more failures than one less.
func refuseReplicas(replicas int32, s *controlplanev1.KubeadmControlPlaneSpec) string {
	external := kubeadm.Defined(s.KubeadmConfigSpec.ClusterConfiguration.Etcd.External)
	switch {
	case replicas <= 0:
		return "cannot be less than or equal to 0"
	case replicas%2 == 0 && !external:
		return "cannot be an even number when etcd is stacked"
	}
	return ""
}

func validateTemplateRef(ref clusterv1.ContractVersionedObjectReference, path *field.Path) field.ErrorList {
	var all field.ErrorList
	for _, f := range []struct{ name, value string }{{"apiGroup", ref.APIGroup}, {"kind", ref.Kind}, {"name", ref.Name}} {
		if f.value == "" {
			all = append(all, field.Invalid(path.Child(f.name), f.value, "cannot be empty"))
		}
	}
	return all
}
