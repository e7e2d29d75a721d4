package webhook

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"github.com/go-logr/logr"
	admissionv1 "k8s.io/api/admission/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/webhook"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"
	"sigs.k8s.io/yaml"

	"sigs.k8s.io/cluster-api/sdk/apiversion"
	"sigs.k8s.io/cluster-api/sdk/conversion"
)

// registered are the webhooks of all kinds by path, as an API server calls them.
type registered map[string]http.Handler

// server is a webhook server that registers, and does nothing else.
type server struct {
	webhook.Server
	handlers registered
}

// Register implements webhook.Server.
func (s server) Register(path string, handler http.Handler) { s.handlers[path] = handler }

// host is a manager for registering webhooks.
type host struct {
	ctrl.Manager
	client client.Client
	server server
}

func (h host) GetClient() client.Client         { return h.client }
func (h host) GetScheme() *runtime.Scheme       { return h.client.Scheme() }
func (h host) GetWebhookServer() webhook.Server { return h.server }

// register registers all webhooks, which read from a world.
func register(t *testing.T, w *world) registered {
	t.Helper()
	scheme := w.client.Scheme()
	if err := conversion.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	boundary, err := apiversion.New(apiversion.Options{
		Config: &rest.Config{}, HTTPClient: http.DefaultClient, Scheme: scheme, Registry: conversion.Shared(), Log: logr.Discard(),
	})
	if err != nil {
		t.Fatal(err)
	}
	r := registered{}
	o := w.webhook(t).options
	o.ClusterResourceSet, o.RuntimeSDK = true, true
	if err := Register(host{client: boundary.CachedClient(w.client), server: server{handlers: r}}, o); err != nil {
		t.Fatal(err)
	}
	return r
}

// call sends an object, given as YAML, to a webhook of its version; verb is mutate or validate. old is empty for a creation.
func (r registered) call(t *testing.T, verb, object, old string) admission.Response {
	t.Helper()
	raw := func(text string) []byte {
		if text == "" {
			return nil
		}
		encoded, err := yaml.YAMLToJSON([]byte(text))
		if err != nil {
			t.Fatal(err)
		}
		return encoded
	}
	kind := parseType(t, raw(object))
	gvk := kind.GroupVersionKind()
	req := admission.Request{AdmissionRequest: admissionv1.AdmissionRequest{
		UID: "u", Kind: metav1.GroupVersionKind(gvk), Namespace: "ns", Name: "x", Operation: admissionv1.Create,
		Object: runtime.RawExtension{Raw: raw(object)}, OldObject: runtime.RawExtension{Raw: raw(old)},
	}}
	if old != "" {
		req.Operation = admissionv1.Update
	}
	path := "/" + verb + "-" + strings.ReplaceAll(gvk.Group, ".", "-") + "-" + gvk.Version + "-" + strings.ToLower(gvk.Kind)
	handler, ok := r[path].(*admission.Webhook)
	if !ok {
		t.Fatalf("there is no webhook at %s", path)
	}
	return handler.Handle(t.Context(), req)
}

func parseType(t *testing.T, raw []byte) metav1.TypeMeta {
	t.Helper()
	var kind metav1.TypeMeta
	if err := json.Unmarshal(raw, &kind); err != nil {
		t.Fatal(err)
	}
	return kind
}
