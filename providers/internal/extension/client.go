package extension

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"time"
	"unicode"

	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	runtimecatalog "sigs.k8s.io/cluster-api/api/runtime/catalog"
	runtimehooksv1 "sigs.k8s.io/cluster-api/api/runtime/hooks/v1alpha1"
	runtimev1 "sigs.k8s.io/cluster-api/api/runtime/v1beta2"
	"sigs.k8s.io/cluster-api/providers/internal/extension/flowcontrol"
	"sigs.k8s.io/cluster-api/providers/internal/extension/wire"
	"sigs.k8s.io/cluster-api/sdk/condition"
	"sigs.k8s.io/cluster-api/sdk/conversion"
	"sigs.k8s.io/cluster-api/sdk/watch"
)

// maxMessage is the maximum size of the message of a response, in bytes: messages end up in conditions.
const maxMessage = 1000

// Options configure a Client.
type Options struct {
	// Reader reads ExtensionConfigs and the metadata of Namespaces from a cache.
	Reader client.Reader
	// Catalog has the hooks, those with payloads of v1beta2.
	Catalog *runtimecatalog.Catalog
	// Conversions converts payloads for extensions that want v1beta1. Nil: references get the version v1beta1, as in conversion.Shared.
	Conversions *conversion.Registry
	// Caller sends the requests.
	Caller *wire.Caller
	// Filter selects the ExtensionConfigs of this manager.
	Filter watch.Filter
	// Limiter limits the calls of slow and dead servers. If it is nil, nothing does.
	Limiter *flowcontrol.Limiter
}

// Client calls extensions. It is safe for concurrent use.
type Client struct {
	reader  client.Reader
	catalog *runtimecatalog.Catalog
	caller  *wire.Caller
	filter  watch.Filter
	limiter *flowcontrol.Limiter
	// payloads is for extensions that want v1beta1.
	payloads *payloads
}

// New returns a Client.
func New(o Options) (*Client, error) {
	p, err := newPayloads(o.Conversions)
	if err != nil {
		return nil, fmt.Errorf("registering the hooks with v1beta1: %w", err)
	}
	return &Client{reader: o.Reader, catalog: o.Catalog, caller: o.Caller, filter: o.Filter, limiter: o.Limiter, payloads: p}, nil
}

// Answer is the response of one handler.
type Answer struct {
	// Handler is the name of the handler, "<handler>.<ExtensionConfig>".
	Handler string
	// RetryAfter is when to call again at the latest. Zero: the handler does not block.
	RetryAfter time.Duration
	// Message is for users. It has at most 1000 bytes.
	Message string
}

// CallAll calls all handlers of a hook whose ExtensionConfigs select the namespace of an object, one after another in the order of their
// names, and stops at the first error. Without handlers, it succeeds. The request is not changed; each handler gets the settings of its
// ExtensionConfig. In the response are the lowest retryAfterSeconds other than zero, and the messages, joined by ", ".
//
// A *NotReadyError error means that an ExtensionConfig was not discovered yet; nothing was called. A *BusyError error means that a handler
// was not called.
func (c *Client) CallAll(
	ctx context.Context, hook runtimecatalog.Hook,
	forObject client.Object, request runtimehooksv1.RequestObject, response runtimehooksv1.ResponseObject,
) ([]Answer, error) {
	gvh, err := c.catalog.GroupVersionHook(hook)
	if err != nil {
		return nil, err
	}
	handlers, err := c.handlers(ctx, gvh, forObject.GetNamespace())
	if err != nil {
		return nil, fmt.Errorf("cannot call hook %s: %w", gvh.Hook, err)
	}
	answers := make([]Answer, 0, len(handlers))
	for _, h := range handlers {
		one, err := c.newResponse(gvh)
		if err != nil {
			return nil, err
		}
		if _, err := c.call(ctx, gvh, h, exchange{request: request, response: one}); err != nil {
			return nil, err
		}
		answers = append(answers, answerOf(h.Name, one))
	}
	summarize(answers, response)
	return answers, nil
}

// ErrNoHandler is the error of CallOnly without a handler.
var ErrNoHandler = errors.New("no extension is registered for it")

// CallOnly calls the only handler of a hook whose ExtensionConfig selects the namespace of an object. Without one, the error is
// ErrNoHandler, whatever the failure policy; with several, it is another one. A failure of the handler is an error, even if its failure
// policy is to ignore failures: there is no response to continue with. See CallAll for other errors.
func (c *Client) CallOnly(
	ctx context.Context, hook runtimecatalog.Hook,
	forObject client.Object, request runtimehooksv1.RequestObject, response runtimehooksv1.ResponseObject,
) error {
	gvh, err := c.catalog.GroupVersionHook(hook)
	if err != nil {
		return err
	}
	handlers, err := c.handlers(ctx, gvh, forObject.GetNamespace())
	switch {
	case err != nil:
		return fmt.Errorf("cannot call hook %s: %w", gvh.Hook, err)
	case len(handlers) == 0:
		return fmt.Errorf("cannot call hook %s: %w", gvh.Hook, ErrNoHandler)
	case len(handlers) > 1:
		return fmt.Errorf("cannot call hook %s: extensions %s and %s are registered for it, but it must be only one",
			gvh.Hook, handlers[0].Name, handlers[1].Name)
	}
	ignored, err := c.call(ctx, gvh, handlers[0], exchange{request: request, response: response})
	if ignored {
		return fmt.Errorf("extension %s of hook %s failed", handlers[0].Name, gvh.Hook)
	}
	return err
}

// Handlers returns the names of the handlers that CallAll would call, in that order.
func (c *Client) Handlers(ctx context.Context, hook runtimecatalog.Hook, forObject client.Object) ([]string, error) {
	gvh, err := c.catalog.GroupVersionHook(hook)
	if err != nil {
		return nil, err
	}
	handlers, err := c.handlers(ctx, gvh, forObject.GetNamespace())
	if err != nil {
		return nil, fmt.Errorf("cannot list the extensions of hook %s: %w", gvh.Hook, err)
	}
	var names []string
	for _, h := range handlers {
		names = append(names, h.Name)
	}
	return names, nil
}

// Find returns a handler, "<handler>.<ExtensionConfig>", of a hook, without calling anything. It is an error if it does not exist, is for
// another hook, or its ExtensionConfig does not select the namespace of the object, and a *NotReadyError error if that was not discovered
// yet.
func (c *Client) Find(ctx context.Context, hook runtimecatalog.Hook, forObject client.Object, name string) (*Target, error) {
	gvh, err := c.catalog.GroupVersionHook(hook)
	if err != nil {
		return nil, err
	}
	h, err := c.handler(ctx, gvh, forObject.GetNamespace(), name)
	if err != nil {
		return nil, err
	}
	return &Target{client: c, hook: gvh, handler: h}, nil
}

// Target is a handler that can be called.
type Target struct {
	client  *Client
	hook    runtimecatalog.GroupVersionHook
	handler handler
}

// Version changes with the ExtensionConfig: how the server is reached and verified, and its settings and handlers.
func (t *Target) Version() string {
	return versionOf(t.handler.config) + "/" + t.handler.Name
}

// Cacheable reports whether the ExtensionConfig promises, by an annotation, that responses only depend on requests until it changes itself.
func (t *Target) Cacheable() bool { return cacheable(t.handler.config) }

// Call calls the handler. settings override those of the ExtensionConfig, by key. The request is not changed. ignored reports that the call
// failed, and the response is empty because the failure policy of the handler is to ignore that. process uses a response that is no
// failure; its error is that of Call. Until it returns, the call counts as being in progress, so that responses that take long to
// process do not occupy all workers. It may be nil.
func (t *Target) Call(
	ctx context.Context, settings map[string]string, request runtimehooksv1.RequestObject, response runtimehooksv1.ResponseObject,
	process func() error,
) (ignored bool, err error) {
	return t.client.call(ctx, t.hook, t.handler, exchange{settings, request, response, process})
}

// exchange is a request with its response, and what to do with it: see Target.Call.
type exchange struct {
	settings map[string]string
	request  runtimehooksv1.RequestObject
	response runtimehooksv1.ResponseObject
	process  func() error
}

// received processes a response.
func (e exchange) received() error {
	if e.process == nil || e.response.GetStatus() == runtimehooksv1.ResponseStatusFailure {
		return nil
	}
	return e.process()
}

// BusyError is the error of a call that was not sent, because the server has too many calls in progress, which take long. It is about
// other calls, not about this one: the failure policy does not apply, and the caller comes back after RetryAfter.
type BusyError struct {
	// Handler is the name of the handler, "<handler>.<ExtensionConfig>".
	Handler string
}

// busyFor is how long callers leave a busy server alone. It takes a second or more per call.
const busyFor = 5 * time.Second

// Error implements error.
func (e *BusyError) Error() string {
	return fmt.Sprintf("extension %s is not called yet: %v", e.Handler, flowcontrol.ErrBusy)
}

// RetryAfter returns when to call again.
func (e *BusyError) RetryAfter() time.Duration { return busyFor }

// call calls a handler, and applies its failure policy: see Target.Call.
func (c *Client) call(ctx context.Context, gvh runtimecatalog.GroupVersionHook, h handler, e exchange) (ignored bool, err error) {
	log, response := ctrl.LoggerFrom(ctx).WithValues("extension", h.Name, "hook", gvh.Hook), e.response
	err = c.send(ctx, gvh, h, e)
	var failed *wire.Error
	var unusable *unusableError
	reported := err == nil && response.GetStatus() == runtimehooksv1.ResponseStatusFailure
	switch {
	case errors.As(err, &unusable):
		return false, unusable.error
	case errors.As(err, &failed) && h.ignoresFailures() && ctx.Err() == nil:
		log.Info("Ignoring a failed call, as the failure policy of the extension demands", "reason", failed.Detail())
		succeed(response)
		return true, nil
	case reported && h.ignoresFailures():
		log.Info("Ignoring a failure that the extension reported, as its failure policy demands", "message", Shown(response.GetMessage()))
		succeed(response)
		return true, nil
	case errors.As(err, &failed):
		log.Info("The call failed", "reason", failed.Detail())
		return false, fmt.Errorf("calling extension %s of hook %s: %w", h.Name, gvh.Hook, err)
	case errors.Is(err, flowcontrol.ErrBusy):
		return false, &BusyError{Handler: h.Name}
	case err != nil:
		return false, fmt.Errorf("calling extension %s of hook %s: %w", h.Name, gvh.Hook, err)
	case reported:
		message := Shown(response.GetMessage())
		log.Info("The extension reported a failure", "message", message)
		if message == "" {
			message = "without a message"
		}
		return false, fmt.Errorf("extension %s of hook %s reported a failure: %s", h.Name, gvh.Hook, message)
	}
	return false, nil
}

// succeed makes a response an empty success.
func succeed(response runtimehooksv1.ResponseObject) {
	empty(response)
	response.SetStatus(runtimehooksv1.ResponseStatusSuccess)
}

// Shown returns the message of a response as conditions and logs show it: in one line, without control characters, which terminals
// would interpret, and with at most 1000 bytes.
func Shown(message string) string {
	var out strings.Builder
	for _, r := range condition.Truncate(message, maxMessage) {
		switch {
		case unicode.IsPrint(r):
			out.WriteRune(r)
		case unicode.IsSpace(r):
			out.WriteByte(' ')
		default:
			fmt.Fprintf(&out, "\\u%04x", r)
		}
	}
	return condition.Truncate(strings.TrimSpace(out.String()), maxMessage)
}

// unusableError is the error of processing a response.
type unusableError struct{ error }

// send sends a copy of the request, with settings, and decodes and processes the response.
func (c *Client) send(ctx context.Context, gvh runtimecatalog.GroupVersionHook, h handler, e exchange) error {
	to, err := wire.EndpointOf(h.config.Spec.ClientConfig)
	if err != nil {
		return fmt.Errorf("ExtensionConfig %s: %w", h.config.Name, err)
	}
	sent, ok := e.request.DeepCopyObject().(runtimehooksv1.RequestObject)
	if !ok {
		return fmt.Errorf("%T is not a request", e.request)
	}
	sent.SetSettings(h.settings(e.settings))
	empty(e.response)
	inV1Beta2 := c.payloads.inV1Beta2(gvh, h)
	if sent, err = c.payloads.request(ctx, gvh, inV1Beta2, sent); err != nil {
		return err
	}
	received, translate := c.payloads.response(ctx, inV1Beta2, e.response)
	post := func() error {
		if err := c.caller.Post(ctx, to, h.call(gvh), sent, received); err != nil {
			return err
		}
		if err := translate(); err != nil {
			return &unusableError{err}
		}
		if err := e.received(); err != nil {
			return &unusableError{err}
		}
		return nil
	}
	if c.limiter == nil {
		return post()
	}
	call, err := c.limiter.Begin(ctx, flowcontrol.Handler{Server: h.config.Name, Version: versionOf(h.config), Name: h.Name})
	if err != nil {
		return err
	}
	err = post()
	if failed, ok := errors.AsType[*wire.Error](err); ok && failed.Timeout() && ctx.Err() == nil {
		call.End(err)
	} else {
		call.End(nil)
	}
	return err
}

// versionOf returns a text that changes with the spec of an ExtensionConfig.
func versionOf(config *runtimev1.ExtensionConfig) string {
	return fmt.Sprintf("%s/%d", config.UID, config.Generation)
}

func (c *Client) newResponse(gvh runtimecatalog.GroupVersionHook) (runtimehooksv1.ResponseObject, error) {
	object, err := c.catalog.NewResponse(gvh)
	if err != nil {
		return nil, err
	}
	response, ok := object.(runtimehooksv1.ResponseObject)
	if !ok {
		return nil, fmt.Errorf("%T is not a response", object)
	}
	return response, nil
}

// empty resets a response to its zero value.
func empty(response runtimehooksv1.ResponseObject) { reflect.ValueOf(response).Elem().SetZero() }

func answerOf(name string, response runtimehooksv1.ResponseObject) Answer {
	a := Answer{Handler: name, Message: Shown(response.GetMessage())}
	if retry, ok := response.(runtimehooksv1.RetryResponseObject); ok {
		a.RetryAfter = time.Duration(retry.GetRetryAfterSeconds()) * time.Second
	}
	return a
}

// summarize sets the response of several handlers.
func summarize(answers []Answer, response runtimehooksv1.ResponseObject) {
	var messages []string
	var soonest time.Duration
	for _, a := range answers {
		if a.Message != "" {
			messages = append(messages, a.Message)
		}
		if a.RetryAfter > 0 && (soonest == 0 || a.RetryAfter < soonest) {
			soonest = a.RetryAfter
		}
	}
	empty(response)
	response.SetStatus(runtimehooksv1.ResponseStatusSuccess)
	response.SetMessage(strings.Join(messages, ", "))
	if retry, ok := response.(runtimehooksv1.RetryResponseObject); ok {
		retry.SetRetryAfterSeconds(int32(soonest / time.Second))
	}
}
