package apiserver

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"

	"sigs.k8s.io/cluster-api/providers/infrastructure-in-memory/internal/cloud"
	"sigs.k8s.io/cluster-api/providers/infrastructure-in-memory/internal/cloud/machines"
)

// testCA is a CA for tests.
type testCA struct {
	certificate *x509.Certificate
	key         *ecdsa.PrivateKey
}

func newTestCA(t testing.TB, name string) *testCA {
	t.Helper()
	a := &testCA{}
	a.certificate, a.key = a.sign(t, &x509.Certificate{
		Subject: pkix.Name{CommonName: name}, IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	})
	return a
}

func (a *testCA) sign(t testing.TB, template *x509.Certificate) (*x509.Certificate, *ecdsa.PrivateKey) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template.SerialNumber = big.NewInt(time.Now().UnixNano())
	template.NotBefore, template.NotAfter = time.Now().Add(-time.Hour), time.Now().Add(time.Hour)
	parent, signer := template, key
	if a.certificate != nil {
		parent, signer = a.certificate, a.key
	}
	der, err := x509.CreateCertificate(rand.Reader, template, parent, key.Public(), signer)
	if err != nil {
		t.Fatal(err)
	}
	certificate, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	return certificate, key
}

// pair issues a certificate for a name, for clients and servers.
func (a *testCA) pair(t testing.TB, name string, organizations ...string) tls.Certificate {
	t.Helper()
	certificate, key := a.sign(t, &x509.Certificate{
		Subject:     pkix.Name{CommonName: name, Organization: organizations},
		DNSNames:    []string{"localhost", name},
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		KeyUsage:    x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	})
	return tls.Certificate{Certificate: [][]byte{certificate.Raw}, PrivateKey: key, Leaf: certificate}
}

func (a *testCA) pool() *x509.CertPool {
	pool := x509.NewCertPool()
	pool.AddCert(a.certificate)
	return pool
}

func (a *testCA) pem() []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: a.certificate.Raw})
}

func pemPair(t testing.TB, c tls.Certificate) (certificate, key []byte) {
	t.Helper()
	der, err := x509.MarshalPKCS8PrivateKey(c.PrivateKey)
	if err != nil {
		t.Fatal(err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: c.Certificate[0]}),
		pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der})
}

// testCluster is a served workload cluster with one API server, on machine cp-0.
type testCluster struct {
	cloud    *cloud.Cloud
	server   *Server
	group    *cloud.Group
	endpoint *Endpoint
	ca       *testCA
	etcdCA   *testCA
}

func newTestCluster(t testing.TB) *testCluster {
	t.Helper()
	return newTestClusterAt(t, nil)
}

// newTestClusterAt returns a cluster with the test's clock.
func newTestClusterAt(t testing.TB, c clock.Clock) *testCluster {
	t.Helper()
	simulated := cloud.New(cloud.Options{})
	server := New(Options{Clock: c})
	t.Cleanup(func() {
		if err := server.Close(); err != nil {
			t.Error(err)
		}
		if err := simulated.Close(); err != nil {
			t.Error(err)
		}
	})
	return addTestCluster(t, simulated, server, types.NamespacedName{Namespace: "default", Name: "test"},
		newTestCA(t, "test-ca"), newTestCA(t, "test-etcd"))
}

func addTestCluster(t testing.TB, simulated *cloud.Cloud, server *Server, key types.NamespacedName, ca, etcdCA *testCA) *testCluster {
	t.Helper()
	group, err := simulated.EnsureGroup(key, types.UID("uid-of-"+key.Name))
	if err != nil {
		t.Fatal(err)
	}
	endpoint, err := server.Open(group, "127.0.0.1", 0)
	if err != nil {
		t.Fatal(err)
	}
	endpoint.SetCredentials(Credentials{
		Serving: ca.pair(t, "kube-apiserver"), ClientCAs: ca.pool(), EtcdClientCAs: etcdCA.pool(),
	})
	if _, err := group.EnsureMachine(machines.Spec{Name: "cp-0", UID: "cp-0", ControlPlane: true}); err != nil {
		t.Fatal(err)
	}
	endpoint.StartServer("cp-0", "v1.31.2")
	return &testCluster{cloud: simulated, server: server, group: group, endpoint: endpoint, ca: ca, etcdCA: etcdCA}
}

// config returns the configuration for a user with these groups.
func (c *testCluster) config(t testing.TB, name string, groups ...string) *rest.Config {
	t.Helper()
	certificate, key := pemPair(t, c.ca.pair(t, name, groups...))
	return &rest.Config{
		Host:            "https://" + c.endpoint.Address(),
		TLSClientConfig: rest.TLSClientConfig{CAData: c.ca.pem(), CertData: certificate, KeyData: key},
		QPS:             -1,
	}
}

func (c *testCluster) admin(t testing.TB) *rest.Config {
	t.Helper()
	return c.config(t, "kubernetes-admin", "system:masters")
}

func (c *testCluster) client(t testing.TB) *kubernetes.Clientset {
	t.Helper()
	return clientFor(t, c.admin(t))
}

func clientFor(t testing.TB, config *rest.Config) *kubernetes.Clientset {
	t.Helper()
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	return client
}
