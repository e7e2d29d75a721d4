package webhooks

import (
	"context"

	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"
)

// RequestedIn reports whether the client of the request in ctx wrote the object in a version, such as "v1beta2". It is false without a
// request.
func RequestedIn(ctx context.Context, version string) bool {
	req, err := admission.RequestFromContext(ctx)
	if err != nil {
		return false
	}
	if req.RequestKind != nil {
		return req.RequestKind.Version == version
	}
	return req.Kind.Version == version
}
