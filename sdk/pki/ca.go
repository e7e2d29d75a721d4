package pki

import (
	"crypto"
	"crypto/rand"
	"crypto/sha256"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/hex"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"net"
	"time"

	"k8s.io/client-go/util/cert"
	"k8s.io/client-go/util/keyutil"
)

const (
	// caValidity is the lifetime of a cluster's CAs, unless the cluster has another.
	caValidity = 10 * 365 * 24 * time.Hour
	// clientValidity is the lifetime of client certificates, and so of kubeconfigs.
	clientValidity = 365 * 24 * time.Hour
	// clockSkew is how long ago the validity of certificates begins, for machines whose clock is slow.
	clockSkew = 5 * time.Minute
)

// CA is a certificate authority. Without a key, it can be trusted, but cannot issue certificates.
type CA struct {
	Certificate *x509.Certificate
	Key         crypto.Signer
}

// NewCA returns a self-signed CA named "kubernetes", valid for ten years.
func NewCA(algorithm KeyAlgorithm, now time.Time) (*CA, error) {
	key, err := newKey(algorithm)
	if err != nil {
		return nil, err
	}
	return newCA(key, now, now.Add(caValidity))
}

func newCA(key crypto.Signer, now, expiry time.Time) (*CA, error) {
	serial, err := newSerial()
	if err != nil {
		return nil, err
	}
	template := &x509.Certificate{
		SerialNumber:          serial,
		Subject:               pkix.Name{CommonName: "kubernetes"},
		DNSNames:              []string{"kubernetes"},
		NotBefore:             now.Add(-clockSkew).UTC(),
		NotAfter:              expiry.UTC(),
		KeyUsage:              x509.KeyUsageKeyEncipherment | x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
		BasicConstraintsValid: true,
		IsCA:                  true,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		return nil, fmt.Errorf("signing a CA: %w", err)
	}
	certificate, err := x509.ParseCertificate(der)
	if err != nil {
		return nil, err
	}
	return &CA{Certificate: certificate, Key: key}, nil
}

// ParseCA parses a CA in PEM. The key may be empty: then the CA can be
// trusted, but cannot issue certificates.
func ParseCA(certPEM, keyPEM []byte) (*CA, error) {
	certificates, err := cert.ParseCertsPEM(certPEM)
	if err != nil {
		return nil, fmt.Errorf("parsing the certificate: %w", err)
	}
	a := &CA{Certificate: certificates[0]}
	if len(keyPEM) == 0 {
		return a, nil
	}
	key, err := keyutil.ParsePrivateKeyPEM(keyPEM)
	if err != nil {
		return nil, errors.New("parsing the private key: it is not PEM of a supported type")
	}
	signer, ok := key.(crypto.Signer)
	if !ok {
		return nil, fmt.Errorf("parsing the private key: a %T cannot sign", key)
	}
	a.Key = signer
	return a, nil
}

// Request describes a certificate to issue. It is valid as a client certificate, and as a server
// certificate too when it has names or addresses.
type Request struct {
	CommonName    string
	Organizations []string
	DNSNames      []string
	IPs           []net.IP
	Validity      time.Duration
	Algorithm     KeyAlgorithm
}

// Pair is a certificate and its key as PEM.
type Pair struct {
	Certificate, Key []byte
}

// Issue generates a key and signs a certificate for it.
func (a *CA) Issue(r Request, now time.Time) (Pair, error) {
	if a.Key == nil {
		return Pair{}, keyless(r)
	}
	key, err := newKey(r.Algorithm)
	if err != nil {
		return Pair{}, err
	}
	return a.sign(key, r, now)
}

func keyless(r Request) error {
	return fmt.Errorf("issuing a certificate for %q: the private key of the CA is missing", r.CommonName)
}

func (a *CA) sign(key crypto.Signer, r Request, now time.Time) (Pair, error) {
	serial, err := newSerial()
	if err != nil {
		return Pair{}, err
	}
	usages := []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}
	if len(r.DNSNames)+len(r.IPs) > 0 {
		usages = append(usages, x509.ExtKeyUsageServerAuth)
	}
	template := &x509.Certificate{
		SerialNumber: serial,
		Subject:      pkix.Name{CommonName: r.CommonName, Organization: r.Organizations},
		DNSNames:     r.DNSNames,
		IPAddresses:  r.IPs,
		NotBefore:    a.Certificate.NotBefore,
		NotAfter:     now.Add(r.Validity).UTC(),
		KeyUsage:     x509.KeyUsageKeyEncipherment | x509.KeyUsageDigitalSignature,
		ExtKeyUsage:  usages,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, a.Certificate, key.Public(), a.Key)
	if err != nil {
		return Pair{}, fmt.Errorf("signing a certificate for %q: %w", r.CommonName, err)
	}
	keyPEM, err := keyutil.MarshalPrivateKeyToPEM(key)
	if err != nil {
		return Pair{}, fmt.Errorf("encoding the key for %q: %w", r.CommonName, err)
	}
	return Pair{Certificate: encode(cert.CertificateBlockType, der), Key: keyPEM}, nil
}

// PEM returns the CA's certificate and key as PEM.
func (a *CA) PEM() (Pair, error) {
	p := Pair{Certificate: encode(cert.CertificateBlockType, a.Certificate.Raw)}
	if a.Key == nil {
		return p, nil
	}
	var err error
	p.Key, err = keyutil.MarshalPrivateKeyToPEM(a.Key)
	return p, err
}

// PublicKeyHash returns the hash by which kubeadm pins a CA: "sha256:" and the hex digest of its public key
// information (RFC 7469).
func PublicKeyHash(certificate *x509.Certificate) string {
	sum := sha256.Sum256(certificate.RawSubjectPublicKeyInfo)
	return "sha256:" + hex.EncodeToString(sum[:])
}

// signingPair returns a key pair for signing service account tokens. Certificate is the public key as PEM.
func signingPair(key crypto.Signer) (Pair, error) {
	private, err := keyutil.MarshalPrivateKeyToPEM(key)
	if err != nil {
		return Pair{}, err
	}
	public, err := x509.MarshalPKIXPublicKey(key.Public())
	if err != nil {
		return Pair{}, err
	}
	return Pair{Certificate: encode(keyutil.PublicKeyBlockType, public), Key: private}, nil
}

func encode(kind string, der []byte) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der})
}

// newSerial returns a random positive serial number of up to 63 bits.
func newSerial() (*big.Int, error) {
	limit := new(big.Int).Lsh(big.NewInt(1), 63)
	n, err := rand.Int(rand.Reader, new(big.Int).Sub(limit, big.NewInt(1)))
	if err != nil {
		return nil, fmt.Errorf("generating a serial number: %w", err)
	}
	return n.Add(n, big.NewInt(1)), nil
}
