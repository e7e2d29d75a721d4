package webhookcert

import (
	"bytes"
	"crypto"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/util/cert"
	"k8s.io/client-go/util/keyutil"
)

// Keys of the Secret, as in Secrets of type kubernetes.io/tls and of cert-manager.
const (
	// caCertKey has all trusted CAs as PEM; the one that signs, if any, is first.
	caCertKey = "ca.crt"
	// caKeyKey has the key of the first certificate of caCertKey. Absent if the certificate was issued elsewhere.
	caKeyKey = "ca.key"
	// servingCertKey and servingKeyKey have the certificate to serve.
	servingCertKey = corev1.TLSCertKey
	servingKeyKey  = corev1.TLSPrivateKeyKey
)

// bundle is the content of the Secret. The zero value is that of a missing Secret. Bundles are
// immutable.
type bundle struct {
	// signer is the CA that signs the next serving certificate; nil if its key is unknown.
	signer *ca
	// retired are CAs that are trusted, but no longer sign.
	retired []*x509.Certificate
	// serving is the webhook server's certificate, with its Leaf parsed; nil if there is none.
	serving *tls.Certificate
}

// parseBundle parses a Secret's data. Without ca.key, or with one that does not match, all CAs are retired.
func parseBundle(data map[string][]byte) (bundle, error) {
	serving, err := tls.X509KeyPair(data[servingCertKey], data[servingKeyKey])
	if err != nil {
		return bundle{}, fmt.Errorf("reading %s and %s: %w", servingCertKey, servingKeyKey, err)
	}
	trusted, err := cert.ParseCertsPEM(data[caCertKey])
	if err != nil {
		return bundle{}, fmt.Errorf("reading %s: %w", caCertKey, err)
	}
	b := bundle{retired: trusted, serving: &serving}
	if key, ok := parseKey(data[caKeyKey]); ok && samePublicKey(key, trusted[0]) {
		b.signer = &ca{certificate: trusted[0], key: key}
		b.retired = trusted[1:]
	}
	return b, nil
}

func parseKey(encoded []byte) (crypto.Signer, bool) {
	key, err := keyutil.ParsePrivateKeyPEM(encoded)
	if err != nil {
		return nil, false
	}
	signer, ok := key.(crypto.Signer)
	return signer, ok
}

func samePublicKey(key crypto.Signer, c *x509.Certificate) bool {
	public, ok := key.Public().(interface{ Equal(crypto.PublicKey) bool })
	return ok && public.Equal(c.PublicKey)
}

// data returns the bundle as a Secret's data.
func (b bundle) data() (map[string][]byte, error) {
	if b.signer == nil || b.serving == nil {
		return nil, errors.New("cannot store a bundle without a signing CA or a serving certificate")
	}
	caKey, err := keyutil.MarshalPrivateKeyToPEM(b.signer.key)
	if err != nil {
		return nil, fmt.Errorf("encoding %s: %w", caKeyKey, err)
	}
	servingKey, err := keyutil.MarshalPrivateKeyToPEM(b.serving.PrivateKey)
	if err != nil {
		return nil, fmt.Errorf("encoding %s: %w", servingKeyKey, err)
	}
	return map[string][]byte{
		caCertKey:      b.caBundle(),
		caKeyKey:       caKey,
		servingCertKey: encodeCertificates(b.serving.Certificate),
		servingKeyKey:  servingKey,
	}, nil
}

// trusted returns all CAs that API servers must trust, starting with the one that signs.
func (b bundle) trusted() []*x509.Certificate {
	if b.signer == nil {
		return b.retired
	}
	return append([]*x509.Certificate{b.signer.certificate}, b.retired...)
}

// caBundle returns the trusted CAs as PEM, for the caBundle fields of webhook configurations.
func (b bundle) caBundle() []byte {
	raw := make([][]byte, 0, len(b.retired)+1)
	for _, c := range b.trusted() {
		raw = append(raw, c.Raw)
	}
	return encodeCertificates(raw)
}

// withoutSigner returns a bundle that is still trusted and served, but requires a new CA.
func (b bundle) withoutSigner() bundle {
	return bundle{retired: b.trusted(), serving: b.serving}
}

func encodeCertificates(raw [][]byte) []byte {
	var out bytes.Buffer
	for _, der := range raw {
		// Writing to a bytes.Buffer does not fail.
		_ = pem.Encode(&out, &pem.Block{Type: cert.CertificateBlockType, Bytes: der})
	}
	return out.Bytes()
}
