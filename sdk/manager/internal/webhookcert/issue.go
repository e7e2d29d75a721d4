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
	// organization is the documented organization of these certificates.
	organization = "k8s-sig-cluster-lifecycle"
	// clockSkew is how long ago the validity of certificates begins, for API servers whose clock is slow.
	clockSkew = time.Hour
)

// ca is a CA with its key.
type ca struct {
	certificate *x509.Certificate
	key         crypto.Signer
}

// newCA returns a self-signed CA. name is the service that it is for.
func newCA(name string, now time.Time, validity time.Duration) (*ca, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, fmt.Errorf("generating the key of a CA: %w", err)
	}
	template := template(name+"-ca", now, now.Add(validity))
	template.IsCA = true
	template.KeyUsage = x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign
	certificate, err := sign(template, template, key.Public(), key)
	if err != nil {
		return nil, fmt.Errorf("signing a CA: %w", err)
	}
	return &ca{certificate: certificate, key: key}, nil
}

// issue issues a serving certificate with a new key. It expires no later than the CA.
func (a *ca) issue(dnsNames []string, now time.Time, validity time.Duration) (*tls.Certificate, error) {
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

// issued returns when one of our certificates was issued. For others, it is an hour late, which only delays rotation.
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

// shortened truncates a common name to the 64 characters that X.509 allows. It is not used for verification.
func shortened(name string) string {
	return name[:min(len(name), 64)]
}

func sign(template, parent *x509.Certificate, public crypto.PublicKey, signer crypto.Signer) (*x509.Certificate, error) {
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 127))
	if err != nil {
		return nil, fmt.Errorf("generating a serial number: %w", err)
	}
	template.SerialNumber = serial.Add(serial, big.NewInt(1))
	der, err := x509.CreateCertificate(rand.Reader, template, parent, public, signer)
	if err != nil {
		return nil, err
	}
	return x509.ParseCertificate(der)
}
