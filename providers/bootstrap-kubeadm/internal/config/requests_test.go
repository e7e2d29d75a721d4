package config

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	bootstrapv1 "sigs.k8s.io/cluster-api/api/bootstrap/v1beta2"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/sdk/testenv/fakeapi"
)

// recorder records requests to the management cluster's API server, such as "create Secret m".
type recorder struct{ requests []string }

// recordRequests makes the controller of a world record its requests. As in a manager, the client reads from the API server
// Secrets that are not in the cache, and ConfigMaps.
func recordRequests(t *testing.T, w *world) *recorder {
	t.Helper()
	r := &recorder{}
	cached := w.c.cached
	w.c.Client = r.client(t, w.Client, func(ctx context.Context, key client.ObjectKey, obj client.Object) bool {
		switch obj.(type) {
		case *corev1.Secret:
			return cached.Get(ctx, key, &corev1.Secret{}) != nil
		case *corev1.ConfigMap:
			return true
		}
		return false
	})
	w.c.Live = r.client(t, w.Client, func(context.Context, client.ObjectKey, client.Object) bool { return true })
	declared := w.c.declared()
	declared.Progress = nil // Status is written immediately.
	w.runner = declared.Runner(w.c.Clients)
	return r
}

func (r *recorder) note(verb string, obj client.Object, name string) {
	kind := fmt.Sprintf("%T", obj)
	r.requests = append(r.requests, verb+" "+kind[strings.LastIndex(kind, ".")+1:]+" "+name)
}

// client returns a client that records its writes, and its reads of objects that are not read from the cache.
func (r *recorder) client(t *testing.T, c client.Client, live func(context.Context, client.ObjectKey, client.Object) bool) client.Client {
	t.Helper()
	watching, ok := c.(client.WithWatch)
	if !ok {
		t.Fatalf("%T cannot watch", c)
	}
	return interceptor.NewClient(watching, interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, obj client.Object, o ...client.GetOption) error {
			if live(ctx, key, obj) {
				r.note("get", obj, key.Name)
			}
			return c.Get(ctx, key, obj, o...)
		},
		Create: func(ctx context.Context, c client.WithWatch, obj client.Object, o ...client.CreateOption) error {
			r.note("create", obj, obj.GetName())
			return c.Create(ctx, obj, o...)
		},
		Patch: func(ctx context.Context, c client.WithWatch, obj client.Object, p client.Patch, o ...client.PatchOption) error {
			r.note("patch", obj, obj.GetName())
			return c.Patch(ctx, obj, p, o...)
		},
		SubResourcePatch: func(ctx context.Context, c client.Client, sub string, obj client.Object, p client.Patch, o ...client.SubResourcePatchOption) error {
			r.note("patch "+sub+" of", obj, obj.GetName())
			return c.SubResource(sub).Patch(ctx, obj, p, o...)
		},
		Delete: func(ctx context.Context, c client.WithWatch, obj client.Object, o ...client.DeleteOption) error {
			r.note("delete", obj, obj.GetName())
			return c.Delete(ctx, obj, o...)
		},
	})
}

// TestRequests lists all requests to the management cluster for the first two machines of a cluster.
func TestRequests(t *testing.T) {
	worker := newConfig("w", bootstrapv1.KubeadmConfigSpec{})
	w := newWorld(t, newCluster(), newMachine("m", true), newConfig("m", clusterSpec()), newMachine("w", false), worker)
	r := recordRequests(t, w)
	for _, tt := range []struct {
		reason string
		before func()
		config string
		want   []string
	}{
		{reason: "a worker waits for the control plane", config: "w", want: []string{"patch status of KubeadmConfig w"}},
		{
			reason: "the first machine takes the lock, which decides together with the Cluster, and gets data with new certificates; no Secret is read after its creation",
			config: "m",
			want: []string{
				"create ConfigMap test-lock", "get Cluster test",
				"get Secret test-ca", "create Secret test-ca", "get Secret test-etcd", "create Secret test-etcd",
				"get Secret test-proxy", "create Secret test-proxy", "get Secret test-sa", "create Secret test-sa",
				"create Secret m", "patch status of KubeadmConfig m",
			},
		},
		{reason: "its data is complete", config: "m"},
		{
			reason: "when the control plane is initialized, the lock is deleted without reading it, and the data is read, which may contain a token",
			before: func() { w.becomesInitialized(t) }, config: "m", want: []string{"delete ConfigMap test-lock", "get Secret m"},
		},
		{reason: "the lock is only deleted once", config: "m", want: []string{"get Secret m"}},
		{reason: "the worker gets data; the CA is in the cache", config: "w", want: []string{"create Secret w", "patch status of KubeadmConfig w"}},
		{reason: "its data is complete", config: "w"},
		{
			reason: "a joined machine needs nothing more", config: "m",
			before: func() {
				m := get(t, w, "m", &clusterv1.Machine{})
				m.Status.NodeRef = clusterv1.MachineNodeReference{Name: "n"}
				if err := w.Status().Update(t.Context(), m); err != nil {
					t.Fatal(err)
				}
			},
		},
	} {
		r.requests = nil
		if tt.before != nil {
			tt.before()
		}
		w.mustReconcile(t, tt.config)
		if diff := cmp.Diff(tt.want, r.requests); diff != "" {
			t.Errorf("%s: -want +got:\n%s", tt.reason, diff)
		}
	}
}

// TestLockWrittenBetweenReadAndDelete has another client write the lock of a dead holder after it was read: the deletion is a
// conflict, which is retried, and the new holder keeps it.
func TestLockWrittenBetweenReadAndDelete(t *testing.T) {
	w := newWorld(t, lockOf("cluster-test", "gone"), newCluster(), newMachine("m", true), newMachine("other", true), newConfig("m", clusterSpec()))
	w.Before = func(r fakeapi.Request) error {
		if r.String() != "delete ConfigMap test-lock" {
			return nil
		}
		lock := get(t, w, "test-lock", &corev1.ConfigMap{})
		lock.Data[lockKey] = `{"machineName":"other"}`
		return w.Update(t.Context(), lock)
	}
	if _, err := w.c.locks.acquire(t.Context(), w.c.Clients, newCluster(), "m"); err == nil {
		t.Error("no error, want a conflict")
	}
	w.Before = nil
	if by, err := w.c.locks.acquire(t.Context(), w.c.Clients, newCluster(), "m"); err != nil || by != "other" {
		t.Errorf("held by %q, error %v; want the holder that took it meanwhile", by, err)
	}
}
