package signature_test

import (
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-containerregistry/pkg/v1"

	"sigs.k8s.io/cluster-api/release/signature"
)

const repository = "registry.example/capi/clusterctl"

var digest = v1.Hash{Algorithm: "sha256", Hex: strings.Repeat("1", 64)}

// pair returns a new key, without a password, and its public key.
func pair(t *testing.T) (*signature.Key, *signature.Verifier) {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	content, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		t.Fatal(err)
	}
	key, err := signature.ParseKey(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: content}), nil)
	if err != nil {
		t.Fatal(err)
	}
	return key, public(t, key)
}

func public(t *testing.T, key *signature.Key) *signature.Verifier {
	t.Helper()
	content, err := key.Public()
	if err != nil {
		t.Fatal(err)
	}
	verifier, err := signature.ParseVerifier(content)
	if err != nil {
		t.Fatal(err)
	}
	return verifier
}

// TestCosign uses a key and a signature that cosign v2.6.5 has made.
func TestCosign(t *testing.T) {
	files := map[string][]byte{}
	for _, name := range []string{"cosign.key", "cosign.pub", "file", "file.sig"} {
		content, err := os.ReadFile(filepath.Join("testdata", name))
		if err != nil {
			t.Fatal(err)
		}
		files[name] = content
	}
	key, err := signature.ParseKey(files["cosign.key"], []byte("secret"))
	if err != nil {
		t.Fatal(err)
	}
	written, err := key.Public()
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(files["cosign.pub"]), string(written)); diff != "" {
		t.Error(diff)
	}
	verifier := public(t, key)
	if err := verifier.Blob(t.Context(), files["file"], files["file.sig"]); err != nil {
		t.Errorf("a signature of cosign: %v", err)
	}
	if err := verifier.Blob(t.Context(), append(files["file"], ' '), files["file.sig"]); !errors.Is(err, signature.ErrInvalid) {
		t.Errorf("a changed file: got %v, want %v", err, signature.ErrInvalid)
	}
	if _, err := signature.ParseKey(files["cosign.key"], []byte("wrong")); err == nil || !strings.Contains(err.Error(), "COSIGN_PASSWORD") {
		t.Errorf("a wrong password: got %v", err)
	}
}

func TestKeysThatAreNotSupported(t *testing.T) {
	_, edwards, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	content, err := x509.MarshalPKCS8PrivateKey(edwards)
	if err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct{ reason, content, want string }{
		{"not PEM", "key", "not in PEM"},
		{"another algorithm", string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: content})), "use an ECDSA key"},
		{"another kind of block", string(pem.EncodeToMemory(&pem.Block{Type: "RSA PRIVATE KEY", Bytes: content})), "is not supported"},
		{"damaged", string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: content[1:]})), "cannot parse"},
	} {
		t.Run(test.reason, func(t *testing.T) {
			if _, err := signature.ParseKey([]byte(test.content), nil); err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("got %v, want an error with %q", err, test.want)
			}
		})
	}
}

func TestImage(t *testing.T) {
	key, verifier := pair(t)
	_, stranger := pair(t)
	signed, err := key.Image(t.Context(), repository, digest)
	if err != nil {
		t.Fatal(err)
	}
	if err := verifier.Image(t.Context(), signed, repository, digest); err != nil {
		t.Errorf("the image that was signed: %v", err)
	}
	if err := stranger.Image(t.Context(), signed, repository, digest); !errors.Is(err, signature.ErrInvalid) {
		t.Errorf("another key: got %v, want %v", err, signature.ErrInvalid)
	}
	other := v1.Hash{Algorithm: "sha256", Hex: strings.Repeat("2", 64)}
	if err := verifier.Image(t.Context(), signed, repository, other); err == nil || !strings.Contains(err.Error(), digest.Hex) {
		t.Errorf("another image: got %v", err)
	}
	if err := verifier.Image(t.Context(), signed, "registry.example/other", digest); err == nil {
		t.Error("another name: got no error")
	}
	if got, want := signature.Tag(digest, "sig"), "sha256-"+digest.Hex+".sig"; got != want {
		t.Errorf("got tag %s, want %s", got, want)
	}
}

func TestAttestations(t *testing.T) {
	key, verifier := pair(t)
	_, stranger := pair(t)
	statements := map[string][]byte{"https://example.org/a": []byte(`{"a":1}`), "https://example.org/b": []byte(`{"b":2}`)}
	signed, err := key.Attestations(t.Context(), statements, "application/vnd.in-toto+json")
	if err != nil {
		t.Fatal(err)
	}
	got, err := verifier.Statements(t.Context(), signed)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(statements, got); diff != "" {
		t.Error(diff)
	}
	if _, err := stranger.Statements(t.Context(), signed); !errors.Is(err, signature.ErrInvalid) {
		t.Errorf("another key: got %v, want %v", err, signature.ErrInvalid)
	}
}
