package credentials

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	controlplanev1 "sigs.k8s.io/cluster-api/api/controlplane/v1beta2"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/providers/control-plane-kubeadm/internal/snapshot"
	"sigs.k8s.io/cluster-api/providers/internal/kubeadm"
	"sigs.k8s.io/cluster-api/sdk/failsafe"
	"sigs.k8s.io/cluster-api/sdk/pki"
	"sigs.k8s.io/cluster-api/sdk/step"
)

// Provider creates and renews the Secrets.
type Provider struct {
	step.Clients
	// Secrets reads Secrets of clusters from the cache: a SecretReader.
	Secrets client.Reader
	// Keys generates keys. Defaults to keys of the default algorithm.
	Keys *pki.Keys

	// verified holds the versions of kubeconfig and cluster CA that match, by the UID of the control plane. Losing them costs
	// only CPU time.
	verified sync.Map
	expiries expiries
}

// Certificates creates the Secrets of the CAs and the service account key. Existing ones are not changed. With an external
// etcd, users must provide its Secrets. Nothing is generated for a cluster that is running.
//
// newCA reports whether it has created the Secret of the cluster CA. That proves that the cluster has not been initialized: the
// name of the Secret derives from that of the Cluster, it is moved with the Cluster, and without it no Machine gets bootstrap
// data.
func (p *Provider) Certificates(ctx context.Context, cp *snapshot.ControlPlane) (newCA bool, _ step.Result, _ error) {
	for _, purpose := range pki.OfControlPlane(!cp.StackedEtcd()) {
		created, err := p.certificate(ctx, cp, purpose)
		if err != nil {
			return newCA, step.Done(), &step.Error{
				Reason: controlplanev1.CertificatesGenerationFailedV1Beta1Reason, Severity: clusterv1.ConditionSeverityWarning, Err: err,
			}
		}
		newCA = newCA || created && purpose == pki.ClusterCA
	}
	return newCA, step.Done(), nil
}

// certificate makes sure that a Secret exists and is valid.
func (p *Provider) certificate(ctx context.Context, cp *snapshot.ControlPlane, purpose pki.Purpose) (created bool, err error) {
	key := pki.SecretKey(cp.Key(), purpose)
	secret := &corev1.Secret{}
	err = p.Secrets.Get(ctx, key, secret)
	if apierrors.IsNotFound(err) {
		created, err = p.newCertificate(ctx, cp, purpose, secret)
	}
	if err != nil {
		return false, fmt.Errorf("secret %s: %w", key, err)
	}
	pair, err := pki.PairFrom(secret)
	if err != nil {
		return created, err
	}
	needsKey := cp.StackedEtcd() || purpose != pki.EtcdCA // Nothing is signed with the CA of an external etcd.
	if len(pair.Key) == 0 && needsKey {
		return created, fmt.Errorf("secret %s has no data under key %q", key, pki.PrivateKeyKey)
	}
	p.expiries.note(cp, purpose, secret)
	return created, p.takeOver(ctx, cp, secret)
}

// newCertificate creates a Secret, unless it exists in the API server.
func (p *Provider) newCertificate(
	ctx context.Context, cp *snapshot.ControlPlane, purpose pki.Purpose, into *corev1.Secret,
) (created bool, err error) {
	key := pki.SecretKey(cp.Key(), purpose)
	if why := irreplaceable(cp, purpose); why != "" {
		err := p.adoptExisting(ctx, cp, key, into)
		if apierrors.IsNotFound(err) {
			return false, errors.New("it does not exist: " + why)
		}
		return false, err
	}
	config, now := &cp.KCP.Spec.KubeadmConfigSpec.ClusterConfiguration, p.Clock.Now()
	pair, err := p.Keys.GenerateUntil(purpose, now, kubeadm.CAExpiry(config, now), kubeadm.KeyAlgorithm(config), cp.KCP, cp.Cluster)
	if err != nil {
		return false, fmt.Errorf("generating keys: %w", err)
	}
	secret := pki.NewSecret(cp.Key(), purpose, pair.Data(), cp.Owner())
	err = p.CreateIn(ctx, p.Secrets, secret)
	if apierrors.IsAlreadyExists(err) {
		return false, p.adoptExisting(ctx, cp, key, into)
	}
	if err != nil {
		return false, fmt.Errorf("creating it: %w", failsafe.Redacted(err))
	}
	secret.DeepCopyInto(into)
	return true, nil
}

// irreplaceable returns why a Secret cannot be generated, and what to do. It is empty if it can.
func irreplaceable(cp *snapshot.ControlPlane, purpose pki.Purpose) string {
	users := []pki.Purpose{pki.APIServerEtcdClient}
	if !cp.StackedEtcd() {
		users = append(users, pki.EtcdCA)
	}
	switch {
	case slices.Contains(users, purpose):
		return "create it before the cluster if etcd is external"
	case cp.Initialized() || bootstrapped(cp):
		return "the running cluster would not trust a new one, restore it from a backup"
	}
	return ""
}

// bootstrapped reports whether a Machine has bootstrap data, which contains the certificates.
func bootstrapped(cp *snapshot.ControlPlane) bool {
	return slices.ContainsFunc(cp.Machines, func(m *snapshot.Machine) bool { return ptr.Deref(m.Spec.Bootstrap.DataSecretName, "") != "" })
}

// adoptExisting reads a Secret that is not in the cache. If it lacks the label that the cache selects by, a user has created
// it: it gets the label, and nothing else of it changes.
func (p *Provider) adoptExisting(ctx context.Context, cp *snapshot.ControlPlane, key client.ObjectKey, into *corev1.Secret) error {
	if err := p.Live.Get(ctx, key, into); err != nil {
		return err
	}
	if into.Labels[clusterv1.ClusterNameLabel] == cp.Cluster.Name {
		return nil
	}
	label := func() { metav1.SetMetaDataLabel(&into.ObjectMeta, clusterv1.ClusterNameLabel, cp.Cluster.Name) }
	if err := p.Patch(ctx, into, label); err != nil {
		return fmt.Errorf("labeling it: %w", failsafe.Redacted(err))
	}
	return nil
}

// takeOver makes the control plane the controller of a Secret that is controlled by the KubeadmConfig of the first Machine,
// which was created without a KubeadmControlPlane, or that was generated and has lost its owner. Other Secrets without a controller are not
// changed: users have created them.
func (p *Provider) takeOver(ctx context.Context, cp *snapshot.ControlPlane, secret *corev1.Secret) error {
	if pki.Orphaned(secret, cp.Cluster.Name) {
		return p.own(ctx, cp, secret)
	}
	current := metav1.GetControllerOf(secret)
	if current == nil || schema.FromAPIVersionAndKind(current.APIVersion, current.Kind).GroupKind() != snapshot.ConfigKind().GroupKind() {
		return nil
	}
	take := func() {
		secret.OwnerReferences = slices.DeleteFunc(secret.OwnerReferences, func(r metav1.OwnerReference) bool { return r.UID == current.UID })
		secret.OwnerReferences = append(secret.OwnerReferences, *cp.Owner())
	}
	if err := p.Patch(ctx, secret, take, step.IfUnchanged); err != nil {
		return fmt.Errorf("taking over secret %s: %w", client.ObjectKeyFromObject(secret), failsafe.Redacted(err))
	}
	return nil
}

// own makes the control plane the controller of a Secret without owners.
func (p *Provider) own(ctx context.Context, cp *snapshot.ControlPlane, secret *corev1.Secret) error {
	own := func() { secret.OwnerReferences = []metav1.OwnerReference{*cp.Owner()} }
	if err := p.Patch(ctx, secret, own, step.IfUnchanged); err != nil {
		return fmt.Errorf("owning secret %s: %w", client.ObjectKeyFromObject(secret), failsafe.Redacted(err))
	}
	return nil
}
