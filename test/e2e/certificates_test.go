package e2e

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta1"
	"sigs.k8s.io/cluster-api/sdk/pki"
	"sigs.k8s.io/cluster-api/sdk/testenv"
	"sigs.k8s.io/cluster-api/test/journey"
)

// beforeExpiry is the time before the expiry of certificates at which testdata/certificates.yaml has Machines replaced.
const beforeExpiry = 7 * 24 * time.Hour

// TestCertificates replaces a control plane machine before its certificates expire, in a cluster with RSA CAs of the user, and
// renews the kubeconfig.
func TestCertificates(t *testing.T) {
	testenv.Soak(t)
	t.Parallel()
	w := shared.World(t)
	w.Patient()
	cas := map[pki.Purpose]*corev1.Secret{}
	for _, purpose := range []pki.Purpose{pki.ClusterCA, pki.EtcdCA, pki.FrontProxyCA, pki.ServiceAccount} {
		cas[purpose] = provided(t, w, "certificates", purpose, pki.RSA2048)
		w.Applied(cas[purpose].DeepCopy())
	}
	var c *journey.Subject
	var first clusterv1.Machine
	stage(t, "1 control plane machine, and the expiry of its certificates", func() {
		c = subject(t, w, withoutClass("certificates"))
		applyFile(t, w, "certificates.yaml")
		network(t, c)
		c.Eventually("the expiry is known", journey.ControlPlanes(1), func(p *journey.Snapshot) error {
			if first = p.ControlPlane()[0]; first.Status.CertificatesExpiryDate == nil {
				return errors.New("the Machine does not have the expiry of its certificates")
			}
			return nil
		})
	})
	expiry := first.Status.CertificatesExpiryDate.Time
	if served := certificateOf(t, c, &first); !served.NotAfter.Equal(expiry) {
		t.Errorf("the Machine reports that its certificates expire at %s, the API server's expires at %s", expiry, served.NotAfter)
	}
	due, known := expiry.Add(-beforeExpiry), time.Now()
	t.Logf("the rollout is due in %.0f s", due.Sub(known).Seconds())
	verifiedKubeconfig(t, c, pki.RSA2048)
	renewsKubeconfig(t, c, cas[pki.ClusterCA])

	api, members := writes(t, c), quorum(t, c)
	consistent := c.EtcdIsConsistent(1, 2)
	// The new Machine may replace the other one before its Node is ready: the control plane does not depend on the pod network.
	var second clusterv1.Machine
	c.Eventually("the Machine is replaced", journey.Ready, journey.ControlPlanes(1), c.WorkloadMatches, func(p *journey.Snapshot) error {
		if second = p.ControlPlane()[0]; second.UID == first.UID || second.Status.CertificatesExpiryDate == nil {
			return fmt.Errorf("Machine %s is not replaced, or its expiry is unknown", first.Name)
		}
		return nil
	})
	consistent()
	api.end(10 * time.Second)
	members.end(10 * time.Second)

	// Creation times have a resolution of a second. On a slow machine, the expiry may be known too late.
	began := second.CreationTimestamp.Time
	t.Logf("the rollout began %s after it was due, with a resolution of a second", began.Sub(due))
	if began.Before(due.Add(-time.Second)) || began.After(due.Add(15*time.Second)) && began.After(known.Add(15*time.Second)) {
		t.Error("it did not begin when it was due")
	}
	if served := certificateOf(t, c, &second); served.NotAfter.Before(time.Now().AddDate(0, 11, 0)) || !served.NotAfter.Equal(second.Status.CertificatesExpiryDate.Time) {
		t.Errorf("the new certificate expires at %s, the Machine reports %s", served.NotAfter, second.Status.CertificatesExpiryDate)
	}
	for purpose, ca := range cas {
		now := &corev1.Secret{}
		if err := c.Client.Get(t.Context(), client.ObjectKeyFromObject(ca), now); err != nil || !slices.Equal(now.Data[pki.PrivateKeyKey], ca.Data[pki.PrivateKeyKey]) {
			t.Errorf("the Secret %s of the user was changed: %v", purpose, err)
		}
	}
	verifiedKubeconfig(t, c, pki.RSA2048)
	gone(t, c)
}

// provided returns a Secret with a CA, or a key pair, as users provide them.
func provided(t *testing.T, w *journey.World, cluster string, purpose pki.Purpose, algorithm pki.KeyAlgorithm) *corev1.Secret {
	t.Helper()
	pair, err := pki.NewKeys(algorithm).Generate(purpose, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	return pki.NewSecret(client.ObjectKey{Namespace: w.Namespace, Name: cluster}, purpose, pair.Data(), nil)
}

// certificateOf returns the certificate that the API server of a Machine serves. The cluster's CA must have signed it.
func certificateOf(t *testing.T, c *journey.Subject, m *clusterv1.Machine) *x509.Certificate {
	t.Helper()
	config := c.Workload().Config()
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(config.CAData)
	i := slices.IndexFunc(m.Status.Addresses, func(a clusterv1.MachineAddress) bool { return a.Type == clusterv1.MachineInternalIP })
	if i < 0 {
		t.Fatalf("Machine %s has no address", m.Name)
	}
	dialer := &tls.Dialer{Config: &tls.Config{RootCAs: roots, ServerName: "kubernetes", MinVersion: tls.VersionTLS12}}
	connection, err := dialer.DialContext(t.Context(), "tcp", net.JoinHostPort(m.Status.Addresses[i].Address, "6443"))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = connection.Close() }()
	return connection.(*tls.Conn).ConnectionState().PeerCertificates[0]
}

// verifiedKubeconfig checks the keys of the certificates of API server and kubeconfig, and that the API server accepts the latter.
func verifiedKubeconfig(t *testing.T, c *journey.Subject, algorithm pki.KeyAlgorithm) {
	t.Helper()
	m := c.Snapshot().ControlPlane()[0]
	if got := pki.AlgorithmOf(certificateOf(t, c, &m)); got != algorithm {
		t.Errorf("the key of the API server is %s, want %s", got, algorithm)
	}
	raw := kubeconfigOf(t, c)
	config, err := clientcmd.RESTConfigFromKubeConfig(raw)
	if err != nil {
		t.Fatal(err)
	}
	pair, err := tls.X509KeyPair(config.CertData, config.KeyData)
	if err != nil {
		t.Fatal(err)
	}
	if got := pki.AlgorithmOf(pair.Leaf); got != algorithm {
		t.Errorf("the key of the kubeconfig is %s, want %s", got, algorithm)
	}
	accepted(t, raw)
}

func kubeconfigOf(t *testing.T, c *journey.Subject) []byte {
	t.Helper()
	secret := &corev1.Secret{}
	if err := c.Client.Get(t.Context(), pki.SecretKey(c.Key(), pki.Kubeconfig), secret); err != nil {
		t.Fatal(err)
	}
	return secret.Data[pki.KubeconfigKey]
}

// accepted checks that an API server accepts a kubeconfig.
func accepted(t *testing.T, kubeconfig []byte) {
	t.Helper()
	config, err := clientcmd.RESTConfigFromKubeConfig(kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	config.Timeout = time.Minute
	api, err := kubernetes.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := api.Discovery().RESTClient().Get().AbsPath("/api/v1/nodes").DoRaw(t.Context()); err != nil {
		t.Errorf("the API server does not accept the kubeconfig: %v", err)
	}
}

// renewsKubeconfig replaces the kubeconfig by one whose client certificate expires in ten days, and waits until it is renewed.
func renewsKubeconfig(t *testing.T, c *journey.Subject, ca *corev1.Secret) {
	t.Helper()
	signing, err := pki.CAFrom(ca)
	if err != nil {
		t.Fatal(err)
	}
	before := kubeconfigOf(t, c)
	server := c.Workload().Config().Host
	old, err := pki.NewKubeconfig(c.Name, server, signing, time.Now().AddDate(-1, 0, 10))
	if err != nil {
		t.Fatal(err)
	}
	accepted(t, old)
	secret := &corev1.Secret{}
	if err := c.Client.Get(t.Context(), pki.SecretKey(c.Key(), pki.Kubeconfig), secret); err != nil {
		t.Fatal(err)
	}
	patch := client.MergeFrom(secret.DeepCopy())
	secret.Data[pki.KubeconfigKey] = old
	if err := c.Client.Patch(t.Context(), secret, patch); err != nil {
		t.Fatal(err)
	}
	var renewed []byte
	c.Eventually("the kubeconfig is renewed", func(*journey.Snapshot) error {
		renewed = kubeconfigOf(t, c)
		if slices.Equal(renewed, old) || slices.Equal(renewed, before) {
			return errors.New("it is not renewed")
		}
		return nil
	})
	expiry, err := pki.KubeconfigExpiry(renewed)
	if err != nil || time.Until(expiry) < 300*24*time.Hour {
		t.Errorf("the renewed kubeconfig expires at %s: %v", expiry, err)
	}
	accepted(t, renewed)
	accepted(t, old) // Clients have until it expires.
}
