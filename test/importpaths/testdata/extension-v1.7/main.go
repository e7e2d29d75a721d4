// Command extension prints the discovery of a runtime extension that is built with the import paths of v1.7.
package main

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"

	"sigs.k8s.io/controller-runtime/pkg/webhook"

	runtimecatalog "sigs.k8s.io/cluster-api/exp/runtime/catalog"
	runtimehooksv1 "sigs.k8s.io/cluster-api/exp/runtime/hooks/api/v1alpha1"
	"sigs.k8s.io/cluster-api/exp/runtime/server"
)

func beforeUpgrade(_ context.Context, request *runtimehooksv1.BeforeClusterUpgradeRequest, response *runtimehooksv1.BeforeClusterUpgradeResponse) {
	response.SetStatus(runtimehooksv1.ResponseStatusSuccess)
	response.SetMessage("upgrading a cluster of class " + request.Cluster.Spec.Topology.Class)
}

func main() {
	catalog, mux := runtimecatalog.New(), http.NewServeMux()
	must(runtimehooksv1.AddToCatalog(catalog))
	s, err := server.New(server.Options{Catalog: catalog, Webhooks: webhook.NewServer(webhook.Options{WebhookMux: mux})})
	must(err)
	must(s.AddExtensionHandler(server.ExtensionHandler{
		Hook: runtimehooksv1.BeforeClusterUpgrade, Name: "before-upgrade", HandlerFunc: beforeUpgrade,
	}))
	const prefix = "/hooks.runtime.cluster.x-k8s.io/v1alpha1/"
	for _, call := range []struct{ path, body string }{
		{"discovery", "{}"}, {"beforeclusterupgrade/before-upgrade", `{"cluster":{"spec":{"topology":{"class":"c1"}}}}`},
	} {
		w := httptest.NewRecorder()
		mux.ServeHTTP(w, httptest.NewRequest(http.MethodPost, prefix+call.path, strings.NewReader(call.body)))
		fmt.Println(w.Body)
	}
}

func must(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
