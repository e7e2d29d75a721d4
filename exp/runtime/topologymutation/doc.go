// Package topologymutation is for extensions that patch and validate topologies: it decodes the templates of a request, computes patches
// from what a function changes in them, and reads variables.
//
//	func (h *handlers) GeneratePatches(
//		ctx context.Context, request *runtimehooksv1.GeneratePatchesRequest, response *runtimehooksv1.GeneratePatchesResponse,
//	) {
//		topologymutation.WalkTemplates(ctx, h.decoder, request, response,
//			func(
//				ctx context.Context, template runtime.Object,
//				variables map[string]apiextensionsv1.JSON, holder runtimehooksv1.HolderReference,
//			) error {
//				switch template := template.(type) {
//				case *controlplanev1.KubeadmControlPlaneTemplate:
//					...
//				}
//				return nil
//			})
//	}
//
// What does not belong here: applying patches, which Cluster API does.
package topologymutation
