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

// accepted tells whether an API server that trusts caBundle accepts a certificate.
func accepted(t *testing.T, caBundle []byte, served *tls.Certificate, now time.Time) bool {
	t.Helper()
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(caBundle) {
		t.Fatalf("the CA bundle holds no certificate:\n%s", caBundle)
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

// foreign is what another issuer leaves behind: a self-signed serving certificate that is its own authority.
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
		t.Fatalf("the first bundle has to serve at once: changed %t", changed)
	}
	for _, key := range []any{b.signer.key, b.serving.PrivateKey} {
		if k, ok := key.(*ecdsa.PrivateKey); !ok || k.Curve != elliptic.P256() {
			t.Errorf("keys have to be ECDSA P-256, got %T", key)
		}
	}
	want := []string{"capi-webhook-service.capi-system.svc", "capi-webhook-service.capi-system.svc.cluster.local"}
	if diff := cmp.Diff(want, b.serving.Leaf.DNSNames); diff != "" {
		t.Errorf("DNS names (-want +got):\n%s", diff)
	}
	if _, changed := mustNext(t, testRotation, b, start.Add(time.Hour)); changed {
		t.Error("a fresh bundle has to be left alone")
	}
}

// TestRotationsOverlap lives through thirty years, waking when a bundle says that something is due, and checks at
// every change that neither an API server nor a replica who is late notices.
func TestRotationsOverlap(t *testing.T) {
	now, end := start, start.AddDate(30, 0, 0)
	b, _ := mustNext(t, testRotation, bundle{}, now)
	changes, authorities := 0, map[string]bool{}
	for now.Before(end) {
		authorities[string(b.signer.certificate.Raw)] = true
		next, changed := mustNext(t, testRotation, b, now)
		if !changed {
			now = now.Add(testRotation.due(b, now))
			continue
		}
		changes++
		if !accepted(t, b.caBundle(), next.serving, now) {
			t.Fatalf("at %s: an API server that knows the old bundle refuses the new certificate", now)
		}
		if !accepted(t, next.caBundle(), b.serving, now) {
			t.Fatalf("at %s: an API server that knows the new bundle refuses a replica that serves the old certificate", now)
		}
		if len(next.trusted()) > 2 {
			t.Fatalf("at %s: %d authorities are trusted, which is more than a rotation needs", now, len(next.trusted()))
		}
		b = next
	}
	// Three writes per authority (trust it, sign with it, forget the old one), one per renewed serving certificate.
	if len(authorities) < 9 || len(authorities) > 11 || changes > 100 {
		t.Errorf("%d authorities and %d writes in 30 years; an authority is to serve 3 years, a certificate 8 months",
			len(authorities), changes)
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
			reason: "it is renewed by the same authority, long before its end",
			bundle: fresh, after: servingValidity - servingRenewal,
			want: outcome{Changed: true, NewServing: true, Trusted: 1},
		},
		"off for two years": {
			reason: "nothing valid is left to serve, but the authority still is: nobody has to learn of a new one",
			bundle: fresh, after: 2 * servingValidity,
			want: outcome{Changed: true, NewServing: true, Trusted: 1},
		},
		"off for ten years": {
			reason: "nothing is left to overlap with",
			bundle: fresh, after: 2 * caValidity,
			want: outcome{Changed: true, NewSigner: true, NewServing: true, Trusted: 1},
		},
		"authority not settled": {
			reason: "a new authority is only trusted until everybody knows it",
			bundle: introduced, after: propagationTime - time.Second,
			want: outcome{Trusted: 2},
		},
		"authority settled": {
			reason: "then it signs, and the old one stays trusted for replicas that still serve its certificate",
			bundle: introduced, after: propagationTime,
			want: outcome{Changed: true, NewServing: true, Trusted: 2},
		},
		"switch settled": {
			reason: "the old authority is forgotten once every replica serves the new certificate",
			bundle: switched, after: 2 * propagationTime,
			want: outcome{Changed: true, Trusted: 1},
		},
		"key lost": {
			reason: "whoever cannot sign is followed by a new authority, while its certificate goes on being served",
			bundle: fresh.withoutSigner(), after: time.Hour,
			want: outcome{Changed: true, NewSigner: true, Trusted: 2},
		},
		"issued by somebody else": {
			reason: "a self-signed certificate is taken over without an interruption",
			bundle: foreign(t, start, 90*24*time.Hour), after: time.Hour,
			want: outcome{Changed: true, NewSigner: true, Trusted: 2},
		},
		"issued by somebody else and expired": {
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
				t.Errorf("%s: what is served has to be trusted", tt.reason)
			}
		})
	}
}

func TestOtherNames(t *testing.T) {
	b, _ := mustNext(t, testRotation, bundle{}, start)
	moved := rotation{dnsNames: DNSNames(types.NamespacedName{Namespace: "elsewhere", Name: "capi-webhook-service"})}
	next, changed := mustNext(t, moved, b, start.Add(time.Hour))
	if !changed || next.signer != b.signer || next.serving == b.serving {
		t.Error("a certificate for other names has to be replaced, its authority kept")
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
		t.Errorf("a Secret's data has to survive being read and written (-want +got):\n%s", diff)
	}
	delete(data, caKeyKey)
	if read, err = parseBundle(data); err != nil || read.signer != nil || len(read.retired) != 2 {
		t.Errorf("without its key an authority is only trusted: %v, signer %v, %d retired", err, read.signer, len(read.retired))
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
