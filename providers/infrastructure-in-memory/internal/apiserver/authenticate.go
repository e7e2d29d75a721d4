package apiserver

import (
	"crypto/x509"
	"net/http"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"sigs.k8s.io/cluster-api/providers/infrastructure-in-memory/internal/cloud"
)

const (
	groupMasters       = "system:masters"
	groupAuthenticated = "system:authenticated"
	accountPrefix      = "system:serviceaccount:"
)

// user is the user of a request.
type user struct {
	name   string
	groups []string
}

// verified is the cached result of authenticating a client's certificate.
type verified struct {
	by   *identity
	user *user // nil if not authenticated
}

// authenticate returns the user of the connection's client certificate, or nil. Verification costs more than most
// requests, so the result is cached with the connection until the cluster's credentials change.
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

// impersonate returns the user to process a request for: the authenticated user, or one that it may impersonate.
func impersonate(g *cloud.Group, who *user, header http.Header) (*user, error) {
	name, groups := header.Get("Impersonate-User"), header.Values("Impersonate-Group")
	if name == "" && len(groups) == 0 {
		return who, nil
	}
	if name == "" {
		return nil, apierrors.NewBadRequest("groups cannot be impersonated without a user")
	}
	asked := []attributes{{verb: "impersonate", resource: "users", name: name}}
	other := &user{name: name, groups: slices.Clone(groups)}
	if account, found := strings.CutPrefix(name, accountPrefix); found {
		namespace, short, _ := strings.Cut(account, ":")
		asked[0] = attributes{verb: "impersonate", resource: "serviceaccounts", namespace: namespace, name: short}
		if len(groups) == 0 {
			other.groups = []string{"system:serviceaccounts", "system:serviceaccounts:" + namespace}
		}
	}
	for _, group := range groups {
		asked = append(asked, attributes{verb: "impersonate", resource: "groups", name: group})
	}
	for _, a := range asked {
		if !authorize(g, who, a) {
			return nil, forbidden(who, a)
		}
	}
	other.groups = append(other.groups, groupAuthenticated)
	return other, nil
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
