package webhookcert

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"fmt"
	"math/big"
	"time"
)

const (
	// organization is the subject's organization that is documented for these certificates.
	organization = "k8s-sig-cluster-lifecycle"
	// clockSkew is how far in the past certificates become valid, for API servers whose clock is behind.
	clockSkew = time.Hour
)

// authority is a certificate authority that can sign.
type authority struct {
	certificate *x509.Certificate
	key         crypto.Signer
}

// newAuthority makes a self-signed authority. Name tells people which service it is for.
func newAuthority(name string, now time.Time, validity time.Duration) (*authority, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, fmt.Errorf("generating the key of a certificate authority: %w", err)
	}
	template := template(name+"-ca", now, now.Add(validity))
	template.IsCA = true
	template.KeyUsage = x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign
	certificate, err := sign(template, template, key.Public(), key)
	if err != nil {
		return nil, fmt.Errorf("signing a certificate authority: %w", err)
	}
	return &authority{certificate: certificate, key: key}, nil
}

// issue makes a serving certificate with a key of its own. It never outlives the authority.
func (a *authority) issue(dnsNames []string, now time.Time, validity time.Duration) (*tls.Certificate, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, fmt.Errorf("generating the key of a serving certificate: %w", err)
	}
	end := now.Add(validity)
	if last := a.certificate.NotAfter; end.After(last) {
		end = last
	}
	template := template(dnsNames[0], now, end)
	template.DNSNames = dnsNames
	template.KeyUsage = x509.KeyUsageDigitalSignature
	template.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}
	leaf, err := sign(template, a.certificate, key.Public(), a.key)
	if err != nil {
		return nil, fmt.Errorf("signing a serving certificate for %s: %w", dnsNames[0], err)
	}
	return &tls.Certificate{Certificate: [][]byte{leaf.Raw}, PrivateKey: key, Leaf: leaf}, nil
}

// issued is when a certificate of ours was made. Of foreign certificates it is a little late, which only delays.
func issued(c *x509.Certificate) time.Time {
	return c.NotBefore.Add(clockSkew)
}

func template(commonName string, now, end time.Time) *x509.Certificate {
	return &x509.Certificate{
		Subject:               pkix.Name{CommonName: shortened(commonName), Organization: []string{organization}},
		NotBefore:             now.Add(-clockSkew).UTC(),
		NotAfter:              end.UTC(),
		BasicConstraintsValid: true,
	}
}

// shortened keeps a common name within the 64 characters that X.509 allows; nothing is verified by it.
func shortened(name string) string {
	return name[:min(len(name), 64)]
}

func sign(template, parent *x509.Certificate, public crypto.PublicKey, signer crypto.Signer) (*x509.Certificate, error) {
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 127))
	if err != nil {
		return nil, fmt.Errorf("drawing a serial number: %w", err)
	}
	template.SerialNumber = serial.Add(serial, big.NewInt(1))
	der, err := x509.CreateCertificate(rand.Reader, template, parent, public, signer)
	if err != nil {
		return nil, err
	}
	return x509.ParseCertificate(der)
}
