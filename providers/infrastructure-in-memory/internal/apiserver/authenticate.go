package apiserver

import (
	"crypto/x509"
	"net/http"

	"sigs.k8s.io/cluster-api/providers/infrastructure-in-memory/internal/apiserver/access"
)

// verified is the cached result of authenticating a client's certificate.
type verified struct {
	by   *identity
	user *access.User // nil if not authenticated
}

// authenticate returns the user of the connection's client certificate, or nil. Verification costs more than most
// requests, so the result is cached with the connection until the cluster's credentials change.
func authenticate(r *http.Request) *access.User {
	c := connOf(r.Context())
	if c == nil || r.TLS == nil || len(r.TLS.PeerCertificates) == 0 {
		return nil
	}
	trusted := c.endpoint.trusts(c)
	if trusted == nil {
		hangUp(c)
	}
	if known := c.client.Load(); known != nil && known.by == trusted {
		return known.user
	}
	found := &verified{by: trusted, user: verify(trusted, r.TLS.PeerCertificates)}
	c.client.Store(found)
	return found.user
}

func verify(trusted *identity, chain []*x509.Certificate) *access.User {
	if trusted.clients == nil {
		return nil
	}
	intermediates := x509.NewCertPool()
	for _, certificate := range chain[1:] {
		intermediates.AddCert(certificate)
	}
	leaf := chain[0]
	if _, err := leaf.Verify(x509.VerifyOptions{
		Roots:         trusted.clients,
		Intermediates: intermediates,
		KeyUsages:     []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	}); err != nil {
		return nil
	}
	groups := append([]string{}, leaf.Subject.Organization...)
	return &access.User{Name: leaf.Subject.CommonName, Groups: append(groups, access.Authenticated)}
}
