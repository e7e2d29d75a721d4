package apiserver

import (
	"crypto/x509"
	"net/http"
)

const (
	groupMasters       = "system:masters"
	groupAuthenticated = "system:authenticated"
)

// user is who sent a request.
type user struct {
	name   string
	groups []string
}

// verified is what a client's certificate was found to be worth under an identity of the cluster.
type verified struct {
	by   *identity
	user *user // nil when worth nothing
}

// authenticate returns who sent a request by the certificate of the connection, or nil. Verifying costs
// more than most requests, so the result stays with the connection until the cluster's credentials change.
func authenticate(r *http.Request) *user {
	c := connOf(r.Context())
	if c == nil || r.TLS == nil || len(r.TLS.PeerCertificates) == 0 {
		return nil
	}
	trusted := c.endpoint.trusted()
	if known := c.client.Load(); known != nil && known.by == trusted {
		return known.user
	}
	found := &verified{by: trusted, user: verify(trusted, r.TLS.PeerCertificates)}
	c.client.Store(found)
	return found.user
}

func verify(trusted *identity, chain []*x509.Certificate) *user {
	if trusted == nil || trusted.clients == nil {
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
	return &user{name: leaf.Subject.CommonName, groups: append(groups, groupAuthenticated)}
}
