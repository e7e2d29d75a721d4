package machine

import (
	"context"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/sdk/step"
)

// certificates copies the time at which the certificates of a control plane Machine expire from an annotation of the Machine,
// or else of its bootstrap config.
func (c *Controller) certificates(ctx context.Context, s *scope) (step.Result, error) {
	m := s.machine
	if !s.isControlPlane() {
		return step.Done(), nil
	}
	value, ok := m.Annotations[clusterv1.MachineCertificatesExpiryDateAnnotation]
	if !ok && m.Spec.Bootstrap.ConfigRef.IsDefined() {
		config, err := c.object(ctx, s, &m.Spec.Bootstrap.ConfigRef)
		if err != nil {
			return step.Done(), err
		}
		if config != nil {
			value, ok = config.GetAnnotations()[clusterv1.MachineCertificatesExpiryDateAnnotation]
		}
	}
	if !ok {
		m.Status.CertificatesExpiryDate = metav1.Time{}
		return step.Done(), nil
	}
	expiry, err := time.Parse(time.RFC3339, value)
	if err != nil {
		return step.Done(), step.Terminal(fmt.Errorf("annotation %s is %q, must be an RFC 3339 time such as 2006-01-02T15:04:05Z: %w",
			clusterv1.MachineCertificatesExpiryDateAnnotation, value, err))
	}
	m.Status.CertificatesExpiryDate = metav1.Time{Time: expiry}
	return step.Done(), nil
}
