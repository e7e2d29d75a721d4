package topologyplan

import (
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta1"
	runtimev1 "sigs.k8s.io/cluster-api/api/runtime/v1alpha1"
	"sigs.k8s.io/cluster-api/core/internal/topology/lifecycle"
	"sigs.k8s.io/cluster-api/core/internal/topology/patches"
	runtimehooksv1 "sigs.k8s.io/cluster-api/exp/runtime/hooks/api/v1alpha1"
	"sigs.k8s.io/cluster-api/internal/extensiontest"
	"sigs.k8s.io/cluster-api/provider/condition"
	"sigs.k8s.io/cluster-api/provider/testenv"
)

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
	condition.Set(config, condition.True(runtimev1.RuntimeExtensionDiscoveredCondition))
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
