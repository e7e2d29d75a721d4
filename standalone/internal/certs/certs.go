// Package certs issues and stores the certificates and keys of a standalone management cluster: its CA, the API server's
// serving certificate, the admin client certificate and the key that signs ServiceAccount tokens.
//
// Keys are ECDSA P-256 and generated once. Certificates are reissued with the existing keys when they are about to
// expire, lack a name or are missing, so that a crash between two writes is repaired and kubeconfigs stay valid. This
// package does not handle certificates of workload clusters.
package certs

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"slices"
	"time"

	"k8s.io/client-go/util/cert"
	"k8s.io/client-go/util/keyutil"

	"sigs.k8s.io/cluster-api/standalone/internal/datadir"
)

const (
	// caLifetime is long because every kubeconfig embeds the CA: replacing it would invalidate them.
	caLifetime = 20 * 365 * 24 * time.Hour
	// lifetime of serving and client certificates. They are reissued when less than renewBefore is left.
	lifetime    = 365 * 24 * time.Hour
	renewBefore = lifetime / 3
	// backdate makes certificates valid for clients whose clock is slightly behind.
	backdate = time.Hour
)

// Files are the paths of the files that Ensure maintains. All are PEM.
type Files struct {
	CACert, CAKey           string
	ServingCert, ServingKey string
	AdminCert, AdminKey     string
	// ServiceAccountKey is a private key; the API server derives the public half itself.
	ServiceAccountKey string
}

// Ensure creates or renews what is missing or about to expire in folder dir, which must exist and be private, and returns
// the paths. Hosts are the DNS names and IP addresses of the API server. Calling it again is cheap and writes nothing if
// nothing has to change.
func Ensure(dir string, hosts []string, now time.Time) (Files, error) {
	f := Files{
		CACert: filepath.Join(dir, "ca.crt"), CAKey: filepath.Join(dir, "ca.key"),
		ServingCert: filepath.Join(dir, "serving.crt"), ServingKey: filepath.Join(dir, "serving.key"),
		AdminCert: filepath.Join(dir, "admin.crt"), AdminKey: filepath.Join(dir, "admin.key"),
		ServiceAccountKey: filepath.Join(dir, "service-account.key"),
	}
	if _, err := key(f.ServiceAccountKey); err != nil {
		return Files{}, err
	}
	ca, err := loadCA(f, now)
	if err != nil {
		return Files{}, err
	}
	serving := request{subject: pkix.Name{CommonName: "kube-apiserver"}, hosts: hosts, usage: x509.ExtKeyUsageServerAuth}
	if err := ca.leaf(f.ServingCert, f.ServingKey, serving, now); err != nil {
		return Files{}, err
	}
	// system:masters: the admin kubeconfig must work even if RBAC objects are damaged.
	admin := request{
		subject: pkix.Name{CommonName: "kubernetes-admin", Organization: []string{"system:masters"}},
		usage:   x509.ExtKeyUsageClientAuth,
	}
	if err := ca.leaf(f.AdminCert, f.AdminKey, admin, now); err != nil {
		return Files{}, err
	}
	return f, nil
}

// signer is the CA.
type signer struct {
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
}

// loadCA reads the CA, or creates it. If only the key exists, it reissues the certificate.
func loadCA(f Files, now time.Time) (*signer, error) {
	existing, certErr := readCert(f.CACert)
	if certErr == nil {
		if _, err := os.Stat(f.CAKey); errors.Is(err, os.ErrNotExist) {
			return nil,
				fmt.Errorf("%s is missing, but %s exists: restore the key, or remove the certificate and distribute the new kubeconfig to clients",
					f.CAKey, f.CACert)
		}
	}
	k, err := key(f.CAKey)
	if err != nil {
		return nil, err
	}
	if certErr == nil && k.PublicKey.Equal(existing.PublicKey) && now.Before(existing.NotAfter) {
		return &signer{cert: existing, key: k}, nil
	}
	template := &x509.Certificate{
		Subject:               pkix.Name{CommonName: "capi standalone"},
		NotBefore:             now.Add(-backdate).UTC(),
		NotAfter:              now.Add(caLifetime).UTC(),
		KeyUsage:              x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
		BasicConstraintsValid: true,
		IsCA:                  true,
	}
	made, err := sign(f.CACert, template, template, k, k)
	if err != nil {
		return nil, err
	}
	return &signer{cert: made, key: k}, nil
}

// request describes a serving or client certificate.
type request struct {
	subject pkix.Name
	hosts   []string
	usage   x509.ExtKeyUsage
}

// leaf ensures a serving or client certificate. The key never changes, so that replacing the certificate is one atomic
// write and readers never see a pair that does not match.
func (s *signer) leaf(certPath, keyPath string, r request, now time.Time) error {
	k, err := key(keyPath)
	if err != nil {
		return err
	}
	if existing, err := readCert(certPath); err == nil && s.good(existing, k, r, now) {
		return nil
	}
	template := &x509.Certificate{
		Subject:     r.subject,
		NotBefore:   now.Add(-backdate).UTC(),
		NotAfter:    now.Add(lifetime).UTC(),
		KeyUsage:    x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{r.usage},
	}
	for _, host := range r.hosts {
		if ip := net.ParseIP(host); ip != nil {
			template.IPAddresses = append(template.IPAddresses, ip)
		} else {
			template.DNSNames = append(template.DNSNames, host)
		}
	}
	_, err = sign(certPath, template, s.cert, k, s.key)
	return err
}

// good reports whether a certificate can still be used for the request.
func (s *signer) good(c *x509.Certificate, k *ecdsa.PrivateKey, r request, now time.Time) bool {
	if !k.PublicKey.Equal(c.PublicKey) || c.CheckSignatureFrom(s.cert) != nil || c.NotAfter.Sub(now) < renewBefore {
		return false
	}
	return !slices.ContainsFunc(r.hosts, func(host string) bool { return c.VerifyHostname(host) != nil })
}

// sign issues a certificate for k and writes it.
func sign(path string, template, parent *x509.Certificate, k, parentKey *ecdsa.PrivateKey) (*x509.Certificate, error) {
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 126))
	if err != nil {
		return nil, fmt.Errorf("issue %s: %w", path, err)
	}
	template.SerialNumber = serial.Add(serial, big.NewInt(1)) // a serial number must be positive
	der, err := x509.CreateCertificate(rand.Reader, template, parent, k.Public(), parentKey)
	if err != nil {
		return nil, fmt.Errorf("issue %s: %w", path, err)
	}
	made, err := x509.ParseCertificate(der)
	if err != nil {
		return nil, fmt.Errorf("issue %s: %w", path, err)
	}
	return made, datadir.WriteFile(path, pem.EncodeToMemory(&pem.Block{Type: cert.CertificateBlockType, Bytes: der}), 0o600)
}

// key reads a private key, or generates it if the file does not exist.
func key(path string) (*ecdsa.PrivateKey, error) {
	parsed, err := keyutil.PrivateKeyFromFile(path)
	if errors.Is(err, os.ErrNotExist) {
		return newKey(path)
	}
	if err != nil {
		return nil, fmt.Errorf("read the key %s: %w", path, err)
	}
	k, ok := parsed.(*ecdsa.PrivateKey)
	if !ok {
		return nil, fmt.Errorf("%s is not an ECDSA key as generated by capi: restore the original file", path)
	}
	return k, nil
}

func newKey(path string) (*ecdsa.PrivateKey, error) {
	k, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, fmt.Errorf("generate the key %s: %w", path, err)
	}
	encoded, err := keyutil.MarshalPrivateKeyToPEM(k)
	if err != nil {
		return nil, fmt.Errorf("generate the key %s: %w", path, err)
	}
	return k, datadir.WriteFile(path, encoded, 0o600)
}

func readCert(path string) (*x509.Certificate, error) {
	parsed, err := cert.CertsFromFile(path)
	if err != nil {
		return nil, err
	}
	return parsed[0], nil
}
