package workload

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	bootstrapapi "k8s.io/cluster-bootstrap/token/api"
	bootstraputil "k8s.io/cluster-bootstrap/token/util"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"sigs.k8s.io/cluster-api/providers/internal/kubeadm"
	"sigs.k8s.io/cluster-api/sdk/failsafe"
)

// RevokeToken implements connection.Workload. Other machines may join with the token of a user.
func (c *Cluster) RevokeToken(ctx context.Context, id string) (existed bool, err error) {
	token := &corev1.Secret{}
	key := client.ObjectKey{Namespace: metav1.NamespaceSystem, Name: bootstraputil.BootstrapTokenSecretName(id)}
	if err := c.Client.Get(ctx, key, token); err != nil {
		return false, revocation(key, err)
	}
	if string(token.Data[bootstrapapi.BootstrapTokenDescriptionKey]) != kubeadm.TokenDescription {
		return false, nil
	}
	return true, revocation(key, c.Client.Delete(ctx, token, client.Preconditions{UID: &token.UID}))
}

// revocation describes the error of a request for a token, without its content. That a token does not exist is none.
func revocation(key client.ObjectKey, err error) error {
	if client.IgnoreNotFound(err) == nil {
		return nil
	}
	return fmt.Errorf("deleting Secret %s of the workload cluster: %w", key, failsafe.Redacted(err))
}
