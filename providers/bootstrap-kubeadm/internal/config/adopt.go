package config

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/sdk/failsafe"
	"sigs.k8s.io/cluster-api/sdk/step"
)

// adopt uses data that already exists.
func (c *Controller) adopt(ctx context.Context, s *scope) (step.Result, error) {
	if s.ready() {
		return step.Done(), nil
	}
	if name := s.ownData(); name != nil {
		if err := c.reclaim(ctx, s, *name); err != nil {
			return step.Done(), err
		}
		markReady(s.config, *name)
		return step.Done(), nil
	}
	err := c.cached.Get(ctx, s.secretKey(), &corev1.Secret{})
	switch {
	case apierrors.IsNotFound(err):
		return step.Done(), nil
	case err != nil:
		return step.Done(), fmt.Errorf("reading Secret %s: %w", s.secretName(), err)
	}
	return c.occupied(ctx, s)
}

// reclaim makes the config the owner of its data again, if a backup was restored without owners: otherwise the data, with its keys, would
// stay when the machine is deleted. Only generated data has a format, the label of the cluster, and the name of the config.
func (c *Controller) reclaim(ctx context.Context, s *scope, name string) error {
	orphaned := func(secret *corev1.Secret) bool {
		return len(secret.OwnerReferences) == 0 && secret.DeletionTimestamp == nil && secret.Labels[clusterv1.ClusterNameLabel] == s.cluster.Name
	}
	secret := &corev1.Secret{}
	err := c.cached.Get(ctx, s.secretKey(), secret)
	if name != s.secretName() || apierrors.IsNotFound(err) || err == nil && !orphaned(secret) {
		return nil
	}
	if err == nil {
		err = c.Live.Get(ctx, s.secretKey(), secret) // The cache may not have its data.
	}
	if err != nil {
		return fmt.Errorf("reading Secret %s: %w", name, err)
	}
	if _, generated := secret.Data["format"]; !generated || !orphaned(secret) || secret.Type != clusterv1.ClusterSecretType {
		return nil
	}
	secret.OwnerReferences = dataSecret(s, nil).OwnerReferences
	if err := c.Client.Update(ctx, secret); err != nil {
		return fmt.Errorf("owning Secret %s: %w", name, failsafe.Redacted(err))
	}
	return nil
}
