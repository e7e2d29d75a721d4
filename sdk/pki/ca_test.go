package pki_test

import (
	"bytes"
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rsa"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/client-go/util/cert"
	"k8s.io/client-go/util/keyutil"

	"sigs.k8s.io/cluster-api/sdk/pki"
)

var now = time.Date(2024, 4, 16, 12, 0, 0, 0, time.UTC)

func newCA(t testing.TB, algorithm pki.KeyAlgorithm) *pki.CA {
	t.Helper()
	a, err := pki.NewCA(algorithm, now)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

func issue(t *testing.T, by *pki.CA, r pki.Request) pki.Pair {
	t.Helper()
	p, err := by.Issue(r, now)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func parse(t *testing.T, certificate []byte) *x509.Certificate {
	t.Helper()
	all, err := cert.ParseCertsPEM(certificate)
	if err != nil {
		t.Fatal(err)
	}
	return all[0]
}

// keyKind names the kind of a public key, as precisely as people choose it.
func keyKind(k crypto.PublicKey) string {
	switch k := k.(type) {
	case *rsa.PublicKey:
		return fmt.Sprintf("RSA %d", k.N.BitLen())
	case *ecdsa.PublicKey:
		return "ECDSA " + k.Curve.Params().Name
	}
	return fmt.Sprintf("%T", k)
}

func TestNewKey(t *testing.T) {
	for name, c := range map[string]struct {
		reason    string
		algorithm pki.KeyAlgorithm
		want      string
		wantErr   string
	}{
		"Default": {reason: "ECDSA is the default, because RSA keys are expensive to generate", want: "ECDSA " + elliptic.P256().Params().Name},
		"ECDSA":   {reason: "ECDSA means P-256", algorithm: pki.ECDSA, want: "ECDSA P-256"},
		"P384":    {reason: "the larger curve that kubeadm knows", algorithm: pki.ECDSAP384, want: "ECDSA P-384"},
		"RSA2048": {reason: "kubeadm's own default", algorithm: pki.RSA2048, want: "RSA 2048"},
		"RSA3072": {reason: "a larger one", algorithm: pki.RSA3072, want: "RSA 3072"},
		"Unknown": {reason: "an unknown algorithm is rejected, with the supported ones", algorithm: "DSA",
			wantErr: "unknown key algorithm: use one of ECDSA-P256, ECDSA-P384, RSA-2048, RSA-3072, RSA-4096"},
	} {
		t.Run(name, func(t *testing.T) {
			ca, err := pki.NewCA(c.algorithm, now)
			got := ""
			if err == nil {
				got = keyKind(ca.Key.Public())
			}
			if diff := cmp.Diff([]string{c.want, c.wantErr}, []string{got, message(err)}); diff != "" {
				t.Errorf("%s: key and error -want +got:\n%s", c.reason, diff)
			}
		})
	}
}

func message(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

func TestNewCA(t *testing.T) {
	type facts struct {
		Name, Key           string
		NotBefore, NotAfter time.Time
		IsCA                bool
		Usage               x509.KeyUsage
	}
	for name, c := range map[string]struct {
		reason    string
		algorithm pki.KeyAlgorithm
		key       string
	}{
		"ECDSA": {"the default kind of key", "", "ECDSA P-256"},
		"RSA":   {"an RSA key if RSA is chosen", pki.RSA2048, "RSA 2048"},
	} {
		t.Run(name, func(t *testing.T) {
			a := newCA(t, c.algorithm)
			got := facts{
				a.Certificate.Subject.CommonName, keyKind(a.Certificate.PublicKey),
				a.Certificate.NotBefore, a.Certificate.NotAfter, a.Certificate.IsCA, a.Certificate.KeyUsage,
			}
			want := facts{
				"kubernetes", c.key, now.Add(-5 * time.Minute), now.Add(10 * 365 * 24 * time.Hour), true,
				x509.KeyUsageKeyEncipherment | x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("%s: -want +got:\n%s", c.reason, diff)
			}
			if a.Certificate.SerialNumber.Sign() <= 0 {
				t.Errorf("serial number %s is not positive", a.Certificate.SerialNumber)
			}
		})
	}
}

func TestIssue(t *testing.T) {
	server := []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}
	client := []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}
	loopback := []net.IP{net.ParseIP("127.0.0.1")}
	type verification struct {
		name   string
		usages []x509.ExtKeyUsage
		at     time.Time
	}
	for name, c := range map[string]struct {
		reason  string
		ca      pki.KeyAlgorithm
		request pki.Request
		verify  verification
		wantKey string
		wantErr string
	}{
		"Client": {
			reason: "every certificate authenticates a client", request: pki.Request{CommonName: "someone", Validity: time.Hour},
			verify: verification{usages: client, at: now}, wantKey: "ECDSA P-256",
		},
		"ClientIsNoServer": {
			reason: "a certificate without names must not pass for a server", request: pki.Request{CommonName: "someone", Validity: time.Hour},
			verify: verification{usages: server, at: now}, wantKey: "ECDSA P-256",
			wantErr: "x509: certificate specifies an incompatible key usage",
		},
		"ServerByName": {
			reason: "a certificate with names serves under them", request: pki.Request{DNSNames: []string{"api.example.com"}, Validity: time.Hour},
			verify: verification{"api.example.com", server, now}, wantKey: "ECDSA P-256",
		},
		"ServerByAddress": {
			reason: "a certificate with addresses serves at them", ca: pki.RSA2048,
			request: pki.Request{IPs: loopback, Validity: time.Hour, Algorithm: pki.RSA2048},
			verify:  verification{"127.0.0.1", server, now}, wantKey: "RSA 2048",
		},
		"ServerIsAClientToo": {
			reason: "etcd members are clients of each other", request: pki.Request{IPs: loopback, Validity: time.Hour},
			verify: verification{usages: client, at: now}, wantKey: "ECDSA P-256",
		},
		"KeyOfAnotherKind": {
			reason: "an RSA CA signs ECDSA keys", ca: pki.RSA2048, request: pki.Request{CommonName: "someone", Validity: time.Hour},
			verify: verification{usages: client, at: now}, wantKey: "ECDSA P-256",
		},
		"ClockBehind": {
			reason: "a machine whose clock is some minutes late trusts it already", request: pki.Request{CommonName: "someone", Validity: time.Hour},
			verify: verification{usages: client, at: now.Add(-4 * time.Minute)}, wantKey: "ECDSA P-256",
		},
		"LastSecond": {
			reason: "it is valid as long as asked for", request: pki.Request{CommonName: "someone", Validity: time.Hour},
			verify: verification{usages: client, at: now.Add(time.Hour)}, wantKey: "ECDSA P-256",
		},
		"Expired": {
			reason: "and no longer", request: pki.Request{CommonName: "someone", Validity: time.Hour},
			verify: verification{usages: client, at: now.Add(time.Hour + time.Second)}, wantKey: "ECDSA P-256",
			wantErr: "x509: certificate has expired or is not yet valid: current time 2024-04-16T13:00:01Z is after 2024-04-16T13:00:00Z",
		},
	} {
		t.Run(name, func(t *testing.T) {
			a := newCA(t, c.ca)
			pair := issue(t, a, c.request)
			leaf, roots := parse(t, pair.Certificate), x509.NewCertPool()
			roots.AddCert(a.Certificate)
			_, err := leaf.Verify(x509.VerifyOptions{Roots: roots, DNSName: c.verify.name, KeyUsages: c.verify.usages, CurrentTime: c.verify.at})
			if diff := cmp.Diff([]string{c.wantKey, c.wantErr}, []string{keyKind(leaf.PublicKey), message(err)}); diff != "" {
				t.Errorf("%s: key and verification -want +got:\n%s", c.reason, diff)
			}
			if !publicOf(t, pair.Key).Equal(leaf.PublicKey) {
				t.Error("the key of the pair is not the one that the certificate is for")
			}
		})
	}
}

// publicOf is the public half of a private key in PEM.
func publicOf(t *testing.T, private []byte) interface{ Equal(crypto.PublicKey) bool } {
	t.Helper()
	key, err := keyutil.ParsePrivateKeyPEM(private)
	if err != nil {
		t.Fatal(err)
	}
	return key.(crypto.Signer).Public().(interface{ Equal(crypto.PublicKey) bool })
}

func TestCAsOfOneNameAreDistinguished(t *testing.T) {
	mine, other := newCA(t, ""), newCA(t, "")
	leaf := parse(t, issue(t, mine, pki.Request{CommonName: "someone", Validity: time.Hour}).Certificate)
	for name, c := range map[string]struct {
		reason string
		roots  []*x509.Certificate
		want   bool
	}{
		"Both":  {"all CAs of a cluster have the same name: the key must select the right one", []*x509.Certificate{other.Certificate, mine.Certificate}, true},
		"Other": {"the name alone is not trusted", []*x509.Certificate{other.Certificate}, false},
	} {
		t.Run(name, func(t *testing.T) {
			roots := x509.NewCertPool()
			for _, r := range c.roots {
				roots.AddCert(r)
			}
			_, err := leaf.Verify(x509.VerifyOptions{Roots: roots, CurrentTime: now, KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageAny}})
			if (err == nil) != c.want {
				t.Errorf("%s: verified with error %v, want success %t", c.reason, err, c.want)
			}
		})
	}
}

func TestParseCA(t *testing.T) {
	ec, rsaPair, other := pemOf(t, newCA(t, "")), pemOf(t, newCA(t, pki.RSA2048)), pemOf(t, newCA(t, ""))
	for name, c := range map[string]struct {
		reason   string
		pair     pki.Pair
		parseErr string
		issueErr string
	}{
		"ECDSA": {reason: "what PEM wrote can be read and used again", pair: ec},
		"RSA":   {reason: "with RSA keys too", pair: rsaPair},
		"PKCS8": {reason: "users bring keys in PKCS #8, as openssl writes them", pair: pki.Pair{Certificate: ec.Certificate, Key: pkcs8(t, ec.Key)}},
		"WithoutKey": {
			reason: "a CA whose key is stored elsewhere can be trusted, but cannot issue certificates", pair: pki.Pair{Certificate: ec.Certificate},
			issueErr: `issuing a certificate for "someone": the private key of the CA is missing`,
		},
		"KeyOfAnother": {
			reason:   "a key that does not match the certificate would sign certificates that cannot be verified",
			pair:     pki.Pair{Certificate: ec.Certificate, Key: other.Key},
			issueErr: `signing a certificate for "someone": x509: provided PrivateKey doesn't match parent's PublicKey`,
		},
		"NoCertificate": {
			reason: "an invalid certificate is rejected", pair: pki.Pair{Certificate: []byte("hello"), Key: ec.Key},
			parseErr: "parsing the certificate: data does not contain any valid RSA or ECDSA certificates",
		},
		"NoKey": {
			reason: "an invalid key is rejected, without quoting it in the error", pair: pki.Pair{Certificate: ec.Certificate, Key: []byte("hunter2")},
			parseErr: "parsing the private key: it is not PEM of a supported type",
		},
		"PublicKey": {
			reason: "a public key in place of the private one is rejected", pair: pki.Pair{Certificate: ec.Certificate, Key: ec.Certificate},
			parseErr: "parsing the private key: it is not PEM of a supported type",
		},
	} {
		t.Run(name, func(t *testing.T) {
			a, err := pki.ParseCA(c.pair.Certificate, c.pair.Key)
			if diff := cmp.Diff(c.parseErr, message(err)); diff != "" {
				t.Fatalf("%s: error of parsing -want +got:\n%s", c.reason, diff)
			}
			if err != nil {
				return
			}
			_, err = a.Issue(pki.Request{CommonName: "someone", Validity: time.Hour}, now)
			if diff := cmp.Diff(c.issueErr, message(err)); diff != "" {
				t.Errorf("%s: error of issuing -want +got:\n%s", c.reason, diff)
			}
			if got := pemOf(t, a); !bytes.Equal(got.Certificate, c.pair.Certificate) || (len(got.Key) == 0) != (len(c.pair.Key) == 0) {
				t.Errorf("%s: encoded again, it has another certificate, or gained or lost its key", c.reason)
			}
		})
	}
}

func pemOf(t testing.TB, a *pki.CA) pki.Pair {
	t.Helper()
	p, err := a.PEM()
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func pkcs8(t *testing.T, private []byte) []byte {
	t.Helper()
	key, err := keyutil.ParsePrivateKeyPEM(private)
	if err != nil {
		t.Fatal(err)
	}
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: keyutil.PrivateKeyBlockType, Bytes: der})
}

func TestPublicKeyHash(t *testing.T) {
	mine, other := newCA(t, ""), newCA(t, "")
	hash := pki.PublicKeyHash(mine.Certificate)
	if digest, ok := strings.CutPrefix(hash, "sha256:"); !ok || len(digest) != 64 {
		t.Errorf("%q is not sha256: and 64 hex digits", hash)
	}
	if hash != pki.PublicKeyHash(parse(t, pemOf(t, mine).Certificate)) || hash == pki.PublicKeyHash(other.Certificate) {
		t.Error("the hash must be the same for the same key, and another for another")
	}
}
