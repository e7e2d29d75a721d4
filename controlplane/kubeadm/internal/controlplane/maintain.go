package controlplane

import (
	"context"
	"errors"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	controlplanev1 "sigs.k8s.io/cluster-api/api/controlplane/v1beta1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta1"
	"sigs.k8s.io/cluster-api/provider/condition"
	"sigs.k8s.io/cluster-api/provider/step"
)

// maintainEvery is how often the workload cluster's add-ons are looked at although nothing changed here: somebody may
// have changed them there.
const maintainEvery = 10 * time.Minute

// maintain keeps what belongs to the control plane as a whole in step with its spec, once its Machines are.
func (c *Controller) maintain(ctx context.Context, s *scope) (step.Result, error) {
	if s.observed == nil || !s.kcp.Status.Initialized {
		return step.Done(), nil
	}
	expiries := c.recordExpiries(ctx, s)
	_, dns := s.kcp.Annotations[controlplanev1.SkipCoreDNSAnnotation]
	_, proxy := s.kcp.Annotations[controlplanev1.SkipKubeProxyAnnotation]
	state := fmt.Sprint(s.kcp.Generation, dns, proxy, c.Clock.Now().Truncate(maintainEvery).Unix())
	if c.maintained.is(s.kcp.UID, state) {
		return step.Done(), expiries
	}
	if err := s.workload.Maintain(ctx, s.kcp); err != nil {
		return step.Result{}, errors.Join(expiries, fmt.Errorf("maintaining the workload cluster: %w", err))
	}
	c.maintained.set(s.kcp.UID, state)
	return step.Done(), expiries
}

// recordExpiries notes, once for every Machine, when its API server's certificate expires: rollouts may be timed by it.
func (c *Controller) recordExpiries(ctx context.Context, s *scope) error {
	var errs []error
	for _, m := range s.machines {
		if m.config == nil || m.deleting() || m.node() == "" || !condition.IsTrue(m, controlplanev1.MachineAPIServerPodHealthyCondition) {
			continue
		}
		if recorded(m.Annotations) || recorded(m.config.Annotations) {
			continue
		}
		errs = append(errs, c.recordExpiry(ctx, s, m))
	}
	return errors.Join(errs...)
}

func recorded(annotations map[string]string) bool {
	_, ok := annotations[clusterv1.MachineCertificatesExpiryDateAnnotation]
	return ok
}

func (c *Controller) recordExpiry(ctx context.Context, s *scope, m *machine) error {
	expiry, err := s.workload.CertificateExpiry(ctx, m.node())
	if err != nil {
		return fmt.Errorf("finding out when the certificates of Machine %s expire: %w", m.Name, err)
	}
	record := func() {
		metav1.SetMetaDataAnnotation(&m.config.ObjectMeta, clusterv1.MachineCertificatesExpiryDateAnnotation, expiry.UTC().Format(time.RFC3339))
	}
	if err := c.Patch(ctx, m.config, false, record); err != nil {
		return fmt.Errorf("recording when the certificates of Machine %s expire: %w", m.Name, err)
	}
	return nil
}
