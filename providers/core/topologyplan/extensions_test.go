package topologyplan

import (
	"context"
	"errors"
	"net"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	runtimecatalog "sigs.k8s.io/cluster-api/api/runtime/catalog"
	runtimehooksv1 "sigs.k8s.io/cluster-api/api/runtime/hooks/v1alpha1"
	runtimev1 "sigs.k8s.io/cluster-api/api/runtime/v1beta2"
	"sigs.k8s.io/cluster-api/providers/core/internal/topology/lifecycle"
	"sigs.k8s.io/cluster-api/providers/core/internal/topology/patches"
	"sigs.k8s.io/cluster-api/providers/internal/extension/wire"
	"sigs.k8s.io/cluster-api/sdk/condition"
	"sigs.k8s.io/cluster-api/sdk/testenv"
	"sigs.k8s.io/cluster-api/test/extensiontest"
)

// TestExtensionBehindService calls an extension by the name of its Service, which its certificate must have.
func TestExtensionBehindService(t *testing.T) {
	for _, tc := range []struct{ reason, host, want string }{
		{reason: "the certificate is the Service's", host: "x.n.svc"},
		{reason: "the certificate is another Service's", host: "y.n.svc", want: "not valid for its host name"},
	} {
		t.Run(tc.reason, func(t *testing.T) {
			server := extensiontest.Serve(t, extensiontest.Options{Host: tc.host}, extensiontest.Answers(map[string]any{"generate": map[string]any{"status": "Success"}}))
			world := newWorld(t)
			config := &runtimev1.ExtensionConfig{ObjectMeta: metav1.ObjectMeta{Name: "x"}}
			config.Spec.ClientConfig = runtimev1.ClientConfig{Service: runtimev1.ServiceReference{Namespace: "n", Name: "x"}, CABundle: server.CA}
			config.Status.Handlers = []runtimev1.ExtensionHandler{{
				Name: "generate.x", RequestHook: runtimev1.GroupVersionHook{APIVersion: runtimehooksv1.GroupVersion.String(), Hook: "GeneratePatches"},
			}}
			condition.Set(config, condition.True(runtimev1.RuntimeExtensionDiscoveredV1Beta1Condition))
			testenv.Must(t, world.PutTyped(config))
			var dialed []string
			all, err := newExtensions(world, Input{Dial: func(ctx context.Context, network, address string) (net.Conn, error) {
				dialed = append(dialed, address)
				return server.Dial(ctx, network, address)
			}})
			testenv.Must(t, err)
			cluster := &clusterv1.Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "c"}}
			_, err = all.patches.GeneratePatches(t.Context(), patches.Call{Handler: "generate.x", Cluster: cluster})
			if (err == nil) != (tc.want == "") || err != nil && !strings.Contains(err.Error(), tc.want) {
				t.Errorf("got error %v, want %q", err, tc.want)
			}
			if diff := cmp.Diff([]string{"x.n.svc:443"}, dialed); diff != "" {
				t.Errorf("connections (-want +got):\n%s", diff)
			}
		})
	}
}

// TestUnreachableExtension says why on the terminal.
func TestUnreachableExtension(t *testing.T) {
	err := skippable(wireError(t))
	for _, want := range []string{"the connection to the server failed", "none of the Pods is ready", "--skip-extensions"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%q does not contain %q", err, want)
		}
	}
}

// wireError returns the error of a call without a connection.
func wireError(t *testing.T) error {
	t.Helper()
	endpoint, err := wire.EndpointOf(runtimev1.ClientConfig{Service: runtimev1.ServiceReference{Namespace: "n", Name: "x"}})
	testenv.Must(t, err)
	caller := wire.NewCaller(wire.Options{Metrics: prometheus.NewRegistry(), Clock: clock.RealClock{}, Dial: func(context.Context, string, string) (net.Conn, error) {
		return nil, errors.New("none of the Pods is ready")
	}})
	return caller.Post(t.Context(), endpoint, wire.Call{Hook: runtimecatalog.GroupVersionHook{Hook: "GeneratePatches"}}, &runtimehooksv1.GeneratePatchesRequest{}, &runtimehooksv1.GeneratePatchesResponse{})
}

// TestExtensions is about a world with an ExtensionConfig: hooks are recorded with their extensions, which are not called; patches are
// asked for.
func TestExtensions(t *testing.T) {
	server := extensiontest.Serve(t, extensiontest.Options{}, func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "", http.StatusServiceUnavailable) })
	world := newWorld(t)
	config := &runtimev1.ExtensionConfig{ObjectMeta: metav1.ObjectMeta{Name: "x"}, Spec: runtimev1.ExtensionConfigSpec{ClientConfig: server.Config()}}
	for name, hook := range map[string]string{"upgrade": "BeforeClusterUpgrade", "generate": "GeneratePatches"} {
		config.Status.Handlers = append(config.Status.Handlers, runtimev1.ExtensionHandler{
			Name: name + ".x", RequestHook: runtimev1.GroupVersionHook{APIVersion: runtimehooksv1.GroupVersion.String(), Hook: hook},
		})
	}
	condition.Set(config, condition.True(runtimev1.RuntimeExtensionDiscoveredV1Beta1Condition))
	testenv.Must(t, world.PutTyped(config))
	cluster := &clusterv1.Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "c"}}
	all, err := newExtensions(world, Input{})
	testenv.Must(t, err)

	r := &recorder{extensions: all.client}
	for _, hook := range []lifecycle.Hook{lifecycle.BeforeClusterCreate, lifecycle.BeforeClusterUpgrade} {
		answer, err := r.Ask(t.Context(), cluster, lifecycle.Call{Hook: hook})
		if err != nil || answer.RetryAfter != 0 {
			t.Errorf("%s: %v, %v", hook, answer, err)
		}
	}
	if diff := cmp.Diff([]string{"BeforeClusterUpgrade (extension upgrade.x)"}, r.names); diff != "" {
		t.Error(diff)
	}
	if calls := server.Calls(); len(calls) > 0 {
		t.Errorf("hooks were called: %v", calls)
	}
	testenv.Must(t, world.PutTyped(&runtimev1.ExtensionConfig{ObjectMeta: metav1.ObjectMeta{Name: "new"}}))
	if _, err := r.Ask(t.Context(), cluster, lifecycle.Call{Hook: lifecycle.BeforeClusterUpgrade}); err != nil || !strings.Contains(r.names[1], "ExtensionConfig new, which is not discovered yet") {
		t.Errorf("%v, %v", r.names, err)
	}

	call := patches.Call{Handler: "generate.x", Cluster: cluster}
	if _, err := all.patches.GeneratePatches(t.Context(), call); err == nil || !strings.Contains(err.Error(), "503") || !strings.Contains(err.Error(), "--skip-extensions") {
		t.Errorf("an extension that fails: %v", err)
	}
	if calls := server.Calls(); len(calls) != 1 {
		t.Errorf("%d calls for patches, want 1", len(calls))
	}
	skipping, err := newExtensions(world, Input{SkipExtensions: true})
	testenv.Must(t, err)
	if found, err := skipping.patches.GeneratePatches(t.Context(), call); found != nil || err != nil || len(server.Calls()) > 0 {
		t.Errorf("extensions are skipped: %v, %v", found, err)
	}
}
