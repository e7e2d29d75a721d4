// Package webhooks serves defaulting and validating webhooks.
//
// Unlike those of controller-runtime, defaulting webhooks only patch the fields that defaulting changed. Sending the whole object as
// the Go types encode it would add empty objects and remove empty lists, which server-side apply would attribute to the client. Objects of
// other versions than that of a webhook are converted for it, and its patches for them. What only an older version can express has webhooks
// of that version (Older).
//
// Defaults and validations themselves do not belong here.
package webhooks

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"reflect"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"sigs.k8s.io/cluster-api/sdk/apiversion"
)

// Defaulter sets defaults. The context has the request (admission.RequestFromContext), with the old object of an update.
type Defaulter[T client.Object] interface {
	Default(ctx context.Context, obj T) error
}

// Validator accepts or rejects an object; see controller-runtime.
type Validator[T client.Object] = admission.Validator[T]

// Register serves the webhooks of a kind on the manager's webhook server, at the paths /mutate-<group>-<version>-<kind> and
// /validate-<group>-<version>-<kind>. Either may be nil. If the manager converts the kind, they are served at the paths of all its
// versions, and objects of any version are admitted as those of the webhook's version; those of older versions by their own webhooks first.
func Register[T client.Object](mgr ctrl.Manager, empty T, d Defaulter[T], v Validator[T], older ...Older) error {
	scheme := mgr.GetScheme()
	gvk, err := apiutil.GVKForObject(empty, scheme)
	if err != nil {
		return fmt.Errorf("registering webhooks of %T: %w", empty, err)
	}
	mutate, validate := map[string]admission.Handler{}, map[string]admission.Handler{}
	for _, o := range older {
		written, err := apiutil.GVKForObject(o.empty, scheme)
		if err != nil {
			return fmt.Errorf("registering webhooks of %T: %w", o.empty, err)
		}
		if o.mutate != nil {
			mutate[written.Version] = o.mutate
		}
		if o.validate != nil {
			validate[written.Version] = o.validate(scheme)
		}
	}
	registry := apiversion.BoundaryOf(mgr.GetClient()).Registry()
	serve := func(verb string, handler *admission.Webhook, older map[string]admission.Handler) {
		versions := []string{gvk.Version}
		if registry != nil && slices.Contains(registry.Versions(gvk.GroupKind()), gvk.Version) {
			versions = registry.Versions(gvk.GroupKind())
			handler = &admission.Webhook{
				Handler: versioned{inner: handler.Handler, kind: gvk, registry: registry, scheme: scheme, older: older},
			}
		}
		for _, version := range versions {
			mgr.GetWebhookServer().Register(path(verb, gvk.GroupKind().WithVersion(version)), handler)
		}
	}
	if d != nil {
		serve("mutate", newDefaulting(empty, d), mutate)
	}
	if v != nil {
		serve("validate", admission.WithValidator(scheme, v), validate)
	}
	return nil
}

// path returns the path of the webhook of a kind; verb is mutate or validate.
func path(verb string, gvk schema.GroupVersionKind) string {
	return "/" + verb + "-" + strings.ReplaceAll(gvk.Group, ".", "-") + "-" + gvk.Version + "-" + strings.ToLower(gvk.Kind)
}

// newDefaulting returns a webhook that changes only what d changes.
func newDefaulting[T client.Object](empty T, d Defaulter[T]) *admission.Webhook {
	return &admission.Webhook{Handler: defaulting[T]{empty: empty, defaulter: d}}
}

type defaulting[T client.Object] struct {
	empty     T
	defaulter Defaulter[T]
}

// Handle implements admission.Handler.
func (h defaulting[T]) Handle(ctx context.Context, req admission.Request) admission.Response {
	raw := req.Object.Raw
	if len(raw) == 0 {
		return admission.Allowed("")
	}
	obj := h.empty.DeepCopyObject().(T)
	if err := decodeObject(req, obj); err != nil {
		return admission.Errored(http.StatusBadRequest, err)
	}
	if obj.GetNamespace() == "" {
		obj.SetNamespace(req.Namespace)
	}
	before, err := json.Marshal(obj)
	if err != nil {
		return admission.Errored(http.StatusInternalServerError, err)
	}
	if err := h.defaulter.Default(admission.NewContextWithRequest(ctx, req), obj); err != nil {
		return refused(err)
	}
	defaulted, err := carryOver(raw, before, obj)
	if err != nil {
		return admission.Errored(http.StatusInternalServerError,
			fmt.Errorf("defaulting %s %s/%s: %w", req.Kind.Kind, req.Namespace, req.Name, err))
	}
	operations, err := operationsBetween(raw, defaulted)
	if err != nil {
		return admission.Errored(http.StatusInternalServerError, err)
	}
	return admission.Patched("", operations...)
}

// decodeObject decodes the object of a request.
func decodeObject(req admission.Request, into any) error {
	if err := json.Unmarshal(req.Object.Raw, into); err != nil {
		return fmt.Errorf("decoding %s %s/%s: %w%s", req.Kind.Kind, req.Namespace, req.Name, err, quotingHint(err))
	}
	return nil
}

// quotingHint says what to do about a value such as true or 1.30 that YAML does not read as a text.
func quotingHint(err error) string {
	var wrong *json.UnmarshalTypeError
	if errors.As(err, &wrong) && wrong.Type.Kind() == reflect.String && (wrong.Value == "bool" || strings.HasPrefix(wrong.Value, "number")) {
		return ": the value must be a text: quote it, as in \"true\" or \"1\""
	}
	return ""
}

func refused(err error) admission.Response {
	if status, ok := err.(apierrors.APIStatus); ok { // Only an error that was created as an API status counts, not a wrapped one.
		result := status.Status()
		response := admission.Denied(result.Message)
		response.Result = &result
		return response
	}
	return admission.Denied(err.Error())
}
