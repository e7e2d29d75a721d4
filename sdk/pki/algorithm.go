package pki

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"fmt"
	"strings"
)

// KeyAlgorithm is a key algorithm, named as in kubeadm's encryptionAlgorithm. It implements
// pflag.Value. Empty means DefaultAlgorithm.
type KeyAlgorithm string

const (
	// ECDSA is ECDSA P-256.
	ECDSA KeyAlgorithm = "ECDSA-P256"
	// ECDSAP384 is ECDSA P-384.
	ECDSAP384 KeyAlgorithm = "ECDSA-P384"
	// RSA2048 is RSA with 2048 bits.
	RSA2048 KeyAlgorithm = "RSA-2048"
	// RSA3072 is RSA with 3072 bits.
	RSA3072 KeyAlgorithm = "RSA-3072"
	// RSA4096 is RSA with 4096 bits.
	RSA4096 KeyAlgorithm = "RSA-4096"

	// DefaultAlgorithm is the algorithm of keys for which none is chosen.
	DefaultAlgorithm = ECDSA
)

// algorithms returns all supported algorithms.
func algorithms() []KeyAlgorithm {
	return []KeyAlgorithm{ECDSA, ECDSAP384, RSA2048, RSA3072, RSA4096}
}

// String implements pflag.Value.
func (a *KeyAlgorithm) String() string { return string(*a) }

// Type implements pflag.Value.
func (*KeyAlgorithm) Type() string { return "algorithm" }

// Set implements pflag.Value. The error does not repeat the value, which
// may be of any length.
func (a *KeyAlgorithm) Set(value string) error {
	var names []string
	for _, known := range algorithms() {
		if value == string(known) {
			*a = known
			return nil
		}
		names = append(names, string(known))
	}
	return fmt.Errorf("unknown key algorithm: use one of %s", strings.Join(names, ", "))
}

// newKey generates a private key. RSA keys take 0.1 to several seconds of CPU time: see Keys.
func newKey(algorithm KeyAlgorithm) (crypto.Signer, error) {
	switch algorithm {
	case "", ECDSA:
		return ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	case ECDSAP384:
		return ecdsa.GenerateKey(elliptic.P384(), rand.Reader)
	}
	if bits := algorithm.rsaBits(); bits != 0 {
		return rsa.GenerateKey(rand.Reader, bits)
	}
	return nil, algorithm.Set(string(algorithm))
}

// rsaBits returns the size of an RSA key; zero for other algorithms.
func (a KeyAlgorithm) rsaBits() int {
	switch a {
	case RSA2048:
		return 2048
	case RSA3072:
		return 3072
	case RSA4096:
		return 4096
	}
	return 0
}

// AlgorithmOf returns the algorithm of a certificate's key, which may be a user's; empty if it is not one of ours.
func AlgorithmOf(certificate *x509.Certificate) KeyAlgorithm {
	switch key := certificate.PublicKey.(type) {
	case *rsa.PublicKey:
		for _, a := range algorithms() {
			if a.rsaBits() == key.N.BitLen() {
				return a
			}
		}
	case *ecdsa.PublicKey:
		switch key.Curve {
		case elliptic.P256():
			return ECDSA
		case elliptic.P384():
			return ECDSAP384
		}
	}
	return ""
}
