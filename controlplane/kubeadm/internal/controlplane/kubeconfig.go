package controlplane

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"sigs.k8s.io/cluster-api/internal/pki"
	"sigs.k8s.io/cluster-api/internal/step"
)

// kubeconfig makes the admin kubeconfig of the cluster, and makes it anew half a year before its client certificate
// expires. A kubeconfig that the control plane does not own is left alone, but for the label that it is found by.
func (c *Controller) kubeconfig(ctx context.Context, s *scope) (step.Result, error) {
	key := pki.SecretKey(s.key(), pki.Kubeconfig)
	secret := &corev1.Secret{}
	err := c.Secrets.Get(ctx, key, secret)
	switch {
	case apierrors.IsNotFound(err):
		err = c.newKubeconfig(ctx, s)
	case err == nil && metav1.IsControlledBy(secret, s.kcp):
		return c.renewKubeconfig(ctx, s, secret)
	}
	if err != nil {
		return step.Result{}, fmt.Errorf("kubeconfig secret %s: %w", key, err)
	}
	return step.Done(), nil
}

func (c *Controller) newKubeconfig(ctx context.Context, s *scope) error {
	config, err := c.issueKubeconfig(ctx, s)
	if err != nil {
		return err
	}
	secret := pki.NewSecret(s.key(), pki.Kubeconfig, map[string][]byte{pki.KubeconfigKey: config}, s.owner())
	err = c.Client.Create(ctx, secret, client.FieldOwner(FieldManager))
	if apierrors.IsAlreadyExists(err) {
		return c.found(ctx, s, client.ObjectKeyFromObject(secret), &corev1.Secret{})
	}
	if err != nil {
		return fmt.Errorf("creating it: %w", err)
	}
	step.AwaitVisible(ctx, c.Secrets, secret)
	return nil
}

func (c *Controller) issueKubeconfig(ctx context.Context, s *scope) ([]byte, error) {
	secret := &corev1.Secret{}
	key := pki.SecretKey(s.key(), pki.ClusterCA)
	if err := c.Client.Get(ctx, key, secret); err != nil {
		return nil, fmt.Errorf("reading the certificate authority %s: %w", key, err)
	}
	ca, err := pki.AuthorityFrom(secret)
	if err != nil {
		return nil, err
	}
	return c.Keys.Kubeconfig(s.cluster.Name, "https://"+s.cluster.Spec.ControlPlaneEndpoint.String(), ca, c.Clock.Now())
}

func (c *Controller) renewKubeconfig(ctx context.Context, s *scope, secret *corev1.Secret) (step.Result, error) {
	expiry, err := pki.KubeconfigExpiry(secret.Data[pki.KubeconfigKey])
	if err == nil && (expiry.IsZero() || c.Clock.Now().Before(expiry.Add(-pki.RenewKubeconfigBefore))) {
		return step.Done(), nil
	}
	config, err := c.issueKubeconfig(ctx, s)
	if err != nil {
		return step.Result{}, err
	}
	before := secret.DeepCopy()
	secret.Data[pki.KubeconfigKey] = config
	patch := client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})
	if err := c.Client.Patch(ctx, secret, patch, client.FieldOwner(FieldManager)); err != nil {
		return step.Result{}, fmt.Errorf("renewing kubeconfig secret %s: %w", client.ObjectKeyFromObject(secret), err)
	}
	return step.Done(), nil
}
