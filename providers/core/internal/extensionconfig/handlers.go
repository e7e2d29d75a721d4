package extensionconfig

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/utils/ptr"

	runtimecatalog "sigs.k8s.io/cluster-api/api/runtime/catalog"
	runtimehooksv1 "sigs.k8s.io/cluster-api/api/runtime/hooks/v1alpha1"
	runtimev1 "sigs.k8s.io/cluster-api/api/runtime/v1beta2"
	"sigs.k8s.io/cluster-api/providers/internal/extension"
	"sigs.k8s.io/cluster-api/sdk/condition"
)

const (
	// maxHandlers bounds the status. It is many times the number of hooks.
	maxHandlers = 500
	// maxProblems is the maximum number of handlers that an error is about.
	maxProblems = 3
)

// allHooks returns the hooks that handlers can be for. CanUpdateMachineSet is one of them, although no controller calls it: extensions of
// v1.12 and later have handlers for it.
func allHooks() (*runtimecatalog.Catalog, error) {
	all := runtimecatalog.New()
	return all, runtimehooksv1.AddToCatalog(all)
}

// handlersOf returns the handlers of a response as they are in the status: with full names and defaults, sorted by name. Of a
// response with an invalid handler, none are returned.
func handlersOf(
	config *runtimev1.ExtensionConfig, response *runtimehooksv1.DiscoveryResponse, hooks *runtimecatalog.Catalog,
) ([]runtimev1.ExtensionHandler, error) {
	if n := len(response.Handlers); n > maxHandlers {
		return nil, fmt.Errorf("the server has %d handlers: at most %d are supported", n, maxHandlers)
	}
	var out []runtimev1.ExtensionHandler
	var problems []string
	seen := map[string]bool{}
	for i, h := range response.Handlers {
		h.PayloadVersion = cmp.Or(h.PayloadVersion, config.Annotations[runtimev1.PayloadVersionAnnotation])
		wrong := check(h, hooks)
		if seen[h.Name] {
			wrong = append(wrong, "name must be unique")
		}
		seen[h.Name] = true
		if len(wrong) > 0 && len(problems) < maxProblems {
			problems = append(problems, fmt.Sprintf("handlers[%d] %q: %s", i, condition.Brief(h.Name), strings.Join(wrong, ", ")))
		}
		out = append(out, runtimev1.ExtensionHandler{
			Name:           h.Name + "." + config.Name,
			RequestHook:    runtimev1.GroupVersionHook{APIVersion: h.RequestHook.APIVersion, Hook: h.RequestHook.Hook},
			TimeoutSeconds: timeoutOf(h),
			FailurePolicy:  runtimev1.FailurePolicy(ptr.Deref(h.FailurePolicy, runtimehooksv1.FailurePolicyFail)),
			PayloadVersion: h.PayloadVersion,
		})
	}
	if len(problems) > 0 {
		return nil, fmt.Errorf("the response of the server is invalid: %s", strings.Join(problems, "; "))
	}
	slices.SortFunc(out, func(a, b runtimev1.ExtensionHandler) int { return cmp.Compare(a.Name, b.Name) })
	return out, nil
}

// timeoutOf returns the timeout of a handler in seconds. A zero is the longest one, because the status has none.
func timeoutOf(h runtimehooksv1.ExtensionHandler) int32 {
	return cmp.Or(ptr.Deref(h.TimeoutSeconds, runtimev1.DefaultHandlersTimeoutSeconds), runtimehooksv1.MaxHandlersTimeoutSeconds)
}

// check returns what is wrong with a handler. Texts quote only names of hooks and versions, truncated.
func check(h runtimehooksv1.ExtensionHandler, hooks *runtimecatalog.Catalog) []string {
	var wrong []string
	if len(validation.IsDNS1123Label(h.Name)) > 0 {
		wrong = append(wrong, "name must be a DNS label, such as wait-for-backup")
	}
	if t := h.TimeoutSeconds; t != nil && (*t < 0 || *t > runtimehooksv1.MaxHandlersTimeoutSeconds) {
		wrong = append(wrong, fmt.Sprintf("timeoutSeconds must be between 0 and %d, not %d", runtimehooksv1.MaxHandlersTimeoutSeconds, *t))
	}
	if p := h.FailurePolicy; p != nil && *p != runtimehooksv1.FailurePolicyFail && *p != runtimehooksv1.FailurePolicyIgnore {
		wrong = append(wrong, "failurePolicy must be Fail or Ignore")
	}
	if !extension.Supported(h.PayloadVersion) {
		wrong = append(wrong, fmt.Sprintf("payloadVersion must be v1beta1 or v1beta2, not %q", condition.Brief(h.PayloadVersion)))
	}
	gv, err := schema.ParseGroupVersion(h.RequestHook.APIVersion)
	hook := runtimecatalog.GroupVersionHook{Group: gv.Group, Version: gv.Version, Hook: h.RequestHook.Hook}
	if err != nil || !hooks.IsHookRegistered(hook) {
		wrong = append(wrong, fmt.Sprintf("requestHook %q of %q is unknown to this version of Cluster API",
			condition.Brief(h.RequestHook.Hook), condition.Brief(h.RequestHook.APIVersion)))
	}
	return wrong
}
