package webhookcert

import (
	"crypto/x509"
	"slices"
	"time"
)

const (
	authorityValidity = 5 * 365 * 24 * time.Hour
	// authorityRenewal is how long before its end an authority gets a successor. It is longer than two serving
	// certificates live, so that none of them is cut short.
	authorityRenewal = 2 * servingValidity
	servingValidity  = 365 * 24 * time.Hour
	// servingRenewal is how long before its end a serving certificate is replaced.
	servingRenewal = 120 * 24 * time.Hour
	// settleTime is how long all API servers take at most to trust what configurations say, and all replicas to
	// serve what the Secret says. Both learn it from a watch, so seconds are usual.
	settleTime = 5 * time.Minute
)

// rotation decides what a bundle has to look like. It is a pure function of bundle and time.
type rotation struct {
	// dnsNames are the names that the serving certificate must be valid for; the first is its common name.
	dnsNames []string
}

// next is the bundle as it should be now, and whether that differs from b. It does at most what one write may do:
// see the package's rules about overlap.
func (r rotation) next(b bundle, now time.Time) (bundle, bool, error) {
	newSigner := b.signer == nil || reached(b.signer.certificate.NotAfter.Add(-authorityRenewal), now)
	if newSigner {
		signer, err := newAuthority(r.dnsNames[0], now, authorityValidity)
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

// wantsServing tells whether the signer has to issue a serving certificate now.
func (r rotation) wantsServing(b bundle, now time.Time) bool {
	if !r.usable(b, now) {
		return true
	}
	if !reached(settled(b.signer.certificate), now) {
		return false
	}
	return !b.servedBySigner() || reached(b.serving.Leaf.NotAfter.Add(-servingRenewal), now)
}

// usable tells whether API servers that trust the bundle accept its serving certificate.
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

// stillTrusted are the retired authorities that somebody may still be served a certificate of.
func stillTrusted(b bundle, now time.Time) []*x509.Certificate {
	if b.servedBySigner() && reached(settled(b.serving.Leaf), now) {
		return nil
	}
	return slices.DeleteFunc(slices.Clone(b.retired), func(c *x509.Certificate) bool {
		return reached(c.NotAfter, now)
	})
}

// due is how long after now something has to be done about a bundle that next left alone.
func (r rotation) due(b bundle, now time.Time) time.Duration {
	deadlines := []time.Time{
		b.signer.certificate.NotAfter.Add(-authorityRenewal),
		b.serving.Leaf.NotAfter.Add(-servingRenewal),
		b.serving.Leaf.NotAfter.Add(time.Second), // still valid in its last second
		settled(b.signer.certificate),
		settled(b.serving.Leaf),
	}
	for _, c := range b.retired {
		deadlines = append(deadlines, c.NotAfter)
	}
	wait := authorityValidity
	for _, deadline := range deadlines {
		if left := deadline.Sub(now); left > 0 {
			wait = min(wait, left)
		}
	}
	return wait
}

// servedBySigner tells whether the serving certificate comes from the authority that signs.
func (b bundle) servedBySigner() bool {
	return b.signer != nil && b.serving != nil && b.serving.Leaf.CheckSignatureFrom(b.signer.certificate) == nil
}

// settled is when everybody has learned of a certificate.
func settled(c *x509.Certificate) time.Time {
	return issued(c).Add(settleTime)
}

func reached(t, now time.Time) bool {
	return !now.Before(t)
}
