package controlplane

import (
	"context"
	"errors"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	controlplanev1 "sigs.k8s.io/cluster-api/api/controlplane/v1beta2"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/providers/control-plane-kubeadm/internal/snapshot"
	"sigs.k8s.io/cluster-api/sdk/condition"
	"sigs.k8s.io/cluster-api/sdk/step"
)

// maintainEvery is the interval at which add-ons are checked even if the spec has not changed: users of the workload cluster
// may have changed them.
const maintainEvery = 10 * time.Minute

// maintain updates RBAC, kube-proxy and CoreDNS, and records when certificates expire.
func (c *Controller) maintain(ctx context.Context, s *scope) (step.Result, error) {
	if s.observed == nil || !ptr.Deref(s.KCP.Status.Initialization.ControlPlaneInitialized, false) {
		return step.Done(), nil
	}
	expiries := c.recordExpiries(ctx, s)
	_, dns := s.KCP.Annotations[controlplanev1.SkipCoreDNSAnnotation]
	_, proxy := s.KCP.Annotations[controlplanev1.SkipKubeProxyAnnotation]
	state := fmt.Sprint(s.KCP.Generation, dns, proxy, c.Clock.Now().Truncate(maintainEvery).Unix())
	if done, ok := c.maintained.Load(s.KCP.UID); ok && done == state {
		return step.Done(), expiries
	}
	if err := s.connection.Workload.Maintain(ctx, s.KCP); err != nil {
		return step.Done(), errors.Join(expiries, fmt.Errorf("maintaining the workload cluster: %w", err))
	}
	c.maintained.Store(s.KCP.UID, state)
	return step.Done(), expiries
}

// recordExpiries records, once per Machine, when the certificate of its API server expires: spec.rollout.before depends on it.
func (c *Controller) recordExpiries(ctx context.Context, s *scope) error {
	var errs []error
	for _, m := range s.Machines {
		if m.Config == nil || m.Deleting() || m.Node() == "" || !condition.IsTrue(m, controlplanev1.MachineAPIServerPodHealthyV1Beta1Condition) {
			continue
		}
		if hasExpiry(m.Annotations) || hasExpiry(m.Config.Annotations) {
			continue
		}
		errs = append(errs, c.recordExpiry(ctx, s, m))
	}
	return errors.Join(errs...)
}

func hasExpiry(annotations map[string]string) bool {
	_, ok := annotations[clusterv1.MachineCertificatesExpiryDateAnnotation]
	return ok
}

func (c *Controller) recordExpiry(ctx context.Context, s *scope, m *snapshot.Machine) error {
	expiry, err := s.connection.Workload.CertificateExpiry(ctx, m.Node())
	if err != nil {
		return fmt.Errorf("reading the certificate expiry of Machine %s: %w", m.Name, err)
	}
	record := func() {
		metav1.SetMetaDataAnnotation(&m.Config.ObjectMeta, clusterv1.MachineCertificatesExpiryDateAnnotation, expiry.UTC().Format(time.RFC3339))
	}
	if err := c.Patch(ctx, m.Config, record); err != nil {
		return fmt.Errorf("recording the certificate expiry of Machine %s: %w", m.Name, err)
	}
	return nil
}
