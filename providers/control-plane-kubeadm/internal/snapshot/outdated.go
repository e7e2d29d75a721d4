package snapshot

import (
	"context"
	"fmt"
	"time"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
)

// OutdatedReasons returns the reasons to replace m, with a few words each, empty if there are none. A Machine that is being deleted is
// never outdated.
func OutdatedReasons(ctx context.Context, s Spec, m *Machine, now time.Time) ([]string, error) {
	if m.DeletionTimestamp != nil {
		return nil, nil
	}
	var reasons []string
	for _, differs := range []func(context.Context, Spec, *Machine) (string, error){
		abandoned, versionDiffers, clusterConfigurationDiffers, kubeadmConfigDiffers, templateDiffers,
	} {
		reason, err := differs(ctx, s, m)
		if err != nil {
			return nil, err
		}
		if reason != "" {
			reasons = append(reasons, reason)
		}
	}
	if reason := expires(s, m, now); reason != "" {
		reasons = append(reasons, reason)
	}
	return reasons, nil
}

// abandoned is a reason regardless of the spec: see RecordAbandoned.
func abandoned(_ context.Context, _ Spec, m *Machine) (string, error) {
	if Abandoned(m.Machine) {
		return "an update in place could not be completed", nil
	}
	return "", nil
}

func versionDiffers(_ context.Context, s Spec, m *Machine) (string, error) {
	if m.Spec.Version == "" || m.Spec.Version == s.Version {
		return "", nil
	}
	return fmt.Sprintf("version %s is not %s", m.Spec.Version, s.Version), nil
}

func templateDiffers(_ context.Context, s Spec, m *Machine) (string, error) {
	if m.Infrastructure == nil {
		return "", nil
	}
	annotations := m.Infrastructure.GetAnnotations()
	name, named := annotations[clusterv1.TemplateClonedFromNameAnnotation]
	kind, typed := annotations[clusterv1.TemplateClonedFromGroupKindAnnotation]
	if !named || !typed {
		return "", nil
	}
	wanted := s.MachineTemplate.Spec.InfrastructureRef
	if name == wanted.Name && kind == wanted.GroupKind().String() {
		return "", nil
	}
	return fmt.Sprintf("its infrastructure is from %s %s, not %s", kind, name, wanted.Name), nil
}

func expires(s Spec, m *Machine, now time.Time) string {
	reached := func(at time.Time) bool { return !at.IsZero() && !now.Before(at) }
	switch {
	case reached(afterRollout(s, m)):
		return "it was created before spec.rolloutAfter"
	case reached(beforeExpiry(s, m)):
		return "its certificates expire soon"
	}
	return ""
}

// due returns when m must be replaced only because time passes; zero if that is unknown.
func due(s Spec, m *Machine) time.Time {
	first := afterRollout(s, m)
	if before := beforeExpiry(s, m); first.IsZero() || !before.IsZero() && before.Before(first) {
		first = before
	}
	return first
}

// afterRollout returns the time of spec.rollout.after, if it applies to m.
func afterRollout(s Spec, m *Machine) time.Time {
	if m.CreationTimestamp.Before(&s.Rollout.After) {
		return s.Rollout.After.Time
	}
	return time.Time{}
}

// beforeExpiry returns the time at which the certificates of m have only spec.rollout.before's days left.
func beforeExpiry(s Spec, m *Machine) time.Time {
	days, expiry := s.Rollout.Before.CertificatesExpiryDays, m.Status.CertificatesExpiryDate
	if days == 0 || expiry.IsZero() {
		return time.Time{}
	}
	return expiry.UTC().AddDate(0, 0, -int(days))
}
