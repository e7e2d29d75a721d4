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

// Keys of the Secret. The names are the usual ones, so that people and tools find what they look for.
const (
	// caCertKey holds all trusted authorities as PEM; the one that signs, if any, comes first.
	caCertKey = "ca.crt"
	// caKeyKey holds the key of the first certificate of caCertKey. Absent when somebody else issued.
	caKeyKey = "ca.key"
	// servingCertKey and servingKeyKey hold the certificate to serve.
	servingCertKey = corev1.TLSCertKey
	servingKeyKey  = corev1.TLSPrivateKeyKey
)

// bundle is the content of the Secret. The zero value is the bundle of a service that never had one. Bundles are
// values: changing one makes a new one.
type bundle struct {
	// signer is the authority that signs the next serving certificate; nil when its key is not known.
	signer *authority
	// retired are authorities that are trusted, but do not sign any more.
	retired []*x509.Certificate
	// serving is what the webhook server shows, its Leaf parsed; nil when there is none.
	serving *tls.Certificate
}

// parseBundle reads a Secret's data. Without ca.key, or with one that does not fit, all authorities are retired.
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
		b.signer = &authority{certificate: trusted[0], key: key}
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

// data is the bundle as a Secret's data.
func (b bundle) data() (map[string][]byte, error) {
	if b.signer == nil || b.serving == nil {
		return nil, errors.New("a bundle without a signing authority or a serving certificate cannot be stored")
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

// trusted are all authorities that API servers are to trust, the one that signs first.
func (b bundle) trusted() []*x509.Certificate {
	if b.signer == nil {
		return b.retired
	}
	return append([]*x509.Certificate{b.signer.certificate}, b.retired...)
}

// caBundle is trusted as PEM: the value of the caBundle fields of webhook configurations.
func (b bundle) caBundle() []byte {
	raw := make([][]byte, 0, len(b.retired)+1)
	for _, c := range b.trusted() {
		raw = append(raw, c.Raw)
	}
	return encodeCertificates(raw)
}

// withoutSigner is a bundle that goes on being trusted and served, but has to be followed by a new authority.
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
