package extension

import (
	"context"
	"errors"
	"strings"

	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta1"
	runtimehooksv1 "sigs.k8s.io/cluster-api/exp/runtime/hooks/api/v1alpha1"
	"sigs.k8s.io/cluster-api/exp/runtime/server"
	"sigs.k8s.io/cluster-api/test/managers"
)

const (
	// retryAfterSeconds is in blocking responses.
	retryAfterSeconds = 1
	// configName is the name of the ExtensionConfig.
	configName = "record"
)

// Server is the extension.
type Server struct {
	client  client.Client
	serving *managers.Extension
}

// Start serves the extension until the context ends. The client is an administrator's; dir is a folder for the certificate.
func Start(ctx context.Context, c client.Client, dir string) (*Server, error) {
	serving, err := managers.NewExtension(dir, runtimehooksv1.AddToCatalog)
	if err != nil {
		return nil, err
	}
	s := &Server{client: c, serving: serving}
	if err := s.handlers(); err != nil {
		return nil, err
	}
	return s, serving.Serve(ctx)
}

// Register creates the ExtensionConfig, and returns when a manager has discovered the extension.
func (s *Server) Register(ctx context.Context) error {
	return s.serving.Register(ctx, s.client, configName, map[string]any{CalledLabel: "true"})
}

// handlers adds a handler for each hook.
func (s *Server) handlers() error {
	patches, err := newPatcher(s.client)
	if err != nil {
		return err
	}
	return errors.Join(
		patches.handlers(s.serving.Server),
		handle(s, runtimehooksv1.BeforeClusterCreate,
			func(r *runtimehooksv1.BeforeClusterCreateRequest) *clusterv1.Cluster { return &r.Cluster }),
		handle(s, runtimehooksv1.AfterControlPlaneInitialized,
			func(r *runtimehooksv1.AfterControlPlaneInitializedRequest) *clusterv1.Cluster { return &r.Cluster }),
		handle(s, runtimehooksv1.BeforeClusterUpgrade,
			func(r *runtimehooksv1.BeforeClusterUpgradeRequest) *clusterv1.Cluster { return &r.Cluster }),
		handle(s, runtimehooksv1.AfterControlPlaneUpgrade,
			func(r *runtimehooksv1.AfterControlPlaneUpgradeRequest) *clusterv1.Cluster { return &r.Cluster }),
		handle(s, runtimehooksv1.AfterClusterUpgrade,
			func(r *runtimehooksv1.AfterClusterUpgradeRequest) *clusterv1.Cluster { return &r.Cluster }),
		handle(s, runtimehooksv1.BeforeClusterDelete,
			func(r *runtimehooksv1.BeforeClusterDeleteRequest) *clusterv1.Cluster { return &r.Cluster }),
	)
}

// handle adds the handler of a hook with these types.
func handle[Request any, Response runtimehooksv1.ResponseObject](
	s *Server, hook func(*Request, Response), cluster func(*Request) *clusterv1.Cluster,
) error {
	gvh, err := s.serving.Catalog.GroupVersionHook(hook)
	if err != nil {
		return err
	}
	return s.serving.AddExtensionHandler(server.ExtensionHandler{
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
