package pki

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"testing"
	"time"
)

func TestAlgorithmOf(t *testing.T) {
	for _, algorithm := range []KeyAlgorithm{ECDSA, ECDSAP384, RSA2048, RSA3072} {
		ca, err := NewCA(algorithm, time.Now())
		if err != nil {
			t.Fatal(err)
		}
		if got := AlgorithmOf(ca.Certificate); got != algorithm {
			t.Errorf("AlgorithmOf = %q, want %q", got, algorithm)
		}
	}
	other, err := ecdsa.GenerateKey(elliptic.P521(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	for reason, certificate := range map[string]*x509.Certificate{
		"an algorithm of a user": {PublicKey: other.Public()},
		"an unknown key":         {PublicKey: nil},
	} {
		if got := AlgorithmOf(certificate); got != "" {
			t.Errorf("%s: AlgorithmOf = %q, want none", reason, got)
		}
	}
}
