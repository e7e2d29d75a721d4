package pki_test

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/x509"
	"math/big"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"sigs.k8s.io/cluster-api/sdk/pki"
)

// Whatever a tenant writes into the Secret of a CA: what is accepted is encoded as it was read, what it
// issues belongs to its own key, without a key it issues nothing, and no error quotes the key.
func FuzzCA(f *testing.F) {
	for _, algorithm := range []pki.KeyAlgorithm{pki.ECDSA, pki.ECDSAP384, pki.RSA2048} {
		ca := newCA(f, algorithm)
		pair := pemOf(f, ca)
		f.Add(pair.Certificate, pair.Key)
		f.Add(pair.Certificate, []byte{})
		f.Add(append(bytes.Clone(pair.Certificate), pemOf(f, newCA(f, "")).Certificate...), pair.Key)
		f.Add(append([]byte("# é\n"), pair.Certificate...), append([]byte("-----BEGIN EC PARAMETERS-----\nBggqhkjOPQMBBw==\n-----END EC PARAMETERS-----\n"), pair.Key...))
		f.Add(bytes.ReplaceAll(pair.Certificate, []byte("CERTIFICATE"), []byte("X509 CRL")), bytes.ReplaceAll(pair.Key, []byte("PRIVATE"), []byte("PUBLIC")))
		f.Add(pair.Certificate[:len(pair.Certificate)/2], pair.Key[:len(pair.Key)/2])
		f.Add(pair.Key, pair.Certificate)
		f.Add(bytes.ReplaceAll(pair.Certificate, []byte("\n"), []byte("\r\n")), pair.Key)
	}
	f.Add([]byte("-----BEGIN CERTIFICATE-----\n-----END CERTIFICATE-----\n"), []byte("-----BEGIN RSA PRIVATE KEY-----\nMAA=\n-----END RSA PRIVATE KEY-----\n"))
	f.Add([]byte{}, []byte{})
	f.Fuzz(func(t *testing.T, certificate, key []byte) {
		if len(certificate)+len(key) > 32<<10 {
			t.Skip("long")
		}
		ca, err := pki.CAFrom(&corev1.Secret{Data: map[string][]byte{pki.CertificateKey: certificate, pki.PrivateKeyKey: key}})
		if err != nil {
			for line := range strings.Lines(string(key)) {
				if line = strings.TrimSpace(line); len(line) > 30 && strings.Contains(err.Error(), line) {
					t.Errorf("the error quotes the key: %v", err)
				}
			}
			return
		}
		written, err := ca.PEM()
		if err != nil {
			return // A key of a kind that is not written.
		}
		again, err := pki.ParseCA(written.Certificate, written.Key)
		if err != nil || !again.Certificate.Equal(ca.Certificate) || (again.Key == nil) != (ca.Key == nil) {
			t.Fatalf("written and read it is another one: %v", err)
		}
		if pki.PublicKeyHash(ca.Certificate) != pki.PublicKeyHash(again.Certificate) {
			t.Error("it is pinned in two ways")
		}
		pair, err := ca.Issue(pki.Request{CommonName: "client", Validity: time.Hour}, now)
		if ca.Key == nil && err == nil {
			t.Error("it issues without a key")
		}
		if err != nil {
			return
		}
		if issued, err := pki.ParseCA(pair.Certificate, pair.Key); err != nil || issued.Certificate.CheckSignatureFrom(ca.Certificate) != nil && ca.Certificate.IsCA &&
			ca.Certificate.CheckSignature(issued.Certificate.SignatureAlgorithm, issued.Certificate.RawTBSCertificate, issued.Certificate.Signature) != nil {
			t.Errorf("what it issues is not its own: %v", err)
		}
	})
}

// fixedCA is the same in every process: inputs are generated in another process than the one that tests them.
func fixedCA(t testing.TB) *pki.CA {
	t.Helper()
	key, err := ecdsa.ParseRawPrivateKey(elliptic.P256(), bytes.Repeat([]byte{1}, 32))
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotBefore: now, NotAfter: now.Add(time.Hour), IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign}
	der, err := x509.CreateCertificate(nil, template, template, key.Public(), key) // Without randomness the signature is always the same.
	if err != nil {
		t.Fatal(err)
	}
	certificate, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	return &pki.CA{Certificate: certificate, Key: key}
}

// Whatever kubeconfig a tenant writes: reading it gives the same each time, quotes nothing secret, and one that is issued by an
// authority trusts it.
func FuzzKubeconfig(f *testing.F) {
	ca := fixedCA(f)
	made, err := pki.NewKubeconfig("blue", "https://api.example.com:6443", ca, now)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(made)
	f.Add(bytes.Replace(made, []byte("current-context: "), []byte("current-context: other-"), 1))
	f.Add(bytes.Replace(made, []byte("client-key-data: "), []byte("client-key-data: secret-"), 1))
	f.Add(bytes.Replace(made, []byte("client-certificate-data: "), []byte("token: secret-secret\n    x: "), 1))
	for _, text := range []string{"", "{}", "null", "contexts: [{name: '', context: {user: ''}}]\nusers: [{name: '', user: {token: secret-secret}}]", "contexts: [null]", "contexts: [{context: null}]\nusers: [{name: a, user: null}]\nclusters: [{cluster: null}]", "users: {a: b}", "contexts: [{name: '', context: {user: u}}]\nusers: [{name: u, user: {client-certificate-data: c2VjcmV0}}]"} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		if len(text) > 32<<10 {
			t.Skip("long")
		}
		expiry, err := pki.KubeconfigExpiry(text)
		again, errAgain := pki.KubeconfigExpiry(text)
		if !expiry.Equal(again) || (err == nil) != (errAgain == nil) {
			t.Errorf("it expires at %v, %v, then at %v, %v", expiry, err, again, errAgain)
		}
		config, errLoad := pki.LoadKubeconfig(text)
		for _, err := range []error{err, errLoad} {
			if err != nil && strings.Contains(err.Error(), "secret-secret") {
				t.Errorf("the error quotes a secret: %v", err)
			}
		}
		if err == nil && (errLoad != nil || config.Contexts[config.CurrentContext] == nil) {
			t.Errorf("it expires at %v, without a current context: %v", expiry, errLoad)
		}
	})
}
