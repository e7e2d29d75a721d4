package extensionconfig

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	ctrl "sigs.k8s.io/controller-runtime"

	runtimehooksv1 "sigs.k8s.io/cluster-api/api/runtime/hooks/v1alpha1"
	runtimev1 "sigs.k8s.io/cluster-api/api/runtime/v1beta2"
	"sigs.k8s.io/cluster-api/providers/internal/extension"
	"sigs.k8s.io/cluster-api/providers/internal/extension/wire"
	"sigs.k8s.io/cluster-api/sdk/condition"
	"sigs.k8s.io/cluster-api/sdk/step"
)

const (
	// discoveryTimeout is the timeout of a discovery.
	discoveryTimeout = 10 * time.Second
	// discoveryFailed is the beginning of the condition's message.
	discoveryFailed = "error in discovery"
	// maxNamed is the maximum number of handlers in an event.
	maxNamed = 10
)

// discover asks the server for its handlers.
func (c *Controller) discover(ctx context.Context, config *runtimev1.ExtensionConfig) (step.Result, error) {
	handlers, err := c.ask(ctx, config)
	if err != nil {
		err = fmt.Errorf("%s: %w", discoveryFailed, err)
		if was := condition.Get(config, runtimev1.RuntimeExtensionDiscoveredV1Beta1Condition); was == nil || was.Message != err.Error() {
			step.WarningTransition(ctx, runtimev1.DiscoveryFailedV1Beta1Reason, "%v", err)
		}
		return step.Done(), &step.Error{Reason: runtimev1.DiscoveryFailedV1Beta1Reason, Err: err}
	}
	if !equality.Semantic.DeepEqual(config.Status.Handlers, handlers) {
		config.Status.Handlers = handlers
		step.Transition(ctx, "Discovered", "Discovered %s", listed(handlers))
	}
	return step.Done(), nil
}

// ask returns the handlers of the server, sorted by name.
func (c *Controller) ask(ctx context.Context, config *runtimev1.ExtensionConfig) ([]runtimev1.ExtensionHandler, error) {
	to, err := wire.EndpointOf(config.Spec.ClientConfig)
	if err != nil {
		return nil, err
	}
	hook, err := c.hooks.GroupVersionHook(runtimehooksv1.Discovery)
	if err != nil {
		return nil, err
	}
	call, response := wire.Call{Hook: hook, Timeout: discoveryTimeout}, &runtimehooksv1.DiscoveryResponse{}
	log := ctrl.LoggerFrom(ctx)
	if err := c.caller.Post(ctx, to, call, &runtimehooksv1.DiscoveryRequest{}, response); err != nil {
		if failed, ok := errors.AsType[*wire.Error](err); ok {
			log.Info("The discovery failed", "reason", failed.Detail())
		}
		return nil, err
	}
	if response.Status == runtimehooksv1.ResponseStatusFailure {
		message := extension.Shown(response.Message)
		log.Info("The server reported a failure", "message", message)
		return nil, fmt.Errorf("the server reported a failure: %s", message)
	}
	return handlersOf(config, response, c.hooks)
}

// listed returns the names of handlers in words.
func listed(handlers []runtimev1.ExtensionHandler) string {
	if len(handlers) == 0 {
		return "no extensions"
	}
	var names []string
	for _, h := range handlers[:min(len(handlers), maxNamed)] {
		names = append(names, h.Name)
	}
	text := strings.Join(names, ", ")
	if more := len(handlers) - maxNamed; more > 0 {
		text += fmt.Sprintf(", and %d more", more)
	}
	return text
}
