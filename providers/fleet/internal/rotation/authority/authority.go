// Package authority computes what the Secrets of CAs and of the ServiceAccount key contain in each stage of a rotation, and recognizes
// the stage of a Secret. Its functions are pure; reading and writing Secrets does not belong here.
//
// In a file with several certificates, the first one signs: kubeadm and our managers rely on that.
package authority

import (
	"bytes"
	"crypto"
	"crypto/sha256"
	"crypto/x509"
	"encoding/hex"
	"encoding/pem"
	"errors"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/cert"
	"k8s.io/client-go/util/keyutil"

	fleetv1 "sigs.k8s.io/cluster-api/api/fleet/v1alpha1"
	"sigs.k8s.io/cluster-api/sdk/pki"
)

// All returns all authorities.
func All() []fleetv1.Authority {
	return []fleetv1.Authority{fleetv1.ClusterCA, fleetv1.EtcdCA, fleetv1.FrontProxyCA, fleetv1.ServiceAccountKey}
}

// Purpose returns the purpose of the Secret of an authority.
func Purpose(a fleetv1.Authority) pki.Purpose {
	switch a {
	case fleetv1.ClusterCA:
		return pki.ClusterCA
	case fleetv1.EtcdCA:
		return pki.EtcdCA
	case fleetv1.FrontProxyCA:
		return pki.FrontProxyCA
	}
	return pki.ServiceAccount
}

// Stage is how far the rotation of a Secret is.
type Stage int

// Stages, in order.
const (
	// Unknown is neither of the following: someone else has changed the Secret.
	Unknown Stage = iota
	// Old has the old certificate, as before the rotation.
	Old
	// Both has the old certificate, whose key signs, and the new one.
	Both
	// Reissued has the new certificate, whose key signs, and the old one.
	Reissued
	// New has the new certificate only.
	New
)

// Of returns the stage that a step of a rotation reaches.
func Of(step string) Stage {
	switch step {
	case fleetv1.TrustBothStep:
		return Both
	case fleetv1.ReissueStep:
		return Reissued
	case fleetv1.DropOldStep:
		return New
	}
	return Unknown
}

// Change is an authority and what replaces it. Certificates are in PEM; for a ServiceAccount key, they are public keys.
type Change struct {
	Old []byte
	New pki.Pair
}

// Certificates returns the certificates at a stage.
func (c Change) Certificates(at Stage) []byte {
	switch at {
	case Both:
		return join(c.Old, c.New.Certificate)
	case Reissued:
		return join(c.New.Certificate, c.Old)
	case New:
		return c.New.Certificate
	}
	return c.Old
}

// Key returns the key at a stage; nil: the one that the Secret had before the rotation.
func (c Change) Key(at Stage) []byte {
	if at == Reissued || at == New {
		return c.New.Key
	}
	return nil
}

// StageOf returns the stage of the data of a Secret.
func (c Change) StageOf(data map[string][]byte) Stage {
	is := blocks(data[pki.CertificateKey])
	for _, stage := range []Stage{Old, Both, Reissued, New} {
		if equal(is, blocks(c.Certificates(stage))) {
			return stage
		}
	}
	return Unknown
}

// Same reports whether two texts have the same PEM blocks, in the same order.
func Same(a, b []byte) bool { return equal(blocks(a), blocks(b)) }

func join(a, b []byte) []byte {
	joined := bytes.Clone(bytes.TrimRight(a, "\n"))
	return append(append(joined, '\n'), b...)
}

// blocks returns the content of PEM blocks, whatever is between them.
func blocks(text []byte) [][]byte {
	var all [][]byte
	for block, rest := pem.Decode(text); block != nil; block, rest = pem.Decode(rest) {
		all = append(all, block.Bytes)
	}
	return all
}

func equal(a, b [][]byte) bool {
	if len(a) != len(b) {
		return false
	}
	for i := range a {
		if !bytes.Equal(a[i], b[i]) {
			return false
		}
	}
	return true
}

// Check returns why an authority cannot be rotated; nil if it can.
func Check(a fleetv1.Authority, data map[string][]byte) error {
	if len(data[pki.PrivateKeyKey]) == 0 {
		return errors.New("it has no private key, so it is managed by someone else, who must rotate it")
	}
	if n := len(blocks(data[pki.CertificateKey])); n != 1 {
		return fmt.Errorf("tls.crt must have one certificate or key, it has %d: intermediate CAs, and rotations by hand, are not supported", n)
	}
	if a == fleetv1.ServiceAccountKey {
		_, err := public(data[pki.CertificateKey])
		return err
	}
	ca, err := pki.ParseCA(data[pki.CertificateKey], data[pki.PrivateKeyKey])
	switch {
	case err != nil:
		return err
	case !ca.Certificate.IsCA:
		return errors.New("tls.crt is not the certificate of a CA")
	case ca.Certificate.CheckSignatureFrom(ca.Certificate) != nil:
		return errors.New("its certificate is issued by another CA, which must issue the next one, too")
	case !same(ca.Certificate.PublicKey, ca.Key.Public()):
		return errors.New("tls.key does not belong to tls.crt")
	}
	return nil
}

func same(a, b crypto.PublicKey) bool {
	key, ok := a.(interface{ Equal(crypto.PublicKey) bool })
	return ok && key.Equal(b)
}

// public returns the first public key in PEM.
func public(text []byte) (crypto.PublicKey, error) {
	keys, err := keyutil.ParsePublicKeysPEM(text)
	if err != nil {
		return nil, errors.New("tls.crt has no public key in PEM of a supported type")
	}
	return keys[0], nil
}

// Generate returns what replaces an authority. CAs are valid as long as the old one was. Without an algorithm, keys have that of the old
// key.
func Generate(a fleetv1.Authority, old []byte, algorithm pki.KeyAlgorithm, now time.Time) (Change, error) {
	like, err := certificate(a, old)
	if err != nil {
		return Change{}, err
	}
	if algorithm == "" {
		algorithm = pki.AlgorithmOf(like)
	}
	chosen := &metav1.ObjectMeta{Annotations: map[string]string{pki.AlgorithmAnnotation: string(algorithm)}}
	if algorithm == "" {
		chosen.Annotations = nil // An algorithm of the user that is none of ours.
	}
	pair, err := (*pki.Keys)(nil).GenerateUntil(Purpose(a), now, now.Add(like.NotAfter.Sub(like.NotBefore)), chosen)
	if err != nil {
		return Change{}, fmt.Errorf("generating keys: %w", err)
	}
	return Change{Old: bytes.Clone(old), New: pair}, nil
}

// certificate returns the first certificate in PEM; for a ServiceAccount key, one that has the public key only.
func certificate(a fleetv1.Authority, text []byte) (*x509.Certificate, error) {
	if a == fleetv1.ServiceAccountKey {
		key, err := public(text)
		return &x509.Certificate{PublicKey: key}, err
	}
	all, err := cert.ParseCertsPEM(text)
	if err != nil {
		return nil, fmt.Errorf("parsing the certificate: %w", err)
	}
	return all[0], nil
}

// Fingerprint returns the fingerprint of the first public key in PEM; empty if it is invalid.
func Fingerprint(a fleetv1.Authority, text []byte) string {
	found, err := certificate(a, text)
	if err != nil {
		return ""
	}
	if a != fleetv1.ServiceAccountKey {
		return pki.PublicKeyHash(found)
	}
	sum, err := publicSum(found.PublicKey)
	if err != nil {
		return ""
	}
	return "sha256:" + hex.EncodeToString(sum[:])
}

// publicSum returns the hash of a public key, which is in the header of tokens that it verifies, too.
func publicSum(key crypto.PublicKey) ([sha256.Size]byte, error) {
	der, err := x509.MarshalPKIXPublicKey(key)
	if err != nil {
		return [sha256.Size]byte{}, err
	}
	return sha256.Sum256(der), nil
}
