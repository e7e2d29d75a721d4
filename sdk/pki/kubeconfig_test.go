package pki_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"math/big"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"sigs.k8s.io/cluster-api/sdk/pki"
)

func TestNewKubeconfig(t *testing.T) {
	ca := newCA(t, "")
	raw, err := pki.NewKubeconfig("blue", "https://api.example.com:6443", ca, now)
	if err != nil {
		t.Fatal(err)
	}
	config, err := clientcmd.RESTConfigFromKubeConfig(raw)
	if err != nil {
		t.Fatal(err)
	}
	type facts struct{ Host, CA, User, Group, Context, Cluster, AuthInfo, Validity string }
	loaded, err := clientcmd.Load(raw)
	if err != nil {
		t.Fatal(err)
	}
	leaf := parse(t, config.CertData)
	got := facts{config.Host, string(config.CAData), leaf.Subject.CommonName, strings.Join(leaf.Subject.Organization, ","), loaded.CurrentContext,
		loaded.Contexts[loaded.CurrentContext].Cluster, loaded.Contexts[loaded.CurrentContext].AuthInfo, leaf.NotAfter.Sub(now).String()}
	want := facts{"https://api.example.com:6443", string(pemOf(t, ca).Certificate), "kubernetes-admin", "system:masters", "blue-admin@blue",
		"blue", "blue-admin", (365 * 24 * time.Hour).String()}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("a client must find the server, trust it and be an administrator: -want +got:\n%s", diff)
	}
	if !publicOf(t, config.KeyData).Equal(leaf.PublicKey) {
		t.Error("the key is not that of the client certificate")
	}
	roots := x509.NewCertPool()
	roots.AddCert(ca.Certificate)
	usages := []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}
	if _, err := leaf.Verify(x509.VerifyOptions{Roots: roots, CurrentTime: now, KeyUsages: usages}); err != nil {
		t.Errorf("the API server would not trust the client: %v", err)
	}
	if strings.Contains(string(raw), strings.TrimSpace(string(pemOf(t, ca).Key))) {
		t.Error("the key of the CA is in the kubeconfig")
	}
}

func TestKubeconfigFollowsItsCA(t *testing.T) {
	for algorithm, want := range map[pki.KeyAlgorithm]string{pki.ECDSA: "ECDSA P-256", pki.ECDSAP384: "ECDSA P-384", pki.RSA2048: "RSA 2048"} {
		raw, err := pki.NewKeys("").Kubeconfig("blue", "https://api.example.com:6443", newCA(t, algorithm), now)
		if err != nil {
			t.Fatal(err)
		}
		config, err := clientcmd.RESTConfigFromKubeConfig(raw)
		if err != nil {
			t.Fatal(err)
		}
		if got := keyKind(parse(t, config.CertData).PublicKey); got != want {
			t.Errorf("the client of a CA with %s has a key with %s, want %s", algorithm, got, want)
		}
	}
}

func TestKubeconfigOfAnUnusualCA(t *testing.T) {
	key, err := ecdsa.GenerateKey(elliptic.P521(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotAfter: now.Add(time.Hour), IsCA: true, BasicConstraintsValid: true}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	brought, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	raw, err := pki.NewKubeconfig("blue", "https://api.example.com:6443", &pki.CA{Certificate: brought, Key: key}, now)
	if err != nil {
		t.Fatal(err)
	}
	config, err := clientcmd.RESTConfigFromKubeConfig(raw)
	if err != nil {
		t.Fatal(err)
	}
	if got := keyKind(parse(t, config.CertData).PublicKey); got != "ECDSA P-256" {
		t.Errorf("the client has a key of %s, want the default", got)
	}
}

func TestNewKubeconfigWithoutTheKeyOfTheCA(t *testing.T) {
	ca := newCA(t, "")
	ca.Key = nil
	if _, err := pki.NewKubeconfig("blue", "https://api.example.com:6443", ca, now); err == nil {
		t.Error("nothing can sign the client certificate: there must be an error")
	}
}

func TestKubeconfigExpiry(t *testing.T) {
	made, err := pki.NewKubeconfig("blue", "https://api.example.com:6443", newCA(t, ""), now)
	if err != nil {
		t.Fatal(err)
	}
	write := func(config clientcmdapi.Config) []byte {
		raw, err := clientcmd.Write(config)
		if err != nil {
			t.Fatal(err)
		}
		return raw
	}
	context := map[string]*clientcmdapi.Context{"x": {Cluster: "blue", AuthInfo: "me"}}
	user := func(u clientcmdapi.AuthInfo) map[string]*clientcmdapi.AuthInfo {
		return map[string]*clientcmdapi.AuthInfo{"me": &u}
	}
	for name, c := range map[string]struct {
		reason     string
		kubeconfig []byte
		want       time.Time
		wantErr    string
	}{
		"Made": {
			reason: "ours are valid for a year", kubeconfig: made, want: now.Add(365 * 24 * time.Hour),
		},
		"Token": {
			reason:     "a user's kubeconfig with a token does not expire by a certificate",
			kubeconfig: write(clientcmdapi.Config{CurrentContext: "x", Contexts: context, AuthInfos: user(clientcmdapi.AuthInfo{Token: "t"})}),
		},
		"NoContext": {
			reason: "without its current context it is unusable", kubeconfig: write(clientcmdapi.Config{CurrentContext: "x"}),
			wantErr: `the kubeconfig has no context "x", its current context`,
		},
		"NoUser": {
			reason: "without its user it is unusable", kubeconfig: write(clientcmdapi.Config{CurrentContext: "x", Contexts: context}),
			wantErr: `the kubeconfig has no user "me", which its current context requires`,
		},
		"NoCertificate": {
			reason: "an invalid certificate is reported",
			kubeconfig: write(clientcmdapi.Config{CurrentContext: "x", Contexts: context, AuthInfos: user(clientcmdapi.AuthInfo{
				ClientCertificateData: []byte("hello"),
			})}),
			wantErr: `parsing the client certificate of the kubeconfig: data does not contain any valid RSA or ECDSA certificates`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := pki.KubeconfigExpiry(c.kubeconfig)
			if diff := cmp.Diff(c.wantErr, message(err)); diff != "" {
				t.Errorf("%s: error -want +got:\n%s", c.reason, diff)
			}
			if !got.Equal(c.want) {
				t.Errorf("%s: got %s, want %s", c.reason, got, c.want)
			}
		})
	}
}

func TestErrorsDoNotQuoteKubeconfigs(t *testing.T) {
	for name, c := range map[string]struct {
		reason     string
		kubeconfig string
	}{
		"NotYAML":     {"text that is not YAML could be a token", "hunter2: hunter2: hunter2"},
		"WrongType":   {"a value of the wrong type could be a misplaced secret", "apiVersion: v1\nkind: Config\nusers: hunter2\n"},
		"WrongKind":   {"a whole other object could be a Secret", "apiVersion: hunter2/v1\nkind: hunter2\n"},
		"BadEncoding": {"key data that is not base64 is a secret still", "apiVersion: v1\nkind: Config\nusers:\n- name: me\n  user:\n    client-key-data: '!hunter2!'\n"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := pki.KubeconfigExpiry([]byte(c.kubeconfig))
			if err == nil || strings.Contains(err.Error(), "hunter2") {
				t.Errorf("%s: the error must be there and quote nothing, got: %v", c.reason, err)
			}
		})
	}
}

// Tenants write kubeconfigs, and every manager reads them.
func TestKubeconfigsDoNotExpand(t *testing.T) {
	bomb := "apiVersion: v1\nkind: Config\npreferences: {}\nx: &a " + strings.Repeat("x", 100_000) + "\ny: [" + strings.Repeat("*a, ", 2000) + "]\n"
	if _, err := pki.LoadKubeconfig([]byte(bomb)); err == nil || !strings.Contains(err.Error(), "aliases") {
		t.Errorf("%d bytes that stand for 200 MB: %v", len(bomb), err)
	}
	if _, err := pki.LoadKubeconfig([]byte("x: &a b\ny: *a\n")); err != nil {
		t.Errorf("an alias that stands for little: %v", err)
	}
}
