package snapshot

import (
	"fmt"
	"time"

	controlplanev1 "sigs.k8s.io/cluster-api/api/controlplane/v1beta1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta1"
)

// OutdatedReasons returns the reasons to replace m, with a few words each, empty if there are none. A Machine that is being deleted is
// never outdated.
func OutdatedReasons(kcp *controlplanev1.KubeadmControlPlane, m *Machine, now time.Time) []string {
	if m.DeletionTimestamp != nil {
		return nil
	}
	var reasons []string
	for _, differs := range []func(*controlplanev1.KubeadmControlPlane, *Machine) string{
		versionDiffers, clusterConfigurationDiffers, kubeadmConfigDiffers, templateDiffers,
	} {
		if reason := differs(kcp, m); reason != "" {
			reasons = append(reasons, reason)
		}
	}
	if reason := expires(kcp, m, now); reason != "" {
		reasons = append(reasons, reason)
	}
	return reasons
}

func versionDiffers(kcp *controlplanev1.KubeadmControlPlane, m *Machine) string {
	if m.Spec.Version == nil || *m.Spec.Version == kcp.Spec.Version {
		return ""
	}
	return fmt.Sprintf("version %s is not %s", *m.Spec.Version, kcp.Spec.Version)
}

func templateDiffers(kcp *controlplanev1.KubeadmControlPlane, m *Machine) string {
	if m.Infrastructure == nil {
		return ""
	}
	annotations := m.Infrastructure.GetAnnotations()
	name, named := annotations[clusterv1.TemplateClonedFromNameAnnotation]
	kind, typed := annotations[clusterv1.TemplateClonedFromGroupKindAnnotation]
	if !named || !typed {
		return ""
	}
	wanted := kcp.Spec.MachineTemplate.InfrastructureRef
	if name == wanted.Name && kind == wanted.GroupVersionKind().GroupKind().String() {
		return ""
	}
	return fmt.Sprintf("its infrastructure is from %s %s, not %s", kind, name, wanted.Name)
}

func expires(kcp *controlplanev1.KubeadmControlPlane, m *Machine, now time.Time) string {
	reached := func(at time.Time) bool { return !at.IsZero() && !now.Before(at) }
	switch {
	case reached(afterRollout(kcp, m)):
		return "it was created before spec.rolloutAfter"
	case reached(beforeExpiry(kcp, m)):
		return "its certificates expire soon"
	}
	return ""
}

// due returns when m must be replaced only because time passes; zero if that is unknown.
func due(kcp *controlplanev1.KubeadmControlPlane, m *Machine) time.Time {
	first := afterRollout(kcp, m)
	if before := beforeExpiry(kcp, m); first.IsZero() || !before.IsZero() && before.Before(first) {
		first = before
	}
	return first
}

// afterRollout returns the time of spec.rolloutAfter, if it applies to m.
func afterRollout(kcp *controlplanev1.KubeadmControlPlane, m *Machine) time.Time {
	if after := kcp.Spec.RolloutAfter; after != nil && m.CreationTimestamp.Before(after) {
		return after.Time
	}
	return time.Time{}
}

// beforeExpiry returns the time at which the certificates of m have only spec.rolloutBefore's days left.
func beforeExpiry(kcp *controlplanev1.KubeadmControlPlane, m *Machine) time.Time {
	before, expiry := kcp.Spec.RolloutBefore, m.Status.CertificatesExpiryDate
	if before == nil || before.CertificatesExpiryDays == nil || expiry == nil {
		return time.Time{}
	}
	return expiry.UTC().AddDate(0, 0, -int(*before.CertificatesExpiryDays))
}
