package extension

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta1"
	runtimecatalog "sigs.k8s.io/cluster-api/exp/runtime/catalog"
	runtimehooksv1 "sigs.k8s.io/cluster-api/exp/runtime/hooks/api/v1alpha1"
	"sigs.k8s.io/cluster-api/exp/runtime/server"
	"sigs.k8s.io/cluster-api/provider/pki"
	"sigs.k8s.io/cluster-api/test/managers"
)

const (
	host = "127.0.0.1"
	// retryAfterSeconds is in blocking responses.
	retryAfterSeconds = 1
	startTimeout      = time.Minute
	// configName is the name of the ExtensionConfig.
	configName = "record"
)

// Server is the extension.
type Server struct {
	client  client.Client
	catalog *runtimecatalog.Catalog
	url     string
	ca      []byte
}

// Start serves the extension until the context ends. The client is an administrator's; dir is a folder for the certificate.
func Start(ctx context.Context, c client.Client, dir string) (*Server, error) {
	s := &Server{client: c, catalog: runtimecatalog.New()}
	if err := s.issue(dir); err != nil {
		return nil, fmt.Errorf("issuing the certificate of the extension: %w", err)
	}
	port, err := managers.FreePort()
	if err != nil {
		return nil, err
	}
	s.url = "https://" + net.JoinHostPort(host, strconv.Itoa(port))
	if err := runtimehooksv1.AddToCatalog(s.catalog); err != nil {
		return nil, err
	}
	serving, err := server.New(server.Options{Catalog: s.catalog, Host: host, Port: port, CertDir: dir})
	if err != nil {
		return nil, err
	}
	if err := s.handlers(serving); err != nil {
		return nil, err
	}
	return s, listen(ctx, serving)
}

// listen starts the server, and returns when it responds.
func listen(ctx context.Context, serving *server.Server) error {
	failed := make(chan error, 1)
	go func() { failed <- serving.Start(ctx) }()
	err := wait.PollUntilContextTimeout(ctx, 20*time.Millisecond, startTimeout, true, func(context.Context) (bool, error) {
		select {
		case err := <-failed:
			return false, errors.Join(errors.New("the server ended"), err)
		default:
			return serving.Healthy(&http.Request{}) == nil, nil
		}
	})
	if err != nil {
		return fmt.Errorf("starting the extension: %w", err)
	}
	return nil
}

// issue issues a certificate, with a new CA.
func (s *Server) issue(dir string) error {
	ca, err := pki.NewCA(pki.ECDSA, time.Now())
	if err != nil {
		return err
	}
	trusted, err := ca.PEM()
	if err != nil {
		return err
	}
	s.ca = trusted.Certificate
	pair, err := ca.Issue(pki.Request{CommonName: "extension", IPs: []net.IP{net.IPv4(127, 0, 0, 1)}, Validity: 7 * 24 * time.Hour}, time.Now())
	if err != nil {
		return err
	}
	return errors.Join(
		os.MkdirAll(dir, 0o700),
		os.WriteFile(filepath.Join(dir, "tls.crt"), pair.Certificate, 0o600),
		os.WriteFile(filepath.Join(dir, "tls.key"), pair.Key, 0o600),
	)
}

// handlers adds a handler for each hook.
func (s *Server) handlers(to *server.Server) error {
	patches, err := newPatcher(s.client)
	if err != nil {
		return err
	}
	return errors.Join(
		patches.handlers(to),
		handle(s, to, runtimehooksv1.BeforeClusterCreate, func(r *runtimehooksv1.BeforeClusterCreateRequest) *clusterv1.Cluster { return &r.Cluster }),
		handle(s, to, runtimehooksv1.AfterControlPlaneInitialized, func(r *runtimehooksv1.AfterControlPlaneInitializedRequest) *clusterv1.Cluster { return &r.Cluster }),
		handle(s, to, runtimehooksv1.BeforeClusterUpgrade, func(r *runtimehooksv1.BeforeClusterUpgradeRequest) *clusterv1.Cluster { return &r.Cluster }),
		handle(s, to, runtimehooksv1.AfterControlPlaneUpgrade, func(r *runtimehooksv1.AfterControlPlaneUpgradeRequest) *clusterv1.Cluster { return &r.Cluster }),
		handle(s, to, runtimehooksv1.AfterClusterUpgrade, func(r *runtimehooksv1.AfterClusterUpgradeRequest) *clusterv1.Cluster { return &r.Cluster }),
		handle(s, to, runtimehooksv1.BeforeClusterDelete, func(r *runtimehooksv1.BeforeClusterDeleteRequest) *clusterv1.Cluster { return &r.Cluster }),
	)
}

// handle adds the handler of a hook with these types.
func handle[Request any, Response runtimehooksv1.ResponseObject](s *Server, to *server.Server, hook func(*Request, Response), cluster func(*Request) *clusterv1.Cluster) error {
	gvh, err := s.catalog.GroupVersionHook(hook)
	if err != nil {
		return err
	}
	return to.AddExtensionHandler(server.ExtensionHandler{
		Hook: hook, Name: strings.ToLower(gvh.Hook), HandlerFunc: func(ctx context.Context, request *Request, response Response) {
			s.answer(ctx, gvh.Hook, cluster(request).Namespace, response)
		},
	})
}

// answer records the call, and blocks if the record demands it.
func (s *Server) answer(ctx context.Context, hook, namespace string, response runtimehooksv1.ResponseObject) {
	now, err := record(ctx, s.client, namespace, hook)
	if err != nil {
		fail(response, err)
		return
	}
	response.SetStatus(runtimehooksv1.ResponseStatusSuccess)
	if blocking, ok := response.(runtimehooksv1.RetryResponseObject); ok && Blocks(now, hook) {
		blocking.SetRetryAfterSeconds(retryAfterSeconds)
		blocking.SetMessage("the record says so")
	}
}

// Register creates the ExtensionConfig, and returns when a manager has discovered the extension.
func (s *Server) Register(ctx context.Context) error {
	config := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{
		"clientConfig":      map[string]any{"url": s.url, "caBundle": base64.StdEncoding.EncodeToString(s.ca)},
		"namespaceSelector": map[string]any{"matchLabels": map[string]any{CalledLabel: "true"}},
	}}}
	config.SetAPIVersion("runtime.cluster.x-k8s.io/v1alpha1")
	config.SetKind("ExtensionConfig")
	config.SetName(configName)
	var last error
	err := wait.PollUntilContextTimeout(ctx, 50*time.Millisecond, startTimeout, true, func(ctx context.Context) (bool, error) {
		if config.GetUID() == "" {
			last = s.client.Create(ctx, config) // The manager's webhook may not serve yet.
			return false, nil
		}
		last = s.client.Get(ctx, client.ObjectKeyFromObject(config), config)
		handlers, _, _ := unstructured.NestedSlice(config.Object, "status", "handlers")
		return last == nil && len(handlers) > 0, nil
	})
	if err != nil {
		return fmt.Errorf("waiting for the discovery of the extension: %w", errors.Join(err, last))
	}
	return nil
}
