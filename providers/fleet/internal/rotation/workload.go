package rotation

import (
	"bytes"
	"context"
	"encoding/pem"
	"errors"
	"fmt"
	"maps"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/util/cert"
	bootstrapapi "k8s.io/cluster-bootstrap/token/api"
	"sigs.k8s.io/controller-runtime/pkg/client"

	fleetv1 "sigs.k8s.io/cluster-api/api/fleet/v1alpha1"
	"sigs.k8s.io/cluster-api/providers/fleet/internal/rotation/authority"
	"sigs.k8s.io/cluster-api/sdk/failsafe"
	"sigs.k8s.io/cluster-api/sdk/pki"
	"sigs.k8s.io/cluster-api/sdk/report"
)

// rootConfigMap is the ConfigMap in each namespace by which Pods recognize the API server. kube-controller-manager writes it.
const rootConfigMap, rootKey = "kube-root-ca.crt", "ca.crt"

// authenticationConfigMap is the ConfigMap by which aggregated API servers recognize clients. API servers add the certificates that they
// have, and never remove one that has not expired.
const authenticationConfigMap = "extension-apiserver-authentication"

// within connects to the workload cluster, and calls do with a limited time.
func (c *Controller) within(ctx context.Context, s *scope, do func(ctx context.Context, w Workload) error) error {
	limited, cancel := context.WithTimeout(ctx, workloadTimeout)
	defer cancel()
	w, err := c.connect(limited, s.clusterKey())
	if err != nil {
		return fmt.Errorf("connecting to Cluster %s: %w", s.rotation.Spec.ClusterName, err)
	}
	defer w.Close()
	if err := do(limited, w); err != nil {
		return fmt.Errorf("in Cluster %s: %w", s.rotation.Spec.ClusterName, err)
	}
	return nil
}

// publish writes the CA certificates by which machines that join recognize the cluster: kubeadm has created the ConfigMap once.
func (c *Controller) publish(ctx context.Context, s *scope, stage authority.Stage, known *learned) error {
	if s.rotates(fleetv1.ClusterCA) {
		certificates := s.changes[fleetv1.ClusterCA].Certificates(stage)
		if err := c.within(ctx, s, func(ctx context.Context, w Workload) error { return publishDiscovery(ctx, w, certificates) }); err != nil {
			return err
		}
	}
	known.published = true
	return nil
}

func publishDiscovery(ctx context.Context, w client.Client, certificates []byte) error {
	config := &corev1.ConfigMap{}
	key := client.ObjectKey{Namespace: metav1.NamespacePublic, Name: bootstrapapi.ConfigMapClusterInfo}
	err := w.Get(ctx, key, config)
	if apierrors.IsNotFound(err) {
		return nil // Machines join with a kubeconfig of the user.
	}
	if err != nil {
		return fmt.Errorf("reading ConfigMap %s: %w", key, err)
	}
	info, err := clientcmd.Load([]byte(config.Data[bootstrapapi.KubeConfigKey]))
	if err != nil {
		return fmt.Errorf("ConfigMap %s has no valid kubeconfig", key)
	}
	changed := false
	for _, cluster := range info.Clusters {
		changed = changed || !bytes.Equal(cluster.CertificateAuthorityData, certificates)
		cluster.CertificateAuthorityData = certificates
	}
	if !changed {
		return nil
	}
	text, err := clientcmd.Write(*info)
	if err != nil {
		return fmt.Errorf("encoding the kubeconfig of ConfigMap %s: %w", key, err)
	}
	// kube-controller-manager signs the new content with the bootstrap tokens.
	before := config.DeepCopy()
	config.Data[bootstrapapi.KubeConfigKey] = string(text)
	if err := w.Patch(ctx, config, client.MergeFrom(before)); err != nil {
		return fmt.Errorf("changing ConfigMap %s: %w", key, err)
	}
	return nil
}

// kubeconfigFollows reports whether the Secret with the kubeconfig has what a step demands.
func (c *Controller) kubeconfigFollows(ctx context.Context, s *scope, name string) (bool, error) {
	change, rotates := s.changes[fleetv1.ClusterCA]
	if !rotates {
		return true, nil
	}
	secret, err := c.secret(ctx, pki.SecretKey(s.clusterKey(), pki.Kubeconfig))
	if err != nil || secret == nil {
		return false, err
	}
	config, err := pki.LoadKubeconfig(secret.Data[pki.KubeconfigKey])
	if err != nil {
		return false, fmt.Errorf("Secret %s: %w", secret.Name, err)
	}
	in := config.Contexts[config.CurrentContext]
	if in == nil || config.Clusters[in.Cluster] == nil {
		return false, fmt.Errorf("Secret %s: the kubeconfig has no current context with a cluster", secret.Name)
	}
	trusts := config.Clusters[in.Cluster].CertificateAuthorityData
	if !contains(trusts, change.New.Certificate) {
		return false, nil
	}
	if name != fleetv1.DropOldStep && !contains(trusts, change.Old) {
		return false, nil
	}
	signer := change.New.Certificate
	if name == fleetv1.TrustBothStep {
		signer = change.Old
	}
	user := config.AuthInfos[in.AuthInfo]
	if user == nil || len(user.ClientCertificateData) == 0 {
		return true, nil // It authenticates in another way.
	}
	return issuedBy(user.ClientCertificateData, signer), nil
}

// issuedBy reports whether a certificate was issued by a CA.
func issuedBy(certificate, ca []byte) bool {
	chain, err := cert.ParseCertsPEM(certificate)
	if err != nil {
		return false
	}
	by, err := cert.ParseCertsPEM(ca)
	return err == nil && chain[0].CheckSignatureFrom(by[0]) == nil
}

// contains reports whether the first PEM block of one is in a text.
func contains(text, one []byte) bool {
	want, _ := pem.Decode(one)
	for block, rest := pem.Decode(text); block != nil && want != nil; block, rest = pem.Decode(rest) {
		if bytes.Equal(block.Bytes, want.Bytes) {
			return true
		}
	}
	return false
}

// errNotSettled is matched by the error if something in the cluster has to happen first.
var errNotSettled = errors.New("waiting")

// settle does in the cluster what needs a complete control plane, and reports whether all of it is done.
func (c *Controller) settle(ctx context.Context, s *scope, name string, known *learned) error {
	err := c.within(ctx, s, func(ctx context.Context, w Workload) error {
		if change, rotates := s.changes[fleetv1.ClusterCA]; rotates {
			if err := rootPublished(ctx, w, change.Certificates(authority.Of(name))); err != nil {
				return err
			}
		}
		if change, rotates := s.changes[fleetv1.ServiceAccountKey]; rotates && name == fleetv1.ReissueStep {
			if err := reissueTokens(ctx, w, change.New.Certificate); err != nil {
				return err
			}
		}
		if name == fleetv1.DropOldStep {
			return forget(ctx, w, s.changes)
		}
		return nil
	})
	if errors.Is(err, errNotSettled) {
		known.unsettled = err.Error()
		return nil
	}
	known.settled = err == nil
	return err
}

// rootPublished checks that new Pods get the certificates of a step: workers are replaced afterwards.
func rootPublished(ctx context.Context, w client.Client, certificates []byte) error {
	root := &corev1.ConfigMap{}
	err := w.Get(ctx, client.ObjectKey{Namespace: metav1.NamespaceSystem, Name: rootConfigMap}, root)
	if apierrors.IsNotFound(err) {
		return nil // The controller that writes it is disabled.
	}
	if err != nil {
		return fmt.Errorf("reading ConfigMap %s: %w", rootConfigMap, err)
	}
	if !authority.Same([]byte(root.Data[rootKey]), certificates) {
		return fmt.Errorf("%w for kube-controller-manager to write the certificates into ConfigMap %s", errNotSettled, rootConfigMap)
	}
	return nil
}

// reissueTokens removes the tokens of ServiceAccounts in Secrets that another key has signed: kube-controller-manager signs new ones.
func reissueTokens(ctx context.Context, w client.Client, publicKey []byte) error {
	secrets := &corev1.SecretList{}
	if err := w.List(ctx, secrets, client.MatchingFields{"type": string(corev1.SecretTypeServiceAccountToken)}); err != nil {
		return fmt.Errorf("listing Secrets with tokens: %w", err)
	}
	pending := 0
	for i := range secrets.Items {
		secret := &secrets.Items[i]
		token := secret.Data[corev1.ServiceAccountTokenKey]
		if secret.Type != corev1.SecretTypeServiceAccountToken || authority.SignedBy(string(token), publicKey) {
			continue
		}
		pending++
		if len(token) == 0 {
			continue
		}
		before := secret.DeepCopy()
		delete(secret.Data, corev1.ServiceAccountTokenKey)
		patch := client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})
		if err := w.Patch(ctx, secret, patch); client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("removing the token from Secret %s/%s: %w", secret.Namespace, secret.Name, failsafe.Redacted(err))
		}
	}
	if pending > 0 {
		return fmt.Errorf("%w for kube-controller-manager to sign the tokens of %s again", errNotSettled, report.Count(pending, "Secret"))
	}
	return nil
}

// forget removes the old certificates from what aggregated API servers trust.
func forget(ctx context.Context, w client.Client, changes map[fleetv1.Authority]authority.Change) error {
	config := &corev1.ConfigMap{}
	err := w.Get(ctx, client.ObjectKey{Namespace: metav1.NamespaceSystem, Name: authenticationConfigMap}, config)
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("reading ConfigMap %s: %w", authenticationConfigMap, err)
	}
	before := config.DeepCopy()
	for key, a := range map[string]fleetv1.Authority{
		"client-ca-file": fleetv1.ClusterCA, "requestheader-client-ca-file": fleetv1.FrontProxyCA,
	} {
		if change, rotates := changes[a]; rotates && contains([]byte(config.Data[key]), change.Old) {
			config.Data[key] = without(config.Data[key], change.Old)
		}
	}
	if maps.Equal(before.Data, config.Data) {
		return nil
	}
	if err := w.Patch(ctx, config, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})); err != nil {
		return fmt.Errorf("removing old certificates from ConfigMap %s: %w", authenticationConfigMap, err)
	}
	return nil
}

// without returns the PEM blocks of a text except one.
func without(text string, one []byte) string {
	drop, _ := pem.Decode(one)
	var kept []byte
	for block, rest := pem.Decode([]byte(text)); block != nil; block, rest = pem.Decode(rest) {
		if drop == nil || !bytes.Equal(block.Bytes, drop.Bytes) {
			kept = append(kept, pem.EncodeToMemory(block)...)
		}
	}
	return string(kept)
}
