package outdated

import (
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	bootstrapv1 "sigs.k8s.io/cluster-api/api/bootstrap/v1beta1"
	controlplanev1 "sigs.k8s.io/cluster-api/api/controlplane/v1beta1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta1"
)

// Machine is a Machine with the objects that it was created from. Both may be nil, and are not compared then.
type Machine struct {
	*clusterv1.Machine
	Config *bootstrapv1.KubeadmConfig
	// Infrastructure is the infrastructure machine. Only its annotations are compared.
	Infrastructure metav1.Object
}

// Reasons returns the reasons to replace m, with a few words each, empty if there are none. A Machine that is being deleted is
// never outdated.
func Reasons(kcp *controlplanev1.KubeadmControlPlane, m Machine, now time.Time) []string {
	if m.DeletionTimestamp != nil {
		return nil
	}
	var reasons []string
	for _, differs := range []func(*controlplanev1.KubeadmControlPlane, Machine) string{
		version, clusterConfiguration, kubeadmConfig, template,
	} {
		if reason := differs(kcp, m); reason != "" {
			reasons = append(reasons, reason)
		}
	}
	if reason := expired(kcp, m, now); reason != "" {
		reasons = append(reasons, reason)
	}
	return reasons
}

func version(kcp *controlplanev1.KubeadmControlPlane, m Machine) string {
	if m.Spec.Version == nil || *m.Spec.Version == kcp.Spec.Version {
		return ""
	}
	return fmt.Sprintf("version %s is not %s", *m.Spec.Version, kcp.Spec.Version)
}

func template(kcp *controlplanev1.KubeadmControlPlane, m Machine) string {
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

func expired(kcp *controlplanev1.KubeadmControlPlane, m Machine, now time.Time) string {
	reached := func(at time.Time) bool { return !at.IsZero() && !now.Before(at) }
	switch {
	case reached(afterRollout(kcp, m)):
		return "it was created before spec.rolloutAfter"
	case reached(beforeExpiry(kcp, m)):
		return "its certificates expire soon"
	}
	return ""
}

// Due returns when m is to be replaced only because time passes; zero if that is not known.
func Due(kcp *controlplanev1.KubeadmControlPlane, m Machine) time.Time {
	due := afterRollout(kcp, m)
	if before := beforeExpiry(kcp, m); due.IsZero() || !before.IsZero() && before.Before(due) {
		due = before
	}
	return due
}

// afterRollout returns the time of spec.rolloutAfter, if it applies to m.
func afterRollout(kcp *controlplanev1.KubeadmControlPlane, m Machine) time.Time {
	if after := kcp.Spec.RolloutAfter; after != nil && m.CreationTimestamp.Before(after) {
		return after.Time
	}
	return time.Time{}
}

// beforeExpiry returns the time at which the certificates of m have only spec.rolloutBefore's days left.
func beforeExpiry(kcp *controlplanev1.KubeadmControlPlane, m Machine) time.Time {
	before, expiry := kcp.Spec.RolloutBefore, m.Status.CertificatesExpiryDate
	if before == nil || before.CertificatesExpiryDays == nil || expiry == nil {
		return time.Time{}
	}
	return expiry.UTC().AddDate(0, 0, -int(*before.CertificatesExpiryDays))
}
