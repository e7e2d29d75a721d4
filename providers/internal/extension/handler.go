package extension

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	runtimecatalog "sigs.k8s.io/cluster-api/api/runtime/catalog"
	runtimev1 "sigs.k8s.io/cluster-api/api/runtime/v1beta2"
	"sigs.k8s.io/cluster-api/providers/internal/extension/wire"
	"sigs.k8s.io/cluster-api/sdk/condition"
)

// handler is a handler of an ExtensionConfig.
type handler struct {
	runtimev1.ExtensionHandler
	config *runtimev1.ExtensionConfig
}

// serves reports whether the handler is for a hook.
func (h handler) serves(hook runtimecatalog.GroupVersionHook) bool {
	return h.RequestHook.Hook == hook.Hook && h.RequestHook.APIVersion == hook.GroupVersion().String()
}

// call returns a call of the handler.
func (h handler) call(hook runtimecatalog.GroupVersionHook) wire.Call {
	seconds := cmp.Or(h.TimeoutSeconds, runtimev1.DefaultHandlersTimeoutSeconds)
	return wire.Call{
		Hook: hook, Handler: strings.TrimSuffix(h.Name, "."+h.config.Name), Timeout: time.Duration(seconds) * time.Second,
	}
}

func (h handler) ignoresFailures() bool {
	return h.FailurePolicy == runtimev1.FailurePolicyIgnore
}

func (h handler) wantsV1Beta2() bool { return h.PayloadVersion == clusterv1.GroupVersion.Version }

// settings returns the settings of the ExtensionConfig, overlaid by others.
func (h handler) settings(over map[string]string) map[string]string {
	if len(h.config.Spec.Settings)+len(over) == 0 {
		return nil
	}
	all := maps.Clone(h.config.Spec.Settings)
	if all == nil {
		all = map[string]string{}
	}
	maps.Copy(all, over)
	return all
}

// NotReadyError is the error of a call while an ExtensionConfig has not been discovered.
type NotReadyError struct {
	// Config is the name of the ExtensionConfig.
	Config string
}

// Error implements error.
func (e *NotReadyError) Error() string {
	return fmt.Sprintf("ExtensionConfig %s has not been discovered yet", e.Config)
}

// pending reports whether an ExtensionConfig is still to be discovered for the first time.
func pending(config *runtimev1.ExtensionConfig) bool {
	_, paused := config.Annotations[clusterv1.PausedAnnotation]
	return !paused && len(config.Status.Handlers) == 0 && !condition.Has(config, runtimev1.RuntimeExtensionDiscoveredV1Beta1Condition)
}

// configs returns the ExtensionConfigs of this manager, without those that are being deleted.
func (c *Client) configs(ctx context.Context) ([]*runtimev1.ExtensionConfig, error) {
	list := &runtimev1.ExtensionConfigList{}
	if err := c.reader.List(ctx, list); err != nil {
		return nil, fmt.Errorf("listing ExtensionConfigs: %w", err)
	}
	var out []*runtimev1.ExtensionConfig
	for i := range list.Items {
		if config := &list.Items[i]; config.DeletionTimestamp == nil && c.filter.Selects(config) {
			out = append(out, config)
		}
	}
	return out, nil
}

// handlers returns the handlers for a hook that are called for a namespace, sorted by name.
func (c *Client) handlers(ctx context.Context, hook runtimecatalog.GroupVersionHook, namespace string) ([]handler, error) {
	configs, err := c.configs(ctx)
	if err != nil {
		return nil, err
	}
	in := &namespaceLabels{client: c, name: namespace}
	var out []handler
	for _, config := range configs {
		found := slices.Collect(handlersOf(config, hook))
		if len(found) == 0 && !pending(config) {
			continue
		}
		selected, err := in.selectedBy(ctx, config)
		switch {
		case err != nil:
			return nil, err
		case selected && pending(config):
			return nil, &NotReadyError{Config: config.Name}
		case selected:
			out = append(out, found...)
		}
	}
	slices.SortFunc(out, func(a, b handler) int { return cmp.Compare(a.Name, b.Name) })
	return out, nil
}

// handlersOf returns the handlers of an ExtensionConfig for a hook.
func handlersOf(config *runtimev1.ExtensionConfig, hook runtimecatalog.GroupVersionHook) func(yield func(handler) bool) {
	return func(yield func(handler) bool) {
		for _, h := range config.Status.Handlers {
			if one := (handler{h, config}); one.serves(hook) && !yield(one) {
				return
			}
		}
	}
}

// handler returns the handler with a name, "<handler>.<ExtensionConfig>", for a hook and a namespace.
func (c *Client) handler(ctx context.Context, hook runtimecatalog.GroupVersionHook, namespace, name string) (handler, error) {
	_, configName, ok := strings.Cut(name, ".")
	if !ok {
		return handler{}, fmt.Errorf("invalid name %q of an extension: it must be <handler>.<ExtensionConfig>", name)
	}
	config := &runtimev1.ExtensionConfig{}
	if err := c.reader.Get(ctx, client.ObjectKey{Name: configName}, config); err != nil {
		return handler{}, fmt.Errorf("reading ExtensionConfig %s of extension %s: %w", configName, name, err)
	}
	switch i := slices.IndexFunc(config.Status.Handlers, func(h runtimev1.ExtensionHandler) bool { return h.Name == name }); {
	case !c.filter.Selects(config):
		return handler{}, fmt.Errorf("cannot call extension %s: ExtensionConfig %s is not reconciled by this manager (--watch-filter)",
			name, configName)
	case config.DeletionTimestamp != nil:
		return handler{}, fmt.Errorf("cannot call extension %s: ExtensionConfig %s is being deleted", name, configName)
	case pending(config):
		return handler{}, &NotReadyError{Config: configName}
	case i < 0:
		return handler{}, fmt.Errorf("ExtensionConfig %s has no handler %s: see its status", configName, name)
	default:
		h := handler{config.Status.Handlers[i], config}
		if !h.serves(hook) {
			return handler{}, fmt.Errorf("extension %s is for hook %s of %s, not for %s of %s",
				name, h.RequestHook.Hook, h.RequestHook.APIVersion, hook.Hook, hook.GroupVersion())
		}
		selected, err := (&namespaceLabels{client: c, name: namespace}).selectedBy(ctx, config)
		if err == nil && !selected {
			err = fmt.Errorf("extension %s cannot be called for namespace %s: spec.namespaceSelector of ExtensionConfig %s does not select it",
				name, namespace, configName)
		}
		return h, err
	}
}

// namespaceLabels are the labels of a namespace. They are only read if a selector needs them.
type namespaceLabels struct {
	client *Client
	name   string
	labels labels.Set
	read   bool
}

func (n *namespaceLabels) selectedBy(ctx context.Context, config *runtimev1.ExtensionConfig) (bool, error) {
	wanted := config.Spec.NamespaceSelector
	if wanted == nil {
		return true, nil
	}
	selector, err := metav1.LabelSelectorAsSelector(wanted)
	if err != nil {
		return false, fmt.Errorf("invalid spec.namespaceSelector of ExtensionConfig %s: %w", config.Name, err)
	}
	if selector.Empty() {
		return true, nil
	}
	if !n.read {
		namespace := &metav1.PartialObjectMetadata{}
		namespace.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Namespace"))
		if err := n.client.reader.Get(ctx, client.ObjectKey{Name: n.name}, namespace); err != nil {
			return false, fmt.Errorf("reading namespace %s for the spec.namespaceSelector of ExtensionConfig %s: %w", n.name, config.Name, err)
		}
		n.labels, n.read = namespace.Labels, true
	}
	return selector.Matches(n.labels), nil
}
