// Package signature signs files and images in cosign's formats with a key, without a transparency log, and verifies them.
//
// Keys are made by cosign, openssl or this package; where they are kept does not belong here.
package signature

import (
	"context"
	"crypto"
	"crypto/ecdsa"
	"crypto/rand"
	"crypto/sha256"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"

	"github.com/secure-systems-lab/go-securesystemslib/dsse"
	"github.com/secure-systems-lab/go-securesystemslib/encrypted"
)

// ErrInvalid is returned for signatures that are not those of the key.
var ErrInvalid = errors.New("the signature is not valid for this key")

// Key is a private key.
type Key struct{ private *ecdsa.PrivateKey }

// ParseKey parses a private ECDSA key in PEM: PKCS #8 or SEC 1 without a password, or as "cosign generate-key-pair" writes it,
// encrypted with a password.
func ParseKey(content, password []byte) (*Key, error) {
	block, _ := pem.Decode(content)
	if block == nil {
		return nil, errors.New("the private key is not in PEM")
	}
	var parsed any
	var err error
	switch block.Type {
	case "ENCRYPTED SIGSTORE PRIVATE KEY", "ENCRYPTED COSIGN PRIVATE KEY":
		var plain []byte
		if plain, err = encrypted.Decrypt(block.Bytes, password); err != nil {
			return nil, fmt.Errorf("cannot decrypt the private key: %w; set its password in COSIGN_PASSWORD", err)
		}
		parsed, err = x509.ParsePKCS8PrivateKey(plain)
	case "PRIVATE KEY":
		parsed, err = x509.ParsePKCS8PrivateKey(block.Bytes)
	case "EC PRIVATE KEY":
		parsed, err = x509.ParseECPrivateKey(block.Bytes)
	default:
		return nil, fmt.Errorf("PEM block %q is not supported: use the ECDSA key of \"cosign generate-key-pair\" or openssl", block.Type)
	}
	if err != nil {
		return nil, fmt.Errorf("cannot parse the private key: %w", err)
	}
	key, ok := parsed.(*ecdsa.PrivateKey)
	if !ok {
		return nil, fmt.Errorf("a private key of type %T is not supported: use an ECDSA key", parsed)
	}
	return &Key{private: key}, nil
}

// Public returns the public key in PEM, as cosign reads it.
func (k *Key) Public() ([]byte, error) {
	content, err := x509.MarshalPKIXPublicKey(k.private.Public())
	if err != nil {
		return nil, err
	}
	return pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: content}), nil
}

// Sign implements dsse.Signer: it signs the SHA-256 checksum of data.
func (k *Key) Sign(_ context.Context, data []byte) ([]byte, error) {
	digest := sha256.Sum256(data)
	return ecdsa.SignASN1(rand.Reader, k.private, digest[:])
}

// KeyID implements dsse.Signer. Cosign does not use key IDs.
func (*Key) KeyID() (string, error) { return "", nil }

// Verifier is a public key.
type Verifier struct{ public *ecdsa.PublicKey }

var (
	_ dsse.Signer   = &Key{}
	_ dsse.Verifier = &Verifier{}
)

// ParseVerifier parses a public ECDSA key in PEM.
func ParseVerifier(content []byte) (*Verifier, error) {
	block, _ := pem.Decode(content)
	if block == nil {
		return nil, errors.New("the public key is not in PEM")
	}
	parsed, err := x509.ParsePKIXPublicKey(block.Bytes)
	if err != nil {
		return nil, fmt.Errorf("cannot parse the public key: %w", err)
	}
	public, ok := parsed.(*ecdsa.PublicKey)
	if !ok {
		return nil, fmt.Errorf("a public key of type %T is not supported: use an ECDSA key", parsed)
	}
	return &Verifier{public: public}, nil
}

// Verify implements dsse.Verifier.
func (v *Verifier) Verify(_ context.Context, data, signature []byte) error {
	digest := sha256.Sum256(data)
	if !ecdsa.VerifyASN1(v.public, digest[:], signature) {
		return ErrInvalid
	}
	return nil
}

// KeyID implements dsse.Verifier.
func (*Verifier) KeyID() (string, error) { return "", nil }

// Public implements dsse.Verifier.
func (v *Verifier) Public() crypto.PublicKey { return v.public }
