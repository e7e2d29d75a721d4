package config

import (
	"context"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	bootstrapv1 "sigs.k8s.io/cluster-api/api/bootstrap/v1beta1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta1"
	"sigs.k8s.io/cluster-api/provider/condition"
	"sigs.k8s.io/cluster-api/provider/ownership"
	"sigs.k8s.io/cluster-api/provider/pki"
	"sigs.k8s.io/cluster-api/provider/refusal"
	"sigs.k8s.io/cluster-api/provider/step"
)

// adopt takes data that exists already for the config's.
func (c *Controller) adopt(ctx context.Context, s *scope) (step.Result, error) {
	if s.config.Status.Ready {
		return step.Done(), nil
	}
	if name := s.machine.Spec.Bootstrap.DataSecretName; name != nil {
		markReady(s.config, *name)
		return step.Done(), nil
	}
	err := c.cached.Get(ctx, client.ObjectKeyFromObject(s.config), &corev1.Secret{})
	switch {
	case apierrors.IsNotFound(err):
		return step.Done(), nil
	case err != nil:
		return step.Done(), fmt.Errorf("reading Secret %s: %w", s.config.Name, err)
	}
	return c.occupied(ctx, s)
}

// finish stores the data and says that it is there.
func (c *Controller) finish(ctx context.Context, s *scope, make func() ([]byte, error)) (step.Result, error) {
	data, err := make()
	if err != nil {
		return step.Done(), c.failed(s, err)
	}
	secret := dataSecret(s, data)
	size := 0
	for _, value := range secret.Data {
		size += len(value)
	}
	if size > corev1.MaxSecretSize {
		return step.Done(), c.failed(s, mistake{fmt.Errorf("the data has %d bytes, more than the %d that its Secret can hold: "+
			"put large files into the machine's image, or fetch them in spec.preKubeadmCommands", size, corev1.MaxSecretSize)})
	}
	return c.store(ctx, s, secret)
}

// store creates the Secret, twice if that of a predecessor is in the way.
func (c *Controller) store(ctx context.Context, s *scope, secret *corev1.Secret) (step.Result, error) {
	for range 2 {
		err := c.Client.Create(ctx, secret.DeepCopy())
		if err == nil {
			markReady(s.config, s.config.Name)
			return step.Done(), nil
		}
		if !apierrors.IsAlreadyExists(err) {
			return step.Done(), c.failed(s, fmt.Errorf("creating Secret %s: %w", s.config.Name, refusal.Redacted(err)))
		}
		if result, err := c.occupied(ctx, s); err != nil || result.Ends() || s.config.Status.Ready {
			return result, err
		}
	}
	return inTheWay(s, "somebody else creates it again and again"), nil
}

// dataSecret is the Secret with the data, in the form that infrastructure providers expect.
func dataSecret(s *scope, data []byte) *corev1.Secret {
	return &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: s.config.Namespace, Name: s.config.Name,
			Labels: map[string]string{clusterv1.ClusterNameLabel: s.cluster.Name},
			OwnerReferences: []metav1.OwnerReference{
				ownership.Reference(s.config, bootstrapv1.GroupVersion.WithKind(kubeadmConfigKind), true),
			},
		},
		Type: clusterv1.ClusterSecretType,
		Data: map[string][]byte{pki.KubeconfigKey: data, "format": []byte(bootstrapv1.CloudConfig)},
	}
}

// occupied looks, live, at the Secret that has the name of the data. The config is ready if it made the Secret before an
// interruption. What a config of the same name left behind is deleted: then the name is free, and this is Done. Any other
// Secret is left alone; nothing tells when it is gone, so it is looked for again.
func (c *Controller) occupied(ctx context.Context, s *scope) (step.Result, error) {
	secret := &corev1.Secret{}
	err := c.Live.Get(ctx, client.ObjectKeyFromObject(s.config), secret)
	switch {
	case apierrors.IsNotFound(err):
		return step.Done(), nil
	case err != nil:
		return step.Done(), fmt.Errorf("reading Secret %s: %w", s.config.Name, err)
	case secret.DeletionTimestamp != nil:
		return inTheWay(s, "it is being deleted, but a finalizer keeps it"), nil
	case metav1.IsControlledBy(secret, s.config):
		markReady(s.config, secret.Name)
		return step.Done(), nil
	case leftBehind(secret, s.config):
		return c.clear(ctx, s, secret)
	}
	return inTheWay(s, "it does not belong to this KubeadmConfig; delete it, or give the config another name"), nil
}

// leftBehind: names of Machines come back, and the data of a predecessor may not have been collected yet.
func leftBehind(secret *corev1.Secret, config *bootstrapv1.KubeadmConfig) bool {
	owner := metav1.GetControllerOf(secret)
	return owner != nil && owner.UID != config.UID && owner.Name == config.Name &&
		owner.Kind == kubeadmConfigKind && strings.HasPrefix(owner.APIVersion, bootstrapv1.GroupVersion.Group+"/")
}

// clear deletes what another config of the same name made. Names are unique, so one of the two configs is gone; which
// one, only the API server knows.
func (c *Controller) clear(ctx context.Context, s *scope, secret *corev1.Secret) (step.Result, error) {
	live := &bootstrapv1.KubeadmConfig{}
	err := c.Live.Get(ctx, client.ObjectKeyFromObject(s.config), live)
	if client.IgnoreNotFound(err) != nil {
		return step.Done(), fmt.Errorf("reading KubeadmConfig %s: %w", s.config.Name, err)
	}
	if err != nil || live.UID != s.config.UID {
		return step.Stop(), nil
	}
	err = c.Client.Delete(ctx, secret, client.Preconditions{UID: &secret.UID, ResourceVersion: &secret.ResourceVersion})
	if client.IgnoreNotFound(err) != nil {
		return step.Done(), fmt.Errorf("deleting Secret %s, which belonged to a KubeadmConfig that is gone: %w", secret.Name, err)
	}
	return step.Done(), nil
}

// inTheWay says why the data cannot be stored.
func inTheWay(s *scope, why string) step.Result {
	condition.Set(s.config, condition.False(bootstrapv1.DataSecretAvailableCondition, clusterv1.ConditionSeverityWarning,
		bootstrapv1.DataSecretGenerationFailedReason, "Secret %s/%s is in the way: %s", s.config.Namespace, s.config.Name, why))
	return step.WaitAtMost(backstop, "Secret "+s.config.Name+" to go")
}

func markReady(config *bootstrapv1.KubeadmConfig, secret string) {
	config.Status.DataSecretName = &secret
	config.Status.Ready = true
	condition.Set(config, condition.True(bootstrapv1.CertificatesAvailableCondition))
	condition.Set(config, condition.True(bootstrapv1.DataSecretAvailableCondition))
}
