package pki

import (
	"errors"
	"fmt"
	"time"

	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"k8s.io/client-go/util/cert"
)

// RenewKubeconfigBefore is how long before its client certificate expires a kubeconfig is made anew.
const RenewKubeconfigBefore = ClientValidity / 2

// NewKubeconfig makes the admin kubeconfig of a cluster, with a client certificate of its own that is valid
// for a year. Server is a URL.
func NewKubeconfig(cluster, server string, ca *Authority, now time.Time) ([]byte, error) {
	client, err := ca.Issue(Request{
		CommonName:    "kubernetes-admin",
		Organizations: []string{"system:masters"},
		Validity:      ClientValidity,
	}, now)
	if err != nil {
		return nil, err
	}
	trusted, err := ca.PEM()
	if err != nil {
		return nil, err
	}
	user := cluster + "-admin"
	context := user + "@" + cluster
	config := clientcmdapi.Config{
		Clusters:       map[string]*clientcmdapi.Cluster{cluster: {Server: server, CertificateAuthorityData: trusted.Certificate}},
		AuthInfos:      map[string]*clientcmdapi.AuthInfo{user: {ClientCertificateData: client.Certificate, ClientKeyData: client.Key}},
		Contexts:       map[string]*clientcmdapi.Context{context: {Cluster: cluster, AuthInfo: user}},
		CurrentContext: context,
	}
	return clientcmd.Write(config)
}

// KubeconfigExpiry is when the client certificate of a kubeconfig's current context expires. Zero: it does
// not authenticate with a certificate.
func KubeconfigExpiry(kubeconfig []byte) (time.Time, error) {
	config, err := clientcmd.Load(kubeconfig)
	if err != nil {
		return time.Time{}, errors.New("the kubeconfig cannot be parsed") // the cause could quote credentials
	}
	context, ok := config.Contexts[config.CurrentContext]
	if !ok {
		return time.Time{}, fmt.Errorf("the kubeconfig has no context %q, its current one", config.CurrentContext)
	}
	user, ok := config.AuthInfos[context.AuthInfo]
	if !ok {
		return time.Time{}, fmt.Errorf("the kubeconfig has no user %q, that of its current context", context.AuthInfo)
	}
	if len(user.ClientCertificateData) == 0 {
		return time.Time{}, nil
	}
	certificates, err := cert.ParseCertsPEM(user.ClientCertificateData)
	if err != nil {
		return time.Time{}, fmt.Errorf("parsing the client certificate of user %q: %w", context.AuthInfo, err)
	}
	return certificates[0].NotAfter, nil
}
