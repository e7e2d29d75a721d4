package rotation

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	controlplanev1 "sigs.k8s.io/cluster-api/api/controlplane/v1beta2"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	fleetv1 "sigs.k8s.io/cluster-api/api/fleet/v1alpha1"
	"sigs.k8s.io/cluster-api/providers/fleet/internal/operation"
	"sigs.k8s.io/cluster-api/providers/fleet/internal/rotation/authority"
	"sigs.k8s.io/cluster-api/sdk/pki"
	"sigs.k8s.io/cluster-api/sdk/step"
)

// controlPlaneKind is the kind of control plane whose authorities can be rotated.
const controlPlaneKind = "KubeadmControlPlane"

// read reads what is decided on from the API server: the status in the cache may be older than what another leader has done.
func (c *Controller) read(ctx context.Context, s *scope) (step.Result, error) {
	result, err := operation.Latest(ctx, c.Clients, s.Run, s.rotation, &fleetv1.CertificateAuthorityRotation{},
		func(r *fleetv1.CertificateAuthorityRotation) any { return r.Status })
	if err != nil || result.Ends() {
		return result, err
	}
	return step.Done(), c.readAll(ctx, s)
}

func (c *Controller) readAll(ctx context.Context, s *scope) error {
	key := s.clusterKey()
	s.cluster = &clusterv1.Cluster{}
	if err := c.Live.Get(ctx, key, s.cluster); err != nil {
		s.cluster = nil
		return client.IgnoreNotFound(err)
	}
	if ref := s.cluster.Spec.ControlPlaneRef; ref.Kind == controlPlaneKind {
		s.controlPlane = &controlplanev1.KubeadmControlPlane{}
		err := c.Live.Get(ctx, client.ObjectKey{Namespace: key.Namespace, Name: ref.Name}, s.controlPlane)
		if apierrors.IsNotFound(err) {
			s.controlPlane, err = nil, nil
		}
		if err != nil {
			return fmt.Errorf("reading KubeadmControlPlane %s: %w", ref.Name, err)
		}
	}
	of := []client.ListOption{client.InNamespace(key.Namespace), client.MatchingLabels{clusterv1.ClusterNameLabel: key.Name}}
	machines, deployments, pools := &clusterv1.MachineList{}, &clusterv1.MachineDeploymentList{}, &clusterv1.MachinePoolList{}
	for _, list := range []client.ObjectList{machines, deployments, pools} {
		if err := c.Live.List(ctx, list, of...); err != nil {
			return fmt.Errorf("listing the Machines of Cluster %s: %w", key.Name, err)
		}
	}
	s.machines, s.deployments, s.pools = machines.Items, deployments.Items, pools.Items
	return c.readSecrets(ctx, s)
}

// readSecrets reads the Secrets of the authorities, and that of the rotation.
func (c *Controller) readSecrets(ctx context.Context, s *scope) error {
	s.secrets = map[fleetv1.Authority]*corev1.Secret{}
	for _, a := range authority.All() {
		secret, err := c.secret(ctx, pki.SecretKey(s.clusterKey(), authority.Purpose(a)))
		if err != nil {
			return err
		}
		if secret != nil {
			s.secrets[a] = secret
		}
	}
	own, err := c.secret(ctx, client.ObjectKey{Namespace: s.rotation.Namespace, Name: ownName(s.rotation)})
	if err != nil || own == nil {
		return err
	}
	if !metav1.IsControlledBy(own, s.rotation) {
		return fmt.Errorf("Secret %s exists, and does not belong to CertificateAuthorityRotation %s: rename one of them",
			own.Name, s.rotation.Name)
	}
	s.own, s.changes = own, changesOf(own)
	return nil
}

// secret returns a Secret, nil if it does not exist.
func (c *Controller) secret(ctx context.Context, key client.ObjectKey) (*corev1.Secret, error) {
	secret := &corev1.Secret{}
	err := c.Live.Get(ctx, key, secret)
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading Secret %s: %w", key, err)
	}
	return secret, nil
}
