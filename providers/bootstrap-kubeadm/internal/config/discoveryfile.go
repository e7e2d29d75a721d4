package config

import (
	"context"
	"errors"
	"fmt"

	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"k8s.io/utils/ptr"

	bootstrapv1 "sigs.k8s.io/cluster-api/api/bootstrap/v1beta2"
	"sigs.k8s.io/cluster-api/providers/internal/kubeadm"
	"sigs.k8s.io/cluster-api/sdk/pki"
	"sigs.k8s.io/cluster-api/sdk/remote"
)

// discoveryFile returns the kubeconfig that the config describes for discovery, none if the machine has it already. The field is
// removed from join: kubeadm does not know it.
func (c *Controller) discoveryFile(ctx context.Context, s *scope, join *bootstrapv1.JoinConfiguration) ([]bootstrapv1.File, error) {
	if !kubeadm.Defined(join.Discovery.File.KubeConfig) {
		return nil, nil
	}
	described := join.Discovery.File.KubeConfig
	join.Discovery.File.KubeConfig = bootstrapv1.FileDiscoveryKubeConfig{}
	user, err := kubeconfigUser(&described.User)
	if err != nil {
		return nil, mistake{fmt.Errorf("spec.joinConfiguration.discovery.file.kubeConfig.user: %w", err)}
	}
	cluster, err := c.kubeconfigCluster(ctx, s, &described.Cluster)
	if err != nil {
		return nil, err
	}
	const name = "default"
	config := clientcmdapi.Config{
		Clusters:       map[string]*clientcmdapi.Cluster{name: cluster},
		AuthInfos:      map[string]*clientcmdapi.AuthInfo{name: user},
		Contexts:       map[string]*clientcmdapi.Context{name: {Cluster: name, AuthInfo: name}},
		CurrentContext: name,
	}
	content, err := clientcmd.Write(config)
	if err != nil {
		return nil, mistake{errors.New("spec.joinConfiguration.discovery.file.kubeConfig cannot be encoded")}
	}
	path := join.Discovery.File.KubeConfigPath
	return []bootstrapv1.File{{Path: path, Owner: "root:root", Permissions: "0640", Content: string(content)}}, nil
}

func kubeconfigUser(u *bootstrapv1.KubeConfigUser) (*clientcmdapi.AuthInfo, error) {
	if kubeadm.Defined(u.AuthProvider) == kubeadm.Defined(u.Exec) {
		return nil, errors.New("set exactly one of authProvider and exec")
	}
	if p := u.AuthProvider; kubeadm.Defined(p) {
		return &clientcmdapi.AuthInfo{AuthProvider: &clientcmdapi.AuthProviderConfig{Name: p.Name, Config: p.Config}}, nil
	}
	exec := &clientcmdapi.ExecConfig{
		APIVersion: u.Exec.APIVersion, Command: u.Exec.Command, Args: u.Exec.Args,
		ProvideClusterInfo: ptr.Deref(u.Exec.ProvideClusterInfo, false), InteractiveMode: clientcmdapi.NeverExecInteractiveMode,
	}
	if exec.APIVersion == "" {
		exec.APIVersion = "client.authentication.k8s.io/v1"
	}
	for _, env := range u.Exec.Env {
		exec.Env = append(exec.Env, clientcmdapi.ExecEnvVar{Name: env.Name, Value: env.Value})
	}
	return &clientcmdapi.AuthInfo{Exec: exec}, nil
}

// kubeconfigCluster fills in the endpoint and the CA of the cluster.
func (c *Controller) kubeconfigCluster(
	ctx context.Context, s *scope, described *bootstrapv1.KubeConfigCluster,
) (*clientcmdapi.Cluster, error) {
	out := &clientcmdapi.Cluster{
		Server: described.Server, TLSServerName: described.TLSServerName,
		InsecureSkipTLSVerify:    ptr.Deref(described.InsecureSkipTLSVerify, false),
		CertificateAuthorityData: described.CertificateAuthorityData, ProxyURL: described.ProxyURL,
	}
	if out.Server == "" {
		endpoint := s.cluster.Spec.ControlPlaneEndpoint
		if !endpoint.IsValid() {
			return nil, fmt.Errorf("%w: Cluster %s has no valid spec.controlPlaneEndpoint yet", remote.ErrNotConnected, s.cluster.Name)
		}
		out.Server = "https://" + endpoint.String()
	}
	if len(out.CertificateAuthorityData) > 0 || out.InsecureSkipTLSVerify {
		return out, nil
	}
	key := pki.SecretKey(s.key(), pki.ClusterCA)
	secret, err := c.secret(ctx, key)
	if err != nil {
		return nil, err
	}
	if secret == nil {
		return nil, untrusted{fmt.Errorf("Secret %s, the cluster's CA, does not exist: the control plane provider must create it, or "+
			"spec.joinConfiguration.discovery.file.kubeConfig.cluster must set certificateAuthorityData", key)}
	}
	if _, err := pki.CAFrom(secret); err != nil {
		return nil, untrusted{err}
	}
	out.CertificateAuthorityData = secret.Data[pki.CertificateKey]
	return out, nil
}
