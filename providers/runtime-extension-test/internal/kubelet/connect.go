package kubelet

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"sigs.k8s.io/cluster-api/sdk/pki"
)

// requestTimeout is shorter than callers of hooks wait.
const requestTimeout = 5 * time.Second

// Connector connects to workload clusters with their kubeconfigs. Reader must not be a cache, which would read all Secrets.
type Connector struct{ Reader client.Reader }

// Connect returns a client for the workload cluster of a Cluster. Only credentials in the kubeconfig itself are used: it must not make this
// process run programs, or read its files.
func (c *Connector) Connect(ctx context.Context, cluster client.ObjectKey) (kubernetes.Interface, error) {
	key := pki.SecretKey(cluster, pki.Kubeconfig)
	secret := &corev1.Secret{}
	if err := c.Reader.Get(ctx, key, secret); err != nil {
		return nil, fmt.Errorf("cannot read kubeconfig Secret %s: %w", key, err)
	}
	all, err := pki.LoadKubeconfig(secret.Data[pki.KubeconfigKey])
	if err != nil {
		return nil, fmt.Errorf("invalid kubeconfig in Secret %s: %w", key, err)
	}
	current := all.Contexts[all.CurrentContext]
	if current == nil || all.Clusters[current.Cluster] == nil || all.AuthInfos[current.AuthInfo] == nil {
		return nil, fmt.Errorf("invalid kubeconfig in Secret %s: its current context requires a cluster and a user", key)
	}
	server, user := all.Clusters[current.Cluster], all.AuthInfos[current.AuthInfo]
	return kubernetes.NewForConfig(&rest.Config{
		Host: server.Server, Timeout: requestTimeout, BearerToken: user.Token,
		TLSClientConfig: rest.TLSClientConfig{
			ServerName: server.TLSServerName, CAData: server.CertificateAuthorityData,
			CertData: user.ClientCertificateData, KeyData: user.ClientKeyData,
		},
	})
}
