package controlplane

import (
	"context"
	"errors"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	controlplanev1 "sigs.k8s.io/cluster-api/api/controlplane/v1beta1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta1"
	"sigs.k8s.io/cluster-api/provider/pki"
	"sigs.k8s.io/cluster-api/provider/refusal"
	"sigs.k8s.io/cluster-api/provider/step"
)

// certificates makes the Secrets that the control plane's certificates come from, unless they are there: what users
// bring is left alone. With an external etcd, its Secrets can only come from the user. Nothing is made up for a cluster
// that runs.
func (c *Controller) certificates(ctx context.Context, s *scope) (step.Result, error) {
	for _, purpose := range []pki.Purpose{pki.ClusterCA, pki.EtcdCA, pki.FrontProxyCA, pki.ServiceAccount} {
		if err := c.certificate(ctx, s, purpose); err != nil {
			return step.Result{}, noCertificates(err)
		}
	}
	if !s.stacked() {
		if err := c.certificate(ctx, s, pki.APIServerEtcdClient); err != nil {
			return step.Result{}, noCertificates(err)
		}
	}
	return step.Done(), nil
}

func noCertificates(err error) error {
	return &step.Error{Reason: controlplanev1.CertificatesGenerationFailedReason, Severity: clusterv1.ConditionSeverityWarning, Err: err}
}

// certificate makes sure that one Secret is there and usable.
func (c *Controller) certificate(ctx context.Context, s *scope, purpose pki.Purpose) error {
	key := pki.SecretKey(s.key(), purpose)
	secret := &corev1.Secret{}
	err := c.Secrets.Get(ctx, key, secret)
	if apierrors.IsNotFound(err) {
		err = c.newCertificate(ctx, s, purpose, secret)
	}
	if err != nil {
		return fmt.Errorf("secret %s: %w", key, err)
	}
	pair, err := pki.PairFrom(secret)
	if err != nil {
		return err
	}
	if len(pair.Key) == 0 && s.needsKey(purpose) {
		return fmt.Errorf("secret %s has no data under key %q", key, pki.PrivateKeyKey)
	}
	return c.takeOver(ctx, s, secret)
}

// needsKey: the authority of an external etcd signs nothing here.
func (s *scope) needsKey(purpose pki.Purpose) bool { return s.stacked() || purpose != pki.EtcdCA }

// newCertificate creates the Secret, unless it turns out to exist.
func (c *Controller) newCertificate(ctx context.Context, s *scope, purpose pki.Purpose, into *corev1.Secret) error {
	key := pki.SecretKey(s.key(), purpose)
	if why := s.irreplaceable(purpose); why != "" {
		err := c.found(ctx, s, key, into)
		if apierrors.IsNotFound(err) {
			return errors.New("it does not exist; " + why)
		}
		return err
	}
	pair, err := c.Keys.Generate(purpose, c.Clock.Now(), s.kcp, s.cluster)
	if err != nil {
		return fmt.Errorf("generating keys: %w", err)
	}
	created := pki.NewSecret(s.key(), purpose, pair.Data(), s.owner())
	err = c.Client.Create(ctx, created)
	if apierrors.IsAlreadyExists(err) {
		return c.found(ctx, s, key, into)
	}
	if err != nil {
		return fmt.Errorf("creating it: %w", refusal.Redacted(err))
	}
	s.founded = s.founded || purpose == pki.ClusterCA
	created.DeepCopyInto(into)
	step.AwaitVisible(ctx, c.Secrets, created)
	return nil
}

// irreplaceable says why a Secret cannot be made here, and what to do; empty when it can.
func (s *scope) irreplaceable(purpose pki.Purpose) string {
	users := []pki.Purpose{pki.APIServerEtcdClient}
	if !s.stacked() {
		users = append(users, pki.EtcdCA)
	}
	switch {
	case slices.Contains(users, purpose):
		return "with an external etcd, create it before the cluster"
	case s.begun() || s.bootstrapped():
		return "the cluster runs with the one that was there, and new Machines would not be trusted with another: restore it from a backup"
	}
	return ""
}

// bootstrapped: what Machines are made with has left already, certificates included.
func (s *scope) bootstrapped() bool {
	return slices.ContainsFunc(s.machines, func(m *machine) bool { return m.Spec.Bootstrap.DataSecretName != nil })
}

// found reads a Secret that is not in the cache. If it lacks the label that caching goes by, a user brought it: it gets
// that label, so that it is found by all who need it, and is left alone otherwise.
func (c *Controller) found(ctx context.Context, s *scope, key client.ObjectKey, into *corev1.Secret) error {
	if err := c.Live.Get(ctx, key, into); err != nil {
		return err
	}
	if into.Labels[clusterv1.ClusterNameLabel] == s.cluster.Name {
		return nil
	}
	label := func() { metav1.SetMetaDataLabel(&into.ObjectMeta, clusterv1.ClusterNameLabel, s.cluster.Name) }
	if err := c.Patch(ctx, into, false, label); err != nil {
		return fmt.Errorf("labelling it: %w", refusal.Redacted(err))
	}
	return nil
}

// takeOver makes the control plane the controller of a Secret that was made for the first Machine, before there was a
// control plane object. Secrets without a controller are the user's and stay as they are.
func (c *Controller) takeOver(ctx context.Context, s *scope, secret *corev1.Secret) error {
	current := metav1.GetControllerOf(secret)
	if current == nil || current.Kind != configKind.Kind || groupOf(current.APIVersion) != configKind.Group {
		return nil
	}
	take := func() {
		secret.OwnerReferences = slices.DeleteFunc(secret.OwnerReferences, func(r metav1.OwnerReference) bool { return r.UID == current.UID })
		secret.OwnerReferences = append(secret.OwnerReferences, *s.owner())
	}
	if err := c.Patch(ctx, secret, true, take); err != nil {
		return fmt.Errorf("taking over secret %s: %w", client.ObjectKeyFromObject(secret), refusal.Redacted(err))
	}
	return nil
}
