package server

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"reflect"
	"runtime/debug"

	"k8s.io/apimachinery/pkg/runtime"
	ctrl "sigs.k8s.io/controller-runtime"

	runtimecatalog "sigs.k8s.io/cluster-api/api/runtime/catalog"
	runtimehooksv1 "sigs.k8s.io/cluster-api/api/runtime/hooks/v1alpha1"
)

// maxRequestBytes bounds requests: all templates of a Cluster, of which each fits into etcd's limit of 1.5 MiB.
const maxRequestBytes = 64 << 20

// handler serves one extension.
type handler struct {
	catalog *runtimecatalog.Catalog
	hook    runtimecatalog.GroupVersionHook
	call    reflect.Value
}

// newHandler fails if f is not a func(context.Context, *<Hook>Request, *<Hook>Response).
func newHandler(c *runtimecatalog.Catalog, hook runtimecatalog.GroupVersionHook, f any) (*handler, error) {
	h := &handler{catalog: c, hook: hook, call: reflect.ValueOf(f)}
	request, response, err := h.objects()
	if err != nil {
		return nil, err
	}
	want := reflect.FuncOf([]reflect.Type{reflect.TypeFor[context.Context](), reflect.TypeOf(request), reflect.TypeOf(response)}, nil, false)
	if !h.call.IsValid() || !h.call.Type().ConvertibleTo(want) || h.call.IsNil() {
		return nil, fmt.Errorf("HandlerFunc is a %T, but must be a %s", f, want)
	}
	return h, nil
}

// objects returns an empty request and response.
func (h *handler) objects() (runtime.Object, runtimehooksv1.ResponseObject, error) {
	request, err := h.catalog.NewRequest(h.hook)
	if err != nil {
		return nil, nil, err
	}
	object, err := h.catalog.NewResponse(h.hook)
	if err != nil {
		return nil, nil, err
	}
	kind, err := h.catalog.Response(h.hook)
	if err != nil {
		return nil, nil, err
	}
	response, ok := object.(runtimehooksv1.ResponseObject)
	if !ok {
		return nil, nil, fmt.Errorf("the response %T of hook %s has no status and message", object, h.hook)
	}
	response.GetObjectKind().SetGroupVersionKind(kind)
	return request, response, nil
}

// ServeHTTP answers every POST with a response: whatever goes wrong is a response with status Failure.
func (h *handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodPost {
		w.Header().Set("Allow", http.MethodPost)
		http.Error(w, "hooks are called with POST", http.StatusMethodNotAllowed)
		return
	}
	log := ctrl.Log.WithName("runtime-extension").WithValues("hook", h.hook.Hook, "path", r.URL.Path)
	request, response, err := h.objects()
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	if err := h.read(w, r, request); err != nil {
		log.Error(err, "Cannot read the request")
		fail(response, "cannot read the request: "+err.Error())
	} else {
		response = h.run(ctrl.LoggerInto(r.Context(), log), request, response)
	}
	content, err := json.Marshal(response)
	if err != nil {
		log.Error(err, "Cannot encode the response")
		http.Error(w, "cannot encode the response", http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	if _, err := w.Write(content); err != nil {
		log.Error(err, "Cannot send the response")
	}
}

// read decodes the body, which must be a request of the handler's hook and version, or not say what it is.
func (h *handler) read(w http.ResponseWriter, r *http.Request, into runtime.Object) error {
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxRequestBytes))
	if err != nil {
		return err
	}
	if err := json.Unmarshal(body, into); err != nil {
		return err
	}
	want, err := h.catalog.Request(h.hook)
	if err != nil {
		return err
	}
	if got := into.GetObjectKind().GroupVersionKind(); !got.Empty() && got != want {
		return fmt.Errorf("it is a %s, but must be a %s", got, want)
	}
	return nil
}

// run calls the extension. After a panic, nothing that it wrote into the response counts.
func (h *handler) run(
	ctx context.Context, request runtime.Object, response runtimehooksv1.ResponseObject,
) (out runtimehooksv1.ResponseObject) {
	kind := response.GetObjectKind().GroupVersionKind()
	defer func() {
		if cause := recover(); cause != nil {
			ctrl.LoggerFrom(ctx).Error(fmt.Errorf("panic: %v", cause), "Extension failed", "stack", string(debug.Stack()))
			_, out, _ = h.objects() // It succeeded before.
			fail(out, "the extension panicked, see the log of its server")
		}
		out.GetObjectKind().SetGroupVersionKind(kind)
	}()
	h.call.Call([]reflect.Value{reflect.ValueOf(ctx), reflect.ValueOf(request), reflect.ValueOf(response)})
	if response.GetStatus() == "" { // An extension that sets nothing has nothing against it; some managers refuse an empty status.
		response.SetStatus(runtimehooksv1.ResponseStatusSuccess)
	}
	return response
}

func fail(response runtimehooksv1.ResponseObject, message string) {
	response.SetStatus(runtimehooksv1.ResponseStatusFailure)
	response.SetMessage(message)
}
