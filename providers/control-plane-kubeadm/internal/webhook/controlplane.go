package webhook

import (
	"context"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	bootstrapv1 "sigs.k8s.io/cluster-api/api/bootstrap/v1beta1"
	controlplanev1 "sigs.k8s.io/cluster-api/api/controlplane/v1beta1"
	"sigs.k8s.io/cluster-api/providers/internal/kubeadm"
)

// controlPlanes are the webhooks of KubeadmControlPlane.
type controlPlanes struct {
	ignition bool
}

// Default implements Defaulter.
func (controlPlanes) Default(_ context.Context, kcp *controlplanev1.KubeadmControlPlane) error {
	s := &kcp.Spec
	if s.Replicas == nil {
		s.Replicas = ptr.To[int32](1)
	}
	if s.MachineTemplate.InfrastructureRef.Namespace == "" {
		s.MachineTemplate.InfrastructureRef.Namespace = kcp.Namespace
	}
	if s.Version != "" && !strings.HasPrefix(s.Version, "v") {
		s.Version = "v" + s.Version
	}
	s.RolloutStrategy = defaultStrategy(s.RolloutStrategy)
	kubeadm.DefaultConfigSpec(&s.KubeadmConfigSpec)
	return nil
}

func defaultStrategy(r *controlplanev1.RolloutStrategy) *controlplanev1.RolloutStrategy {
	if r == nil {
		r = &controlplanev1.RolloutStrategy{}
	}
	if r.Type == "" {
		r.Type = controlplanev1.RollingUpdateStrategyType
	}
	if r.Type != controlplanev1.RollingUpdateStrategyType {
		return r
	}
	if r.RollingUpdate == nil {
		r.RollingUpdate = &controlplanev1.RollingUpdate{}
	}
	if r.RollingUpdate.MaxSurge == nil {
		r.RollingUpdate.MaxSurge = ptr.To(intstr.FromInt32(1))
	}
	return r
}

// ValidateCreate implements Validator.
func (w controlPlanes) ValidateCreate(_ context.Context, kcp *controlplanev1.KubeadmControlPlane) (admission.Warnings, error) {
	return nil, invalid("KubeadmControlPlane", kcp.Name, w.validate(nil, kcp))
}

// ValidateUpdate implements Validator.
func (w controlPlanes) ValidateUpdate(_ context.Context, before, kcp *controlplanev1.KubeadmControlPlane) (admission.Warnings, error) {
	all := w.validate(&before.Spec.KubeadmConfigSpec, kcp)
	changes, err := changedPaths(before, kcp)
	if err != nil {
		return nil, fmt.Errorf("comparing with the previous version of KubeadmControlPlane %s/%s: %w", kcp.Namespace, kcp.Name, err)
	}
	for _, path := range changes {
		if !mayChange(path) {
			all = append(all, field.Forbidden(field.NewPath(path[0], path[1:]...), "cannot be modified"))
		}
	}
	all = append(all, validateVersionChange(before, kcp)...)
	all = append(all, validateEtcdChange(before, kcp)...)
	all = append(all, validateDNSChange(before, kcp)...)
	return nil, invalid("KubeadmControlPlane", kcp.Name, all)
}

// ValidateDelete implements Validator.
func (controlPlanes) ValidateDelete(context.Context, *controlplanev1.KubeadmControlPlane) (admission.Warnings, error) {
	return nil, nil
}

// validate returns what is wrong with a control plane. old is nil on creation.
func (w controlPlanes) validate(old *bootstrapv1.KubeadmConfigSpec, kcp *controlplanev1.KubeadmControlPlane) field.ErrorList {
	path := field.NewPath("spec")
	s := &kcp.Spec
	all := validateReplicas(s, path.Child("replicas"))
	all = append(all, validateTemplateRef(kcp, path.Child("machineTemplate"))...)
	if !isVersion(s.Version) {
		all = append(all, field.Invalid(path.Child("version"), s.Version, "must be a semantic version with a leading v"))
	}
	all = append(all, validateMetadata(s.MachineTemplate.ObjectMeta, path.Child("machineTemplate", "metadata"))...)
	all = append(all, validateRolloutBefore(s.RolloutBefore, path.Child("rolloutBefore"))...)
	all = append(all, validateStrategy(s.RolloutStrategy, s.Replicas, path.Child("rolloutStrategy"))...)
	config := path.Child("kubeadmConfigSpec")
	all = append(all, validateClusterConfiguration(s.KubeadmConfigSpec.ClusterConfiguration, config.Child("clusterConfiguration"))...)
	if c := s.KubeadmConfigSpec.ClusterConfiguration; c != nil && kcp.DeletionTimestamp.IsZero() {
		all = append(all, validateExternalEtcd(c.Etcd.External, config.Child("clusterConfiguration", "etcd", "external"))...)
	}
	return append(all, kubeadm.ValidateConfigSpec(old, &s.KubeadmConfigSpec, config, w.ignition)...)
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
	config := s.KubeadmConfigSpec.ClusterConfiguration
	external := config != nil && config.Etcd.External != nil
	switch {
	case replicas <= 0:
		return "cannot be less than or equal to 0"
	case replicas%2 == 0 && !external:
		return "cannot be an even number when etcd is stacked"
	}
	return ""
}

func validateTemplateRef(kcp *controlplanev1.KubeadmControlPlane, path *field.Path) field.ErrorList {
	ref := kcp.Spec.MachineTemplate.InfrastructureRef
	at := path.Child("infrastructure")
	var all field.ErrorList
	for _, f := range []struct{ name, value string }{{"apiVersion", ref.APIVersion}, {"kind", ref.Kind}, {"name", ref.Name}} {
		if f.value == "" {
			all = append(all, field.Invalid(at.Child(f.name), f.value, "cannot be empty"))
		}
	}
	if ref.Namespace != kcp.Namespace {
		all = append(all, field.Invalid(at.Child("namespace"), ref.Namespace, "must match metadata.namespace"))
	}
	return all
}
