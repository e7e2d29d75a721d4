// Package admission serves the defaulting and validating webhooks of our kinds.
//
// It differs from controller-runtime's in one point: a defaulting webhook changes only the fields that
// defaulting changed. Sending the whole object back as our Go types spell it would add empty objects and
// drop empty lists, which server-side apply then counts as somebody's changes.
//
// What is valid and what a default is, each kind's own webhook package knows.
package admission

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"

	jsonpatch "github.com/evanphx/json-patch/v5"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"
)

// Defaulter fills in what an object leaves open. The request is in the context
// (admission.RequestFromContext), with the old object of an update.
type Defaulter[T client.Object] interface {
	Default(ctx context.Context, obj T) error
}

// Validator accepts or refuses an object; see controller-runtime.
type Validator[T client.Object] = admission.Validator[T]

// Register serves the webhooks of a kind on the manager's webhook server, under the paths that the wire
// contract names: /mutate-<group>-<version>-<kind> and /validate-<group>-<version>-<kind>. Either may be nil.
func Register[T client.Object](mgr ctrl.Manager, empty T, d Defaulter[T], v Validator[T]) error {
	gvk, err := apiutil.GVKForObject(empty, mgr.GetScheme())
	if err != nil {
		return fmt.Errorf("registering webhooks of %T: %w", empty, err)
	}
	server := mgr.GetWebhookServer()
	if d != nil {
		server.Register(path("mutate", gvk), newDefaulting(empty, d))
	}
	if v != nil {
		server.Register(path("validate", gvk), admission.WithValidator(mgr.GetScheme(), v))
	}
	return nil
}

// path is where the webhook of a kind is served; verb is mutate or validate.
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
	if err := json.Unmarshal(raw, obj); err != nil {
		return admission.Errored(http.StatusBadRequest, fmt.Errorf("decoding %s %s/%s: %w", req.Kind.Kind, req.Namespace, req.Name, err))
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
		return admission.Errored(http.StatusInternalServerError, fmt.Errorf("defaulting %s %s/%s: %w", req.Kind.Kind, req.Namespace, req.Name, err))
	}
	return admission.PatchResponseFromRaw(raw, defaulted)
}

// carryOver applies to raw what changed between before and after, and nothing else.
func carryOver(raw, before []byte, after any) ([]byte, error) {
	defaulted, err := json.Marshal(after)
	if err != nil {
		return nil, err
	}
	change, err := jsonpatch.CreateMergePatch(before, defaulted)
	if err != nil {
		return nil, err
	}
	if string(change) == "{}" {
		return raw, nil
	}
	return jsonpatch.MergePatch(raw, change)
}

func refused(err error) admission.Response {
	if status, ok := err.(apierrors.APIStatus); ok { // only an error made as an API status carries one
		result := status.Status()
		response := admission.Denied(result.Message)
		response.Result = &result
		return response
	}
	return admission.Denied(err.Error())
}
