package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta1"
	runtimehooksv1 "sigs.k8s.io/cluster-api/exp/runtime/hooks/api/v1alpha1"
	"sigs.k8s.io/cluster-api/exp/runtime/server"
	"sigs.k8s.io/cluster-api/test/managers"
)

// extensionName is the name of the ExtensionConfig and of the patch of the class.
const extensionName = "bench"

// bencher is a runtime extension that patches templates of control planes, and blocks the creation of each Cluster once, for a second.
type bencher struct {
	mu     sync.Mutex
	calls  map[string]int
	waited map[types.UID]bool
}

func (b *bencher) handlers(to *server.Server) error {
	return errors.Join(
		to.AddExtensionHandler(server.ExtensionHandler{Hook: runtimehooksv1.GeneratePatches, Name: "generate", HandlerFunc: b.generate}),
		to.AddExtensionHandler(server.ExtensionHandler{Hook: runtimehooksv1.BeforeClusterCreate, Name: "create", HandlerFunc: b.create}),
	)
}

func (b *bencher) generate(
	_ context.Context, request *runtimehooksv1.GeneratePatchesRequest, response *runtimehooksv1.GeneratePatchesResponse,
) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.calls["GeneratePatches"]++
	response.Status = runtimehooksv1.ResponseStatusSuccess
	for i := range request.Items {
		var template unstructured.Unstructured
		if err := json.Unmarshal(request.Items[i].Object.Raw, &template.Object); err != nil {
			response.Status, response.Message = runtimehooksv1.ResponseStatusFailure, err.Error()
			return
		}
		if template.GetKind() == "KubeadmControlPlaneTemplate" {
			response.Items = append(response.Items, runtimehooksv1.GeneratePatchesResponseItem{
				UID: request.Items[i].UID, PatchType: runtimehooksv1.JSONMergePatchType,
				Patch: []byte(`{"spec":{"template":{"spec":{"kubeadmConfigSpec":{"preKubeadmCommands":["true"]}}}}}`),
			})
		}
	}
}

func (b *bencher) create(
	_ context.Context, request *runtimehooksv1.BeforeClusterCreateRequest, response *runtimehooksv1.BeforeClusterCreateResponse,
) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.calls["BeforeClusterCreate"]++
	response.Status = runtimehooksv1.ResponseStatusSuccess
	if !b.waited[request.Cluster.UID] {
		b.waited[request.Cluster.UID] = true
		response.RetryAfterSeconds, response.Message = 1, "wait a second"
	}
}

// extensions prints the table for Clusters of a class that the extension patches, and how often it was called.
func (w *world) extensions(ctx context.Context, out io.Writer, o options) error {
	b := &bencher{calls: map[string]int{}, waited: map[types.UID]bool{}}
	serving, err := managers.NewExtension(filepath.Join(w.Dir, "extension"), runtimehooksv1.AddToCatalog)
	if err != nil {
		return err
	}
	if err := errors.Join(b.handlers(serving.Server), serving.Serve(ctx)); err != nil {
		return err
	}
	if err := serving.Register(ctx, w.Client, extensionName, map[string]any{}); err != nil {
		return err
	}
	if err := w.patchClass(ctx); err != nil {
		return err
	}
	rows, err := w.rows(ctx, o)
	printTable(out, rows)
	b.mu.Lock()
	defer b.mu.Unlock()
	fmt.Fprintf(out, "Calls for %d Clusters: %v\n", len(b.waited), b.calls)
	return err
}

// patchClass adds the patch to the class, and returns when Clusters can use it.
func (w *world) patchClass(ctx context.Context) error {
	class := &unstructured.Unstructured{}
	class.SetGroupVersionKind(clusterv1.GroupVersion.WithKind("ClusterClass"))
	class.SetNamespace("default")
	class.SetName("in-memory-quick-start")
	patch := fmt.Sprintf(`{"spec":{"patches":[{"name":%q,"external":{"generateExtension":"generate.%s"}}]}}`, extensionName, extensionName)
	if err := w.Client.Patch(ctx, class, client.RawPatch(types.MergePatchType, []byte(patch))); err != nil {
		return fmt.Errorf("adding the patch to the class: %w", err)
	}
	err := wait.PollUntilContextTimeout(ctx, 50*time.Millisecond, time.Minute, true, func(ctx context.Context) (bool, error) {
		err := w.Client.Get(ctx, client.ObjectKeyFromObject(class), class)
		observed, _, _ := unstructured.NestedInt64(class.Object, "status", "observedGeneration")
		return observed == class.GetGeneration(), err
	})
	if err != nil {
		return fmt.Errorf("waiting for the class: %w", err)
	}
	return nil
}
