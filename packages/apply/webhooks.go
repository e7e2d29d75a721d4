package apply

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

const (
	// webhookPoll is how often an API server is asked whether it can call a webhook: nothing tells when it has noticed a CA bundle.
	webhookPoll = 200 * time.Millisecond
	// webhookProbes is how many kinds of one configuration are tried at most.
	webhookProbes = 5
)

// WaitWebhooks waits until the API server can call the admission and conversion webhooks behind the configurations that a list of options
// selects, at most for timeout. Managers, or cert-manager, write the CA bundles, and the API server notices that a moment later: until
// then it rejects every write. It is asked by dry runs: of objects in a namespace, without any field.
func WaitWebhooks(
	ctx context.Context, c client.Client, namespace string, timeout time.Duration, report func(reason string), selected ...client.ListOption,
) error {
	probes, err := webhookProbesOf(ctx, c, namespace, selected)
	if err != nil {
		return err
	}
	var last error
	reported := false
	err = wait.PollUntilContextTimeout(ctx, webhookPoll, timeout, true, func(context.Context) (bool, error) {
		// The requests are made without the deadline: near it, the client's rate limiter would reject them.
		for len(probes) > 0 {
			if last = probes[0].failure(ctx, c); last != nil {
				if !reported {
					report("the API server cannot call its webhooks yet")
				}
				reported = true
				return false, nil
			}
			probes = probes[1:]
		}
		return true, nil
	})
	if wait.Interrupted(err) && ctx.Err() == nil {
		return fmt.Errorf("the API server cannot call the webhooks after %s: %w", timeout, last)
	}
	return err
}

// webhookProbe has an object for each of some kinds of one configuration.
type webhookProbe []*unstructured.Unstructured

// failure returns why the API server cannot call the webhook; nil if it can, or if that cannot be found out.
func (p webhookProbe) failure(ctx context.Context, c client.Client) error {
	for _, o := range p {
		err := c.Create(ctx, o.DeepCopy(), client.DryRunAll)
		switch {
		case err == nil:
			return nil
		case isUncallable(err):
			return err
		case strings.Contains(err.Error(), "admission webhook "):
			return nil // It has denied the object.
		}
	}
	return nil
}

// isUncallable reports whether an API server could not call a webhook.
func isUncallable(err error) bool {
	return apierrors.IsInternalError(err) && (strings.Contains(err.Error(), "failed calling webhook") ||
		strings.Contains(err.Error(), "conversion webhook for "))
}

// webhookProbesOf returns a probe for each configuration that has webhooks for custom resources.
func webhookProbesOf(ctx context.Context, c client.Client, namespace string, selected []client.ListOption) ([]webhookProbe, error) {
	mutating, validating := &admissionv1.MutatingWebhookConfigurationList{}, &admissionv1.ValidatingWebhookConfigurationList{}
	for _, list := range []client.ObjectList{mutating, validating} {
		if err := c.List(ctx, list, selected...); err != nil {
			return nil, fmt.Errorf("cannot list webhook configurations: %w", err)
		}
	}
	var all []webhookProbe
	for i := range mutating.Items {
		var rules []admissionv1.RuleWithOperations
		for _, w := range mutating.Items[i].Webhooks {
			rules = append(rules, blocking(w.FailurePolicy, w.Rules)...)
		}
		all = append(all, probeOf(c.RESTMapper(), namespace, rules))
	}
	for i := range validating.Items {
		var rules []admissionv1.RuleWithOperations
		for _, w := range validating.Items[i].Webhooks {
			rules = append(rules, blocking(w.FailurePolicy, w.Rules)...)
		}
		all = append(all, probeOf(c.RESTMapper(), namespace, rules))
	}
	return slices.DeleteFunc(all, func(p webhookProbe) bool { return len(p) == 0 }), nil
}

// blocking returns the rules of a webhook whose failures are errors.
func blocking(policy *admissionv1.FailurePolicyType, rules []admissionv1.RuleWithOperations) []admissionv1.RuleWithOperations {
	if ptr.Deref(policy, admissionv1.Fail) != admissionv1.Fail {
		return nil
	}
	return rules
}

// probeOf returns a probe of webhooks with these rules. Rules for built-in kinds, or for all kinds, are of other webhooks than those of
// providers' own kinds.
func probeOf(mapper meta.RESTMapper, namespace string, rules []admissionv1.RuleWithOperations) webhookProbe {
	var p webhookProbe
	for _, r := range rules {
		creates := slices.Contains(r.Operations, admissionv1.Create) || slices.Contains(r.Operations, admissionv1.OperationAll)
		if len(p) == webhookProbes || !creates || len(r.APIGroups) == 0 || len(r.APIVersions) == 0 || len(r.Resources) == 0 ||
			!strings.Contains(r.APIGroups[0], ".") || isBuiltIn(r.APIGroups[0]) {
			continue
		}
		kind, err := mapper.KindFor(schema.GroupVersionResource{Group: r.APIGroups[0], Version: r.APIVersions[0], Resource: r.Resources[0]})
		if err != nil {
			continue // It has a wildcard, or a subresource; or the kind is not installed.
		}
		o := &unstructured.Unstructured{}
		o.SetGroupVersionKind(kind)
		o.SetGenerateName("clusterctl-dry-run-")
		if mapping, err := mapper.RESTMapping(kind.GroupKind(), kind.Version); err == nil && mapping.Scope.Name() == meta.RESTScopeNameNamespace {
			o.SetNamespace(namespace)
		}
		p = append(p, o)
	}
	return p
}

// isBuiltIn reports whether a group is of Kubernetes itself.
func isBuiltIn(group string) bool {
	return strings.HasSuffix(group, ".k8s.io") && !strings.HasSuffix(group, ".x-k8s.io")
}
