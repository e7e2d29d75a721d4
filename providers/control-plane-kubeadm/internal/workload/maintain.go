package workload

import (
	"context"
	"errors"

	controlplanev1 "sigs.k8s.io/cluster-api/api/controlplane/v1beta2"
)

// Maintain implements connection.Workload. An error of one add-on does not affect the other.
func (c *Cluster) Maintain(ctx context.Context, kcp *controlplanev1.KubeadmControlPlane) error {
	errs := []error{c.ensure(ctx, joinerRBAC()...)}
	if _, skip := kcp.Annotations[controlplanev1.SkipKubeProxyAnnotation]; !skip {
		errs = append(errs, c.maintainProxy(ctx, kcp))
	}
	if _, skip := kcp.Annotations[controlplanev1.SkipCoreDNSAnnotation]; !skip {
		errs = append(errs, c.maintainDNS(ctx, kcp))
	}
	return errors.Join(errs...)
}
