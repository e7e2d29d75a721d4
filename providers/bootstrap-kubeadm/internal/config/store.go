package config

import (
	"cmp"
	"context"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	bootstrapv1 "sigs.k8s.io/cluster-api/api/bootstrap/v1beta2"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/sdk/condition"
	"sigs.k8s.io/cluster-api/sdk/failsafe"
	"sigs.k8s.io/cluster-api/sdk/ownership"
	"sigs.k8s.io/cluster-api/sdk/pki"
	"sigs.k8s.io/cluster-api/sdk/step"
)

// finish stores the data and sets the status.
func (c *Controller) finish(ctx context.Context, s *scope, generate func() ([]byte, error)) (step.Result, error) {
	data, err := generate()
	if err != nil {
		return step.Done(), c.failed(s, err)
	}
	secret := dataSecret(s, data)
	annotate(s, secret)
	size := 0
	for _, value := range secret.Data {
		size += len(value)
	}
	if size > corev1.MaxSecretSize {
		return step.Done(), c.failed(s, mistake{fmt.Errorf("the data has %d bytes, and the maximum size of its Secret is %d: "+
			"put large files into the machine's image, or fetch them in spec.preKubeadmCommands", size, corev1.MaxSecretSize)})
	}
	return c.store(ctx, s, secret)
}

// store creates the Secret, and retries after deleting that of a previous config.
func (c *Controller) store(ctx context.Context, s *scope, secret *corev1.Secret) (step.Result, error) {
	for range 2 {
		err := c.CreateIn(ctx, nil, secret.DeepCopy())
		if err == nil {
			markReady(s.config, secret.Name)
			return step.Done(), nil
		}
		if !apierrors.IsAlreadyExists(err) {
			return step.Done(), c.failed(s, fmt.Errorf("creating Secret %s: %w", secret.Name, failsafe.Redacted(err)))
		}
		if result, err := c.occupied(ctx, s); err != nil || result.Ends() || s.ready() {
			return result, err
		}
	}
	return nameTaken(s, secret.Name, "another client keeps creating it"), nil
}

// dataSecret returns the Secret with the data, in the format that infrastructure providers expect.
func dataSecret(s *scope, data []byte) *corev1.Secret {
	return &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: s.config.Namespace, Name: s.secretName(),
			Labels: map[string]string{clusterv1.ClusterNameLabel: s.cluster.Name},
			OwnerReferences: []metav1.OwnerReference{
				ownership.Reference(s.config, bootstrapv1.GroupVersion.WithKind(kubeadmConfigKind), true),
			},
		},
		Type: clusterv1.ClusterSecretType,
		Data: map[string][]byte{pki.KubeconfigKey: data, "format": []byte(cmp.Or(s.config.Spec.Format, bootstrapv1.CloudConfig))},
	}
}

// occupied reads the Secret with the name of the data, live. The config is ready if it created the Secret before an
// interruption. That of a previous config of the same name is deleted, and the result is Done. Any other
// Secret is kept; its deletion is not an event, so the config is reconciled again after a while.
func (c *Controller) occupied(ctx context.Context, s *scope) (step.Result, error) {
	secret := &corev1.Secret{}
	err := c.Live.Get(ctx, s.secretKey(), secret)
	switch {
	case apierrors.IsNotFound(err):
		return step.Done(), nil
	case err != nil:
		return step.Done(), fmt.Errorf("reading Secret %s: %w", s.secretName(), err)
	case secret.DeletionTimestamp != nil:
		return nameTaken(s, s.secretName(), "it is being deleted, but has a finalizer"), nil
	case metav1.IsControlledBy(secret, s.config):
		markReady(s.config, secret.Name)
		return step.Done(), nil
	case leftBehind(secret, s.config):
		return c.clear(ctx, s, secret)
	}
	return nameTaken(s, s.secretName(), "it does not belong to this KubeadmConfig; delete it, or use another name for the config"), nil
}

// leftBehind reports whether a Secret belongs to a previous config of the same name, which the garbage collector has not
// deleted yet.
func leftBehind(secret *corev1.Secret, config *bootstrapv1.KubeadmConfig) bool {
	owner := metav1.GetControllerOf(secret)
	return owner != nil && owner.UID != config.UID && owner.Name == config.Name &&
		owner.Kind == kubeadmConfigKind && strings.HasPrefix(owner.APIVersion, bootstrapv1.GroupVersion.Group+"/")
}

// clear deletes the Secret of another config of the same name. One of the two configs no longer exists; which
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
	if err := c.Delete(ctx, secret); err != nil {
		return step.Done(), fmt.Errorf("deleting Secret %s of a deleted KubeadmConfig: %w", secret.Name, err)
	}
	return step.Done(), nil
}

// nameTaken sets the condition for data that cannot be stored.
func nameTaken(s *scope, name, why string) step.Result {
	condition.Set(s.config, condition.False(bootstrapv1.DataSecretAvailableV1Beta1Condition, clusterv1.ConditionSeverityWarning,
		bootstrapv1.DataSecretGenerationFailedV1Beta1Reason, "Secret %s/%s already exists: %s", s.config.Namespace, name, why))
	return step.WaitAtMost(backstop, "Secret "+name+" to be deleted")
}

func markReady(config *bootstrapv1.KubeadmConfig, secret string) {
	config.Status.DataSecretName = secret
	config.Status.Initialization.DataSecretCreated = ptr.To(true)
	condition.Set(config, condition.True(bootstrapv1.CertificatesAvailableV1Beta1Condition))
	condition.Set(config, condition.True(bootstrapv1.DataSecretAvailableV1Beta1Condition))
}
