package remote

import (
	"errors"
	"net/http"
	"net/url"

	"k8s.io/client-go/rest"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"sigs.k8s.io/cluster-api/sdk/pki"
)

// configOf returns the client configuration of a kubeconfig, if the policy allows it. Only fields that are known to be
// harmless are copied, so that fields of later versions of client-go have no effect here. Errors do not quote
// the kubeconfig.
func configOf(kubeconfig []byte, p Policy) (*rest.Config, error) {
	all, err := pki.LoadKubeconfig(kubeconfig)
	if err != nil {
		return nil, err
	}
	context := all.Contexts[all.CurrentContext]
	if context == nil {
		return nil, errors.New("the kubeconfig does not contain its current context")
	}
	cluster, user := all.Clusters[context.Cluster], all.AuthInfos[context.AuthInfo]
	if cluster == nil || cluster.Server == "" {
		return nil, errors.New("the kubeconfig has no cluster with a server for its current context")
	}
	if user == nil {
		user = &clientcmdapi.AuthInfo{}
	}
	if err := p.permits(cluster, user); err != nil {
		return nil, err
	}
	config := &rest.Config{
		Host: cluster.Server, DisableCompression: cluster.DisableCompression,
		TLSClientConfig: rest.TLSClientConfig{
			Insecure: cluster.InsecureSkipTLSVerify, ServerName: cluster.TLSServerName,
			CAData: cluster.CertificateAuthorityData, CAFile: cluster.CertificateAuthority,
			CertData: user.ClientCertificateData, CertFile: user.ClientCertificate, KeyData: user.ClientKeyData, KeyFile: user.ClientKey,
		},
		BearerToken: user.Token, BearerTokenFile: user.TokenFile, Username: user.Username, Password: user.Password,
		Impersonate: rest.ImpersonationConfig{
			UserName: user.Impersonate, UID: user.ImpersonateUID, Groups: user.ImpersonateGroups, Extra: user.ImpersonateUserExtra,
		},
		ExecProvider: user.Exec,
	}
	if user.Exec != nil {
		config.ExecProvider.StdinUnavailable = true
	}
	if cluster.ProxyURL != "" {
		proxy, err := url.Parse(cluster.ProxyURL)
		if err != nil {
			return nil, errors.New("the kubeconfig's clusters[].cluster.proxy-url is not a URL")
		}
		config.Proxy = http.ProxyURL(proxy)
	}
	return config, nil
}

// permits returns an error for the first setting of a kubeconfig that is not allowed.
func (p Policy) permits(cluster *clientcmdapi.Cluster, user *clientcmdapi.AuthInfo) error {
	server, err := url.Parse(cluster.Server)
	if err != nil {
		return errors.New("the kubeconfig's clusters[].cluster.server is not a URL")
	}
	const runs, reads = ": it runs a program in the manager", ": it reads a file of the manager"
	for _, c := range []struct {
		field     string
		asked     bool
		permitted bool
		allow     string
	}{
		{"users[].user.exec" + runs, user.Exec != nil, p.Exec, allowExec},
		{"users[].user.auth-provider" + runs, user.AuthProvider != nil, false, ""},
		{"users[].user.tokenFile" + reads, user.TokenFile != "", p.Files, allowFiles},
		{"users[].user.client-certificate" + reads, user.ClientCertificate != "", p.Files, allowFiles},
		{"users[].user.client-key" + reads, user.ClientKey != "", p.Files, allowFiles},
		{"clusters[].cluster.certificate-authority" + reads, cluster.CertificateAuthority != "", p.Files, allowFiles},
		{"clusters[].cluster.server without https", server.Scheme != "https", p.HTTP && server.Scheme == "http", allowHTTP},
	} {
		if c.asked && !c.permitted {
			return &RejectedError{What: "the kubeconfig's " + c.field, Allow: c.allow}
		}
	}
	return nil
}
