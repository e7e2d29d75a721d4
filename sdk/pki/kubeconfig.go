package pki

import (
	"crypto/x509"
	"errors"
	"fmt"
	"time"

	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"k8s.io/client-go/util/cert"

	"sigs.k8s.io/cluster-api/sdk/expansion"
)

// RenewKubeconfigBefore is how long before the expiry of its client certificate a kubeconfig is renewed.
const RenewKubeconfigBefore = clientValidity / 2

// maxKubeconfig is the maximum size of a kubeconfig with its YAML aliases expanded, in bytes: that of a Secret.
const maxKubeconfig = 1 << 20

// NewKubeconfig is Keys.Kubeconfig without keys in stock.
func NewKubeconfig(cluster, server string, ca *CA, now time.Time) ([]byte, error) {
	return (*Keys)(nil).Kubeconfig(cluster, server, ca, now)
}

// Kubeconfig returns an admin kubeconfig of a cluster, with a new client certificate that is valid for a year.
// server is a URL. The client's key has the algorithm of the CA, in case clients of a cluster with an RSA CA only
// support RSA.
func (k *Keys) Kubeconfig(cluster, server string, ca *CA, now time.Time) ([]byte, error) {
	request := Request{CommonName: "kubernetes-admin", Organizations: []string{"system:masters"}, Validity: clientValidity}
	if ca.Key == nil {
		return nil, keyless(request)
	}
	key, err := k.key(AlgorithmOf(ca.Certificate))
	if err != nil {
		return nil, err
	}
	client, err := ca.sign(key, request, now)
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

// UserKubeconfig returns a kubeconfig for a user with a new client certificate, for the cluster of the current context of another
// kubeconfig, such as the admin's. The certificate must end before that of the CA, which must have its key. The CA has to be one that
// the API server trusts for clients.
func UserKubeconfig(admin []byte, ca *CA, r Request, now time.Time) ([]byte, error) {
	config, err := LoadKubeconfig(admin)
	if err != nil {
		return nil, err
	}
	context := config.Contexts[config.CurrentContext]
	if context == nil || config.Clusters[context.Cluster] == nil {
		return nil, fmt.Errorf("the kubeconfig has no context %q with a cluster, its current context", config.CurrentContext)
	}
	if end := now.Add(r.Validity); end.After(ca.Certificate.NotAfter) {
		return nil, fmt.Errorf("the certificate would be valid until %s, longer than the CA, which expires on %s: use a shorter validity",
			end.UTC().Format(time.RFC3339), ca.Certificate.NotAfter.UTC().Format(time.RFC3339))
	}
	r.Algorithm = AlgorithmOf(ca.Certificate)
	client, err := ca.Issue(r, now)
	if err != nil {
		return nil, err
	}
	name := r.CommonName + "@" + context.Cluster
	return clientcmd.Write(clientcmdapi.Config{
		Clusters:       map[string]*clientcmdapi.Cluster{context.Cluster: config.Clusters[context.Cluster]},
		AuthInfos:      map[string]*clientcmdapi.AuthInfo{r.CommonName: {ClientCertificateData: client.Certificate, ClientKeyData: client.Key}},
		Contexts:       map[string]*clientcmdapi.Context{name: {Cluster: context.Cluster, AuthInfo: r.CommonName}},
		CurrentContext: name,
	})
}

// KubeconfigExpiry returns when the client certificate of a kubeconfig's current context expires. Zero: it does
// not authenticate with a certificate.
func KubeconfigExpiry(kubeconfig []byte) (time.Time, error) {
	_, user, err := current(kubeconfig)
	if err != nil || len(user.ClientCertificateData) == 0 {
		return time.Time{}, err
	}
	certificate, err := clientCertificate(user)
	if err != nil {
		return time.Time{}, err
	}
	return certificate.NotAfter, nil
}

// LoadKubeconfig parses an untrusted kubeconfig, with limited memory. Errors do not quote it.
func LoadKubeconfig(kubeconfig []byte) (*clientcmdapi.Config, error) {
	if err := expansion.Check(kubeconfig, maxKubeconfig); err != nil {
		return nil, errors.New("the kubeconfig cannot be parsed: it is not YAML, or its aliases expand to more than 1 MiB")
	}
	config, err := clientcmd.Load(kubeconfig)
	if err != nil {
		return nil, errors.New("the kubeconfig cannot be parsed") // The cause may quote credentials.
	}
	return config, nil
}

// current returns the cluster, nil if there is none, and the user of a kubeconfig's current context.
func current(kubeconfig []byte) (*clientcmdapi.Cluster, *clientcmdapi.AuthInfo, error) {
	config, err := LoadKubeconfig(kubeconfig)
	if err != nil {
		return nil, nil, err
	}
	context, ok := config.Contexts[config.CurrentContext]
	if !ok || context == nil {
		return nil, nil, fmt.Errorf("the kubeconfig has no context %q, its current context", config.CurrentContext)
	}
	user := config.AuthInfos[context.AuthInfo]
	if user == nil {
		return nil, nil, fmt.Errorf("the kubeconfig has no user %q, which its current context requires", context.AuthInfo)
	}
	return config.Clusters[context.Cluster], user, nil
}

func clientCertificate(user *clientcmdapi.AuthInfo) (*x509.Certificate, error) {
	certificates, err := cert.ParseCertsPEM(user.ClientCertificateData)
	if err != nil {
		return nil, fmt.Errorf("parsing the client certificate of the kubeconfig: %w", err)
	}
	return certificates[0], nil
}
