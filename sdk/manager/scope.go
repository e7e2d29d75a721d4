package manager

import (
	"context"
	"crypto/tls"
	"net"

	"github.com/go-logr/logr"
	utilversion "k8s.io/apimachinery/pkg/util/version"
	"k8s.io/client-go/rest"

	"sigs.k8s.io/cluster-api/sdk/apiversion"
	"sigs.k8s.io/cluster-api/sdk/internal/tenure"
)

// run is one run of a component.
type run struct {
	component Component
	options   *options
	host      Host
	log       logr.Logger

	config     *rest.Config
	kubernetes *utilversion.Version
	// namespace is the namespace of the component's own objects; inCluster means that it was detected.
	namespace string
	inCluster bool
	listeners []net.Listener
	// tenure is how long this process may write as the leader.
	tenure *tenure.Tenure
	// boundary converts the kinds of Component.Conversions; nil without any.
	boundary *apiversion.Boundary
}

func (r *run) environment(n *needs) Environment {
	return Environment{
		WatchFilter:    r.options.watchFilter,
		WatchNamespace: r.options.watchNamespace,
		Namespace:      r.namespace,
		ExclusiveFor:   r.options.leaderElection.Lease - r.options.leaderElection.RenewDeadline,
		CheckLeader:    r.tenure.Check,
		Watches:        n.watches,
		NewCache:       r.newCache,
		Boundary:       r.boundary,
		UserAgent:      r.config.UserAgent,
		Dial:           r.host.Dial,
		WrapWorkload:   r.host.WrapWorkload,
		Getenv:         r.host.Getenv,
	}
}

// certificateSource provides the webhook server's certificate.
type certificateSource interface {
	// GetCertificate returns the certificate to serve.
	GetCertificate(*tls.ClientHelloInfo) (*tls.Certificate, error)
	// Ready returns nil if there is a certificate that API servers trust, as far as the source knows.
	Ready() error
	// Start maintains the certificate until ctx is done.
	Start(ctx context.Context) error
}
