package webhookcert

import (
	"crypto/x509"
	"slices"
	"time"
)

const (
	caValidity = 5 * 365 * 24 * time.Hour
	// caRenewal is how long before its expiry a CA is succeeded by a new one. It is longer than the lifetime of two serving
	// certificates, so that none of them is shortened.
	caRenewal       = 2 * servingValidity
	servingValidity = 365 * 24 * time.Hour
	// servingRenewal is how long before its expiry a serving certificate is replaced.
	servingRenewal = 120 * 24 * time.Hour
	// propagationTime is how long API servers take at most to trust the CAs in webhook configurations, and replicas to
	// serve the certificate in the Secret. Both watch these objects, so seconds are usual.
	propagationTime = 5 * time.Minute
)

// rotation decides how a bundle must change. It is a pure function of bundle and time.
type rotation struct {
	// dnsNames are the names of the serving certificate; the first is its common name.
	dnsNames []string
}

// next returns the bundle as it should be now, and whether it differs from b. It only changes what one write may change:
// see the rules about overlap in the package comment.
func (r rotation) next(b bundle, now time.Time) (bundle, bool, error) {
	newSigner := b.signer == nil || reached(b.signer.certificate.NotAfter.Add(-caRenewal), now)
	if newSigner {
		signer, err := newCA(r.dnsNames[0], now, caValidity)
		if err != nil {
			return b, false, err
		}
		b = bundle{signer: signer, retired: b.trusted(), serving: b.serving}
	}
	newServing := r.wantsServing(b, now)
	if newServing {
		serving, err := b.signer.issue(r.dnsNames, now, servingValidity)
		if err != nil {
			return b, false, err
		}
		b.serving = serving
	}
	kept := stillTrusted(b, now)
	forgets := len(kept) != len(b.retired)
	b.retired = kept
	return b, newSigner || newServing || forgets, nil
}

// wantsServing reports whether the signer must issue a serving certificate now.
func (r rotation) wantsServing(b bundle, now time.Time) bool {
	if !r.usable(b, now) {
		return true
	}
	if !reached(propagated(b.signer.certificate), now) {
		return false
	}
	return !b.servedBySigner() || reached(b.serving.Leaf.NotAfter.Add(-servingRenewal), now)
}

// usable reports whether API servers that trust the bundle accept its serving certificate.
func (r rotation) usable(b bundle, now time.Time) bool {
	if b.serving == nil {
		return false
	}
	roots := x509.NewCertPool()
	for _, c := range b.trusted() {
		roots.AddCert(c)
	}
	for _, name := range r.dnsNames {
		if _, err := b.serving.Leaf.Verify(x509.VerifyOptions{DNSName: name, Roots: roots, CurrentTime: now}); err != nil {
			return false
		}
	}
	return true
}

// stillTrusted returns the retired CAs whose certificates may still be served by a replica.
func stillTrusted(b bundle, now time.Time) []*x509.Certificate {
	if b.servedBySigner() && reached(propagated(b.serving.Leaf), now) {
		return nil
	}
	return slices.DeleteFunc(slices.Clone(b.retired), func(c *x509.Certificate) bool {
		return reached(c.NotAfter, now)
	})
}

// due returns the time until a bundle that next did not change must change.
func (r rotation) due(b bundle, now time.Time) time.Duration {
	deadlines := []time.Time{
		b.signer.certificate.NotAfter.Add(-caRenewal),
		b.serving.Leaf.NotAfter.Add(-servingRenewal),
		b.serving.Leaf.NotAfter.Add(time.Second), // still valid in its last second
		propagated(b.signer.certificate),
		propagated(b.serving.Leaf),
	}
	for _, c := range b.retired {
		deadlines = append(deadlines, c.NotAfter)
	}
	wait := caValidity
	for _, deadline := range deadlines {
		if left := deadline.Sub(now); left > 0 {
			wait = min(wait, left)
		}
	}
	return wait
}

// servedBySigner reports whether the serving certificate was issued by the current CA.
func (b bundle) servedBySigner() bool {
	return b.signer != nil && b.serving != nil && b.serving.Leaf.CheckSignatureFrom(b.signer.certificate) == nil
}

// propagated returns when all API servers and replicas know a certificate.
func propagated(c *x509.Certificate) time.Time {
	return issued(c).Add(propagationTime)
}

func reached(t, now time.Time) bool {
	return !now.Before(t)
}
