package config

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	bootstrapv1 "sigs.k8s.io/cluster-api/api/bootstrap/v1beta1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta1"
	"sigs.k8s.io/cluster-api/bootstrap/kubeadm/internal/cloudinit"
	"sigs.k8s.io/cluster-api/internal/condition"
	"sigs.k8s.io/cluster-api/internal/ownership"
	"sigs.k8s.io/cluster-api/internal/pki"
	"sigs.k8s.io/cluster-api/internal/step"
)

// finish stores the data and says that it is there.
func (c *Controller) finish(ctx context.Context, s *scope, make func() ([]byte, error)) error {
	if s.config.Spec.Format == bootstrapv1.Ignition {
		return c.failed(s, step.Terminal(fmt.Errorf("spec.format %q cannot be rendered: use %q", bootstrapv1.Ignition, bootstrapv1.CloudConfig)))
	}
	data, err := make()
	if err != nil {
		return c.failed(s, err)
	}
	secret := &corev1.Secret{
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
	err = c.Client.Create(ctx, secret)
	if apierrors.IsAlreadyExists(err) {
		err = c.inTheWay(ctx, s)
	}
	if step.IsStale(err) {
		return err
	}
	if err != nil {
		return c.failed(s, fmt.Errorf("creating Secret %s: %w", secret.Name, err))
	}
	markReady(s.config, secret.Name)
	return nil
}

// inTheWay tells a Secret that we made before an interruption from one that somebody else made.
func (c *Controller) inTheWay(ctx context.Context, s *scope) error {
	secret := &corev1.Secret{}
	if err := c.Live.Get(ctx, client.ObjectKeyFromObject(s.config), secret); err != nil {
		return err
	}
	if metav1.IsControlledBy(secret, s.config) {
		return nil
	}
	if leftBehind(secret, s.config) {
		if err := c.clear(ctx, secret); err != nil {
			return err
		}
		return apierrors.NewAlreadyExists(corev1.Resource("secrets"), secret.Name) // Not any more, the next time.
	}
	return step.Terminal(fmt.Errorf("it exists and does not belong to KubeadmConfig %s: delete it, or give the config another name", s.config.Name))
}

func (c *Controller) failed(s *scope, err error) error {
	condition.Set(s.config, condition.False(bootstrapv1.DataSecretAvailableCondition, clusterv1.ConditionSeverityWarning,
		bootstrapv1.DataSecretGenerationFailedReason, "%v", err))
	return err
}

// input is what init and join data have in common.
func (c *Controller) input(ctx context.Context, s *scope, certificates []bootstrapv1.File, kubeadm string) (cloudinit.Input, error) {
	spec := s.config.Spec.DeepCopy()
	files := certificates
	for i, f := range spec.Files {
		if f.ContentFrom != nil {
			content, err := c.value(ctx, s, f.ContentFrom.Secret.Name, f.ContentFrom.Secret.Key)
			if err != nil {
				return cloudinit.Input{}, fmt.Errorf("spec.files[%d].contentFrom: %w", i, err)
			}
			f.Content = content
		}
		files = append(files, f)
	}
	for i := range spec.Users {
		if from := spec.Users[i].PasswdFrom; from != nil {
			passwd, err := c.value(ctx, s, from.Secret.Name, from.Secret.Key)
			if err != nil {
				return cloudinit.Input{}, fmt.Errorf("spec.users[%d].passwdFrom: %w", i, err)
			}
			spec.Users[i].Passwd = ptr.To(passwd)
		}
	}
	return cloudinit.Input{
		Files: files, PreCommands: spec.PreKubeadmCommands, PostCommands: spec.PostKubeadmCommands, Users: spec.Users,
		NTP: spec.NTP, DiskSetup: spec.DiskSetup, Mounts: spec.Mounts, Verbosity: spec.Verbosity, Kubeadm: kubeadm,
	}, nil
}

// value reads a key of a user's Secret, which is not cached.
func (c *Controller) value(ctx context.Context, s *scope, name, key string) (string, error) {
	secret := &corev1.Secret{}
	if err := c.Live.Get(ctx, client.ObjectKey{Namespace: s.config.Namespace, Name: name}, secret); err != nil {
		return "", fmt.Errorf("reading Secret %s: %w", name, err)
	}
	value, ok := secret.Data[key]
	if !ok {
		return "", fmt.Errorf("Secret %s has no key %q", name, key)
	}
	return string(value), nil
}

// secret reads a Secret of the cluster; nil when there is none. Users' own may lack the label by which
// Secrets are cached, so what the cache does not have is asked for live.
func (c *Controller) secret(ctx context.Context, key client.ObjectKey) (*corev1.Secret, error) {
	secret := &corev1.Secret{}
	err := c.cached.Get(ctx, key, secret)
	if apierrors.IsNotFound(err) {
		err = c.Live.Get(ctx, key, secret)
	}
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading Secret %s: %w", key, err)
	}
	return secret, nil
}

// certificates are the files of a control plane machine's certificates. Those of a cluster without control
// plane object are made when its first machine is initialized.
func (c *Controller) certificates(ctx context.Context, s *scope, externalEtcd, create bool) ([]bootstrapv1.File, error) {
	var files []bootstrapv1.File
	for _, purpose := range purposes(externalEtcd) {
		pair, err := c.pair(ctx, s, purpose, create && s.cluster.Spec.ControlPlaneRef == nil && !(externalEtcd && purpose == pki.EtcdCA))
		if err != nil {
			reason, severity := bootstrapv1.CertificatesCorruptedReason, clusterv1.ConditionSeverityError
			if create {
				reason, severity = bootstrapv1.CertificatesGenerationFailedReason, clusterv1.ConditionSeverityWarning
			}
			condition.Set(s.config, condition.False(bootstrapv1.CertificatesAvailableCondition, severity, reason, "%v", err))
			return nil, err
		}
		if externalEtcd && purpose == pki.EtcdCA {
			pair.Key = nil // who may issue certificates for somebody else's etcd is not ours to spread
		}
		files = append(files, filesOf(purpose, pair)...)
	}
	condition.Set(s.config, condition.True(bootstrapv1.CertificatesAvailableCondition))
	return files, nil
}

func (c *Controller) pair(ctx context.Context, s *scope, purpose pki.Purpose, create bool) (pki.Pair, error) {
	key := pki.SecretKey(s.key(), purpose)
	secret, err := c.secret(ctx, key)
	if err != nil {
		return pki.Pair{}, err
	}
	if secret != nil {
		return pki.PairFrom(secret)
	}
	if !create || purpose == pki.APIServerEtcdClient {
		return pki.Pair{}, fmt.Errorf("Secret %s does not exist: the control plane provider, or you for certificates of your own, must create it", key)
	}
	pair, err := c.keys.Generate(purpose, c.Clock.Now(), s.cluster)
	if err != nil {
		return pki.Pair{}, err
	}
	owner := ownership.Reference(s.config, bootstrapv1.GroupVersion.WithKind(kubeadmConfigKind), true)
	return pair, c.Client.Create(ctx, pki.NewSecret(s.key(), purpose, pair.Data(), &owner))
}

// paths are where kubeadm looks for certificates and keys.
var paths = map[pki.Purpose][2]string{ //nolint:gochecknoglobals // a constant table
	pki.ClusterCA:           {"/etc/kubernetes/pki/ca.crt", "/etc/kubernetes/pki/ca.key"},
	pki.EtcdCA:              {"/etc/kubernetes/pki/etcd/ca.crt", "/etc/kubernetes/pki/etcd/ca.key"},
	pki.FrontProxyCA:        {"/etc/kubernetes/pki/front-proxy-ca.crt", "/etc/kubernetes/pki/front-proxy-ca.key"},
	pki.ServiceAccount:      {"/etc/kubernetes/pki/sa.pub", "/etc/kubernetes/pki/sa.key"},
	pki.APIServerEtcdClient: {"/etc/kubernetes/pki/apiserver-etcd-client.crt", "/etc/kubernetes/pki/apiserver-etcd-client.key"},
}

// filesOf are the files of a pair. An authority without key, brought by the user, gives one file.
func filesOf(purpose pki.Purpose, pair pki.Pair) []bootstrapv1.File {
	files := []bootstrapv1.File{{Path: paths[purpose][0], Owner: "root:root", Permissions: "0640", Content: string(pair.Certificate)}}
	if len(pair.Key) > 0 {
		files = append(files, bootstrapv1.File{Path: paths[purpose][1], Owner: "root:root", Permissions: "0600", Content: string(pair.Key)})
	}
	return files
}
