package storageversion

import (
	"context"
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"sigs.k8s.io/cluster-api/packages/manifest"
	"sigs.k8s.io/cluster-api/sdk/testenv"
)

const healthChecks = "machinehealthchecks.cluster.x-k8s.io"

// TestTurnIsKilled interrupts turns of the stored version, in both directions, after each request. The next run completes each of them, and
// no object changes.
func TestTurnIsKilled(t *testing.T) {
	e := server.Start(t, "providers/core/config/crd/*_machinehealthchecks.yaml")
	namespace := e.Namespace(t)
	for i := range 3 {
		testenv.Must(t, e.Client.Create(t.Context(), healthCheck(namespace, fmt.Sprint("h-", i))))
	}
	before := specs(t, e, namespace)
	versions := []string{"v1beta1", "v1beta2"}
	interrupted := 0
	for n := 0; ; n++ {
		ended := false
		for i, lose := range []bool{false, true} {
			ctx, kill := context.WithCancel(t.Context())
			wire := &testenv.Wire{Limit: n, Lose: lose, Dead: kill}
			err := turnTo(ctx, e, wire, versions[i])
			kill()
			ended = err == nil
			if err != nil {
				interrupted++
				if err := turnTo(t.Context(), e, &testenv.Wire{Limit: -1}, versions[i]); err != nil {
					t.Fatalf("killed after %d requests at %s: the next run: %v", n, wire.Last(), err)
				}
			}
			live, err := definition(t.Context(), e.Client)
			testenv.Must(t, err)
			if storage := storageVersion(versionsOf(live)); storage != versions[i] || !slices.Equal(Stored(live), versions[i:i+1]) {
				t.Errorf("killed at %s: it stores %s, and has stored %v; want %s", wire.Last(), storage, Stored(live), versions[i])
			}
			if diff := cmp.Diff(before, specs(t, e, namespace)); diff != "" {
				t.Errorf("killed at %s: objects: -want +got:\n%s", wire.Last(), diff)
			}
		}
		if ended {
			break
		}
	}
	if interrupted < 10 {
		t.Errorf("turns were interrupted %d times, want each of their requests", interrupted)
	}
}

// turnTo runs a turn through a wire, as a process that connects anew.
func turnTo(ctx context.Context, e *testenv.Env, wire *testenv.Wire, version string) error {
	config := rest.CopyConfig(e.Config)
	config.Wrap(wire.Wrap)
	c, err := client.New(config, client.Options{Scheme: e.Client.Scheme()})
	if err != nil {
		return err
	}
	live, err := definition(ctx, c)
	if err != nil {
		return err
	}
	turn, err := PlanTurn(live, version)
	if turn == nil || err != nil {
		return err
	}
	turn.Stores = func(ctx context.Context, kind schema.GroupKind) (string, error) { return stores(ctx, config, kind) }
	return turn.Run(ctx, c, nil)
}

func definition(ctx context.Context, c client.Reader) (*unstructured.Unstructured, error) {
	live := &unstructured.Unstructured{}
	live.SetAPIVersion("apiextensions.k8s.io/v1")
	live.SetKind(manifest.KindCRD)
	return live, c.Get(ctx, client.ObjectKey{Name: healthChecks}, live)
}

func healthCheck(namespace, name string) *unstructured.Unstructured {
	o := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{
		"clusterName": "c", "selector": map[string]any{"matchLabels": map[string]any{"a": "b"}},
		"checks": map[string]any{"nodeStartupTimeoutSeconds": int64(600)},
	}}}
	o.SetAPIVersion("cluster.x-k8s.io/v1beta2")
	o.SetKind("MachineHealthCheck")
	o.SetNamespace(namespace)
	o.SetName(name)
	return o
}

// specs returns the specs of all objects, with their generations and UIDs, by name.
func specs(t *testing.T, e *testenv.Env, namespace string) map[string]any {
	t.Helper()
	list := &unstructured.UnstructuredList{}
	list.SetAPIVersion("cluster.x-k8s.io/v1beta2")
	list.SetKind("MachineHealthCheckList")
	testenv.Must(t, e.Client.List(t.Context(), list, client.InNamespace(namespace)))
	out := map[string]any{}
	for _, o := range list.Items {
		out[o.GetName()] = map[string]any{"spec": o.Object["spec"], "generation": o.GetGeneration(), "uid": o.GetUID()}
	}
	return out
}
