package cluster

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/sdk/failsafe"
	"sigs.k8s.io/cluster-api/sdk/ownership"
	"sigs.k8s.io/cluster-api/sdk/pki"
	"sigs.k8s.io/cluster-api/sdk/step"
)

// caBackstop bounds the wait for a CA Secret: one without the cluster name label triggers no reconcile.
const caBackstop = 30 * time.Second

// kubeconfig creates the kubeconfig Secret of a Cluster without control plane object, signed by the cluster CA. One that was generated and
// has lost its owner gets it again.
func (c *Controller) kubeconfig(ctx context.Context, s *scope) (step.Result, error) {
	cluster := s.Cluster
	if cluster.Spec.ControlPlaneRef.IsDefined() || !cluster.Spec.ControlPlaneEndpoint.IsValid() {
		return step.Done(), nil
	}
	key := client.ObjectKeyFromObject(cluster)
	owner := ownership.Reference(cluster, clusterv1.GroupVersion.WithKind(clusterv1.ClusterKind), false)
	existing := &corev1.Secret{}
	switch err := c.Client.Get(ctx, pki.SecretKey(key, pki.Kubeconfig), existing); {
	case err == nil && pki.Orphaned(existing, cluster.Name):
		own := func() { existing.OwnerReferences = []metav1.OwnerReference{owner} }
		if err := c.Patch(ctx, existing, own, step.IfUnchanged); err != nil {
			return step.Done(), fmt.Errorf("owning Secret %s: %w", existing.Name, failsafe.Redacted(err))
		}
		return step.Done(), nil
	case err == nil:
		return step.Done(), nil
	case !apierrors.IsNotFound(err):
		return step.Done(), fmt.Errorf("reading Secret %s: %w", pki.SecretName(cluster.Name, pki.Kubeconfig), err)
	}
	ca := &corev1.Secret{}
	if err := c.Client.Get(ctx, pki.SecretKey(key, pki.ClusterCA), ca); err != nil {
		if apierrors.IsNotFound(err) {
			return step.WaitAtMost(caBackstop, "Secret "+pki.SecretName(cluster.Name, pki.ClusterCA)+" to exist"), nil
		}
		return step.Done(), fmt.Errorf("reading the cluster CA: %w", err)
	}
	issuer, err := pki.CAFrom(ca)
	if err != nil {
		return step.Done(), err
	}
	config, err := pki.NewKubeconfig(cluster.Name, "https://"+cluster.Spec.ControlPlaneEndpoint.String(), issuer, c.Clock.Now())
	if err != nil {
		return step.Done(), fmt.Errorf("generating the kubeconfig: %w", err)
	}
	secret := pki.NewSecret(key, pki.Kubeconfig, map[string][]byte{pki.KubeconfigKey: config}, &owner)
	if err := c.CreateIn(ctx, nil, secret); err != nil {
		return step.Done(), fmt.Errorf("creating Secret %s: %w", secret.Name, failsafe.Redacted(err))
	}
	return step.Done(), nil
}
