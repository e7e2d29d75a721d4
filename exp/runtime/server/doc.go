// Package server serves runtime extensions: typed functions, one for each handler, over HTTPS. It answers the hook Discovery from the
// registered handlers.
//
//	s, err := server.New(server.Options{Catalog: catalog})
//	...
//	err = s.AddExtensionHandler(server.ExtensionHandler{
//		Hook:        runtimehooksv1.BeforeClusterCreate,
//		Name:        "before-cluster-create",
//		HandlerFunc: func(
//			ctx context.Context, request *runtimehooksv1.BeforeClusterCreateRequest, response *runtimehooksv1.BeforeClusterCreateResponse,
//		) {
//		},
//	})
//	...
//	err = s.Start(ctx)
//
// What does not belong here: the hooks (exp/runtime/hooks/api), and calling extensions.
package server
