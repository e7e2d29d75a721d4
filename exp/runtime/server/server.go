package server

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"
	"sigs.k8s.io/controller-runtime/pkg/webhook"

	runtimecatalog "sigs.k8s.io/cluster-api/api/runtime/catalog"
	runtimehooksv1 "sigs.k8s.io/cluster-api/api/runtime/hooks/v1alpha1"
)

// DefaultPort is the port of servers that set none.
const DefaultPort = 9443

// Options configure a Server.
type Options struct {
	// Catalog has the hooks that can be served. Required; the hook Discovery must be registered in it.
	Catalog *runtimecatalog.Catalog

	// Host is the address to listen on. Defaults to all addresses.
	Host string
	// Port is the port to listen on. Defaults to 9443.
	Port int

	// CertDir is the directory of the serving certificate, which is read again when it changes. Defaults to
	// <directory for temporary files>/k8s-webhook-server/serving-certs.
	CertDir string
	// CertName is the file name of the certificate. Defaults to tls.crt.
	CertName string
	// KeyName is the file name of the private key. Defaults to tls.key.
	KeyName string
	// ClientCAName is the file name, in CertDir, of the CA that must have signed the certificates of clients. Defaults to none. The core
	// manager has a client certificate if its flags --runtime-extension-client-cert-file and --runtime-extension-client-key-file are set.
	ClientCAName string

	// TLSOpts change the TLS configuration.
	TLSOpts []func(*tls.Config)

	// Webhooks is a server to add the extensions to, such as that of a manager. It is the caller's to start, and the options above, except
	// Catalog, have no effect. Defaults to none: Start serves.
	Webhooks webhook.Server
}

// ExtensionHandler is one extension.
type ExtensionHandler struct {
	// Hook is the hook, such as runtimehooksv1.BeforeClusterCreate. Required.
	Hook runtimecatalog.Hook

	// Name is unique on the server: a DNS label. Required.
	Name string

	// HandlerFunc is called for each request, concurrently: a func(context.Context, *<Hook>Request, *<Hook>Response). Required. Its
	// context ends when the caller gives up. A response without a status is a success; a panic is answered with a failure.
	HandlerFunc runtimecatalog.Hook

	// TimeoutSeconds is how long a call may take, at most 30. When unset, callers wait 10 seconds.
	TimeoutSeconds *int32

	// FailurePolicy is what callers do when they cannot get a response. When unset, they fail.
	FailurePolicy *runtimehooksv1.FailurePolicy
}

// Server serves extensions.
type Server struct {
	catalog   *runtimecatalog.Catalog
	discovery runtimecatalog.GroupVersionHook
	webhooks  webhook.Server
	handlers  []runtimehooksv1.ExtensionHandler
}

// New returns a server without extensions. It fails without a Catalog, or if the hook Discovery is not in it.
func New(o Options) (*Server, error) {
	if o.Catalog == nil {
		return nil, errors.New("cannot create a server of extensions without Options.Catalog")
	}
	gv := runtimehooksv1.GroupVersion
	discovery := runtimecatalog.GroupVersionHook{Group: gv.Group, Version: gv.Version, Hook: "Discovery"}
	if !o.Catalog.IsHookRegistered(discovery) {
		return nil, fmt.Errorf("cannot serve hook %s, which is not registered: register it with runtimehooksv1.AddToCatalog", discovery)
	}
	if o.Port <= 0 {
		o.Port = DefaultPort
	}
	if o.Webhooks == nil {
		o.Webhooks = webhook.NewServer(webhook.Options{
			Host: o.Host, Port: o.Port, CertDir: o.CertDir, CertName: o.CertName, KeyName: o.KeyName, ClientCAName: o.ClientCAName,
			TLSOpts: o.TLSOpts, WebhookMux: http.NewServeMux(),
		})
	}
	s := &Server{catalog: o.Catalog, discovery: discovery, handlers: []runtimehooksv1.ExtensionHandler{}, webhooks: o.Webhooks}
	discover := func(_ context.Context, _ *runtimehooksv1.DiscoveryRequest, response *runtimehooksv1.DiscoveryResponse) {
		response.SetStatus(runtimehooksv1.ResponseStatusSuccess)
		response.Handlers = s.handlers
	}
	serve, err := newHandler(o.Catalog, discovery, discover)
	if err != nil {
		return nil, err
	}
	s.webhooks.Register(runtimecatalog.GVHToPath(discovery, ""), serve)
	return s, nil
}

// AddExtensionHandler adds an extension. It fails if the hook is not in the catalog, the function has other arguments than the hook, the
// name is no DNS label or not unique, or the timeout or the failure policy is invalid. It must not be called after Start.
func (s *Server) AddExtensionHandler(h ExtensionHandler) error {
	hook, err := s.catalog.GroupVersionHook(h.Hook)
	if err != nil {
		return fmt.Errorf("cannot add handler %q: %w", h.Name, err)
	}
	if err := s.check(hook, h); err != nil {
		return fmt.Errorf("cannot add handler %q for hook %s: %w", h.Name, hook, err)
	}
	serve, err := newHandler(s.catalog, hook, h.HandlerFunc)
	if err != nil {
		return fmt.Errorf("cannot add handler %q for hook %s: %w", h.Name, hook, err)
	}
	meta, err := s.catalog.Meta(hook)
	if err != nil {
		return fmt.Errorf("cannot add handler %q for hook %s: %w", h.Name, hook, err)
	}
	s.webhooks.Register(runtimecatalog.GVHToPath(hook, h.Name), serve)
	s.handlers = append(s.handlers, runtimehooksv1.ExtensionHandler{
		Name:           h.Name,
		RequestHook:    runtimehooksv1.GroupVersionHook{APIVersion: hook.GroupVersion().String(), Hook: hook.Hook},
		TimeoutSeconds: h.TimeoutSeconds, FailurePolicy: h.FailurePolicy, PayloadVersion: meta.PayloadVersion,
	})
	return nil
}

// check reports fields that would make the discovery of this server fail.
func (s *Server) check(hook runtimecatalog.GroupVersionHook, h ExtensionHandler) error {
	if hook == s.discovery {
		return errors.New("the server answers this hook itself")
	}
	if problems := validation.IsDNS1123Label(h.Name); len(problems) > 0 {
		return fmt.Errorf("the name is invalid: %s", strings.Join(problems, ", "))
	}
	if slices.ContainsFunc(s.handlers, func(other runtimehooksv1.ExtensionHandler) bool { return other.Name == h.Name }) {
		return errors.New("a handler with this name already exists")
	}
	if t := h.TimeoutSeconds; t != nil && (*t < 0 || *t > runtimehooksv1.MaxHandlersTimeoutSeconds) {
		return fmt.Errorf("TimeoutSeconds is %d, but must be between 0 and %d", *t, runtimehooksv1.MaxHandlersTimeoutSeconds)
	}
	if p := h.FailurePolicy; p != nil && *p != runtimehooksv1.FailurePolicyFail && *p != runtimehooksv1.FailurePolicyIgnore {
		return fmt.Errorf("FailurePolicy is %q, but must be %s or %s", *p, runtimehooksv1.FailurePolicyFail, runtimehooksv1.FailurePolicyIgnore)
	}
	return nil
}

// Start serves until the context ends, and then waits for running calls. It fails if it cannot listen or read the certificate.
func (s *Server) Start(ctx context.Context) error { return s.webhooks.Start(ctx) }

// NeedLeaderElection makes all replicas of a manager serve.
func (*Server) NeedLeaderElection() bool { return false }

// Healthy is a check for the health and readiness endpoints of a process: it fails until the server answers.
func (s *Server) Healthy(request *http.Request) error { return s.webhooks.StartedChecker()(request) }
