package webhookcert

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/tls"
	"crypto/x509"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/types"
)

var (
	testService  = types.NamespacedName{Namespace: "capi-system", Name: "capi-webhook-service"}
	testRotation = rotation{dnsNames: DNSNames(testService)}
	start        = time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
)

// accepted reports whether an API server that trusts caBundle accepts a certificate.
func accepted(t *testing.T, caBundle []byte, served *tls.Certificate, now time.Time) bool {
	t.Helper()
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(caBundle) {
		t.Fatalf("the CA bundle contains no certificate:\n%s", caBundle)
	}
	_, err := served.Leaf.Verify(x509.VerifyOptions{
		DNSName: "capi-webhook-service.capi-system.svc", Roots: roots, CurrentTime: now,
	})
	return err == nil
}

func mustNext(t *testing.T, r rotation, b bundle, now time.Time) (bundle, bool) {
	t.Helper()
	next, changed, err := r.next(b, now)
	if err != nil {
		t.Fatalf("at %s: %v", now, err)
	}
	return next, changed
}

// foreign is a bundle of another issuer: a self-signed serving certificate.
func foreign(t *testing.T, now time.Time, validity time.Duration) bundle {
	t.Helper()
	a, err := newCA("elsewhere", now, validity)
	if err != nil {
		t.Fatal(err)
	}
	leaf := template("elsewhere", now, now.Add(validity))
	leaf.DNSNames = testRotation.dnsNames
	leaf.KeyUsage = x509.KeyUsageDigitalSignature
	signed, err := sign(leaf, leaf, a.key.Public(), a.key)
	if err != nil {
		t.Fatal(err)
	}
	return bundle{
		retired: []*x509.Certificate{signed},
		serving: &tls.Certificate{Certificate: [][]byte{signed.Raw}, PrivateKey: a.key, Leaf: signed},
	}
}

func TestFirstIssue(t *testing.T) {
	b, changed := mustNext(t, testRotation, bundle{}, start)
	if !changed || !accepted(t, b.caBundle(), b.serving, start) {
		t.Fatalf("the first bundle must serve immediately: changed %t", changed)
	}
	for _, key := range []any{b.signer.key, b.serving.PrivateKey} {
		if k, ok := key.(*ecdsa.PrivateKey); !ok || k.Curve != elliptic.P256() {
			t.Errorf("keys must be ECDSA P-256, got %T", key)
		}
	}
	want := []string{"capi-webhook-service.capi-system.svc", "capi-webhook-service.capi-system.svc.cluster.local"}
	if diff := cmp.Diff(want, b.serving.Leaf.DNSNames); diff != "" {
		t.Errorf("DNS names (-want +got):\n%s", diff)
	}
	if _, changed := mustNext(t, testRotation, b, start.Add(time.Hour)); changed {
		t.Error("a new bundle must not change")
	}
}

// TestRotationsOverlap simulates thirty years, continuing whenever a change is due, and checks at
// every change that neither an API server nor a replica who is late notices.
func TestRotationsOverlap(t *testing.T) {
	now, end := start, start.AddDate(30, 0, 0)
	b, _ := mustNext(t, testRotation, bundle{}, now)
	changes, cas := 0, map[string]bool{}
	for now.Before(end) {
		cas[string(b.signer.certificate.Raw)] = true
		next, changed := mustNext(t, testRotation, b, now)
		if !changed {
			now = now.Add(testRotation.due(b, now))
			continue
		}
		changes++
		if !accepted(t, b.caBundle(), next.serving, now) {
			t.Fatalf("at %s: an API server with the old bundle rejects the new certificate", now)
		}
		if !accepted(t, next.caBundle(), b.serving, now) {
			t.Fatalf("at %s: an API server with the new bundle rejects a replica that serves the old certificate", now)
		}
		if len(next.trusted()) > 2 {
			t.Fatalf("at %s: %d CAs are trusted, more than a rotation needs", now, len(next.trusted()))
		}
		b = next
	}
	// Three writes per CA (trust it, sign with it, remove the old one), one per renewed serving certificate.
	if len(cas) < 9 || len(cas) > 11 || changes > 100 {
		t.Errorf("%d CAs and %d writes in 30 years; a CA should be used for 3 years, a certificate for 8 months",
			len(cas), changes)
	}
}

func TestNext(t *testing.T) {
	fresh, _ := mustNext(t, testRotation, bundle{}, start)
	second, err := newCA("second", start, caValidity)
	if err != nil {
		t.Fatal(err)
	}
	introduced := bundle{signer: second, retired: fresh.trusted(), serving: fresh.serving}
	switched, _ := mustNext(t, testRotation, introduced, start.Add(propagationTime))

	type outcome struct {
		Changed, NewSigner, NewServing bool
		Trusted                        int
	}
	tests := map[string]struct {
		reason string
		bundle bundle
		after  time.Duration
		want   outcome
	}{
		"serving certificate ages": {
			reason: "it is renewed by the same CA, long before it expires",
			bundle: fresh, after: servingValidity - servingRenewal,
			want: outcome{Changed: true, NewServing: true, Trusted: 1},
		},
		"off for two years": {
			reason: "the certificate has expired, but the CA has not: no new CA must be propagated",
			bundle: fresh, after: 2 * servingValidity,
			want: outcome{Changed: true, NewServing: true, Trusted: 1},
		},
		"off for ten years": {
			reason: "nothing is left to overlap with",
			bundle: fresh, after: 2 * caValidity,
			want: outcome{Changed: true, NewSigner: true, NewServing: true, Trusted: 1},
		},
		"CA not propagated": {
			reason: "a new CA is only trusted until it has been propagated",
			bundle: introduced, after: propagationTime - time.Second,
			want: outcome{Trusted: 2},
		},
		"CA propagated": {
			reason: "then it signs, and the old one is still trusted for replicas that serve its certificate",
			bundle: introduced, after: propagationTime,
			want: outcome{Changed: true, NewServing: true, Trusted: 2},
		},
		"certificate propagated": {
			reason: "the old CA is removed once every replica serves the new certificate",
			bundle: switched, after: 2 * propagationTime,
			want: outcome{Changed: true, Trusted: 1},
		},
		"key lost": {
			reason: "a CA that cannot sign is succeeded by a new one, while its certificate is still served",
			bundle: fresh.withoutSigner(), after: time.Hour,
			want: outcome{Changed: true, NewSigner: true, Trusted: 2},
		},
		"issued elsewhere": {
			reason: "a self-signed certificate is taken over without an interruption",
			bundle: foreign(t, start, 90*24*time.Hour), after: time.Hour,
			want: outcome{Changed: true, NewSigner: true, Trusted: 2},
		},
		"issued elsewhere and expired": {
			reason: "what has expired is neither served nor trusted",
			bundle: foreign(t, start, 90*24*time.Hour), after: 91 * 24 * time.Hour,
			want: outcome{Changed: true, NewSigner: true, NewServing: true, Trusted: 1},
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			next, changed := mustNext(t, testRotation, tt.bundle, start.Add(tt.after))
			got := outcome{
				Changed:    changed,
				NewSigner:  next.signer != tt.bundle.signer,
				NewServing: next.serving != tt.bundle.serving,
				Trusted:    len(next.trusted()),
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tt.reason, diff)
			}
			if !accepted(t, next.caBundle(), next.serving, start.Add(tt.after)) {
				t.Errorf("%s: the served certificate must be trusted", tt.reason)
			}
		})
	}
}

func TestOtherNames(t *testing.T) {
	b, _ := mustNext(t, testRotation, bundle{}, start)
	moved := rotation{dnsNames: DNSNames(types.NamespacedName{Namespace: "elsewhere", Name: "capi-webhook-service"})}
	next, changed := mustNext(t, moved, b, start.Add(time.Hour))
	if !changed || next.signer != b.signer || next.serving == b.serving {
		t.Error("a certificate for other names must be replaced, and its CA kept")
	}
}

func TestBundleRoundTrip(t *testing.T) {
	b, _ := mustNext(t, testRotation, bundle{}, start)
	b.retired = foreign(t, start, time.Hour).retired
	data, err := b.data()
	if err != nil {
		t.Fatal(err)
	}
	read, err := parseBundle(data)
	if err != nil {
		t.Fatal(err)
	}
	again, err := read.data()
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(data, again); diff != "" {
		t.Errorf("a Secret's data must survive parsing and encoding (-want +got):\n%s", diff)
	}
	delete(data, caKeyKey)
	if read, err = parseBundle(data); err != nil || read.signer != nil || len(read.retired) != 2 {
		t.Errorf("without its key a CA must only be trusted: %v, signer %v, %d retired", err, read.signer, len(read.retired))
	}
}

func TestLongServiceNames(t *testing.T) {
	service := types.NamespacedName{Namespace: "capi-kubeadm-control-plane-system", Name: "capi-kubeadm-control-plane-webhook-service"}
	b, _ := mustNext(t, rotation{dnsNames: DNSNames(service)}, bundle{}, start)
	if got := len(b.serving.Leaf.Subject.CommonName); got != 64 {
		t.Errorf("a common name has at most 64 characters, got %d", got)
	}
	if err := b.serving.Leaf.VerifyHostname(DNSNames(service)[0]); err != nil {
		t.Error(err)
	}
}
