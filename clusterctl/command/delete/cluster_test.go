package delete

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/clusterctl/factory"
	"sigs.k8s.io/cluster-api/clusterctl/iostreams"
	"sigs.k8s.io/cluster-api/clusterctl/management"
	"sigs.k8s.io/cluster-api/clusterctl/tree"
	"sigs.k8s.io/cluster-api/sdk/testenv"
)

var server testenv.Server

func TestMain(m *testing.M) { server.Main(m) }

// world is a namespace of a real API server and the command that works in it.
type world struct {
	*testing.T
	env       *testenv.Env
	namespace string
	client    client.WithWatch
}

func newWorld(t *testing.T) *world {
	e := server.Start(t, "providers/core/config/crd")
	scheme, err := management.Scheme()
	if err != nil {
		t.Fatal(err)
	}
	return &world{T: t, env: e, namespace: e.Namespace(t), client: e.NewClient(t, scheme)}
}

func (w *world) run(args ...string) (string, error) {
	streams, buffers := iostreams.Test()
	f := factory.New(streams, func(string) (string, bool) { return "", false }, nil)
	f.Connect = func(management.Kubeconfig) (*management.Cluster, error) {
		return &management.Cluster{Client: w.client, Namespace: w.namespace}, nil
	}
	cmd := NewCluster(f, nil)
	cmd.SetArgs(args)
	cmd.SilenceUsage, cmd.SilenceErrors = true, true
	err := cmd.ExecuteContext(w.Context())
	return strings.ReplaceAll(buffers.Err.String(), w.namespace, "NS"), err
}

// create makes an object of Cluster c1.
func (w *world) create(apiVersion, kind, name string, finalizers ...string) *unstructured.Unstructured {
	w.Helper()
	u := &unstructured.Unstructured{Object: map[string]any{}}
	u.SetAPIVersion(apiVersion)
	u.SetKind(kind)
	u.SetNamespace(w.namespace)
	u.SetName(name)
	u.SetLabels(map[string]string{clusterv1.ClusterNameLabel: "c1"})
	u.SetFinalizers(finalizers)
	if kind == "Machine" {
		u.Object["spec"] = map[string]any{"clusterName": "c1", "bootstrap": map[string]any{}, "infrastructureRef": map[string]any{}}
	}
	if err := w.client.Create(w.Context(), u); err != nil {
		w.Fatal(err)
	}
	return u
}

func (w *world) release(u *unstructured.Unstructured) {
	w.Helper()
	if err := w.client.Patch(w.Context(), u, client.RawPatch("application/merge-patch+json", []byte(`{"metadata":{"finalizers":null}}`))); err != nil {
		w.Fatal(err)
	}
}

const finalizer = "test.example/hold"

func TestDelete(t *testing.T) {
	w := newWorld(t)
	cluster := w.create("cluster.x-k8s.io/v1beta1", "Cluster", "c1", finalizer)
	stderr, err := w.run("c1", "--no-wait")
	if diff := cmp.Diff("Deleting cluster NS/c1: first its Machines, the Cluster itself last\n", stderr); diff != "" || err != nil {
		t.Errorf("%v: -want +got:\n%s", err, diff)
	}
	// A longer timeout, if the objects could not be read within a short one.
	timeout := 200 * time.Millisecond
	for stderr, err = w.run("c1", "--timeout", timeout.String()); err != nil && strings.Contains(err.Error(), "objects to be read"); {
		timeout *= 2
		stderr, err = w.run("c1", "--timeout", timeout.String())
	}
	want := fmt.Sprintf("is not gone after %s: still waiting for 1 Cluster to be deleted", timeout)
	if err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(stderr, "already being deleted, since ") {
		t.Errorf("again, it must wait, and say for what in the end; got %v\n%s", err, stderr)
	}
	w.release(cluster)
	if _, err := w.run("c1"); err == nil || !strings.Contains(err.Error(), "cluster "+w.namespace+"/c1 not found") {
		t.Errorf("a missing Cluster cannot be deleted, got %v", err)
	}
}

func TestDeleteWaitsForEverything(t *testing.T) {
	w := newWorld(t)
	cluster := w.create("cluster.x-k8s.io/v1beta1", "Cluster", "c1", finalizer)
	machine := w.create("cluster.x-k8s.io/v1beta1", "Machine", "m1", finalizer)
	left := w.create("cluster.x-k8s.io/v1beta1", "MachineHealthCheck", "left", finalizer)
	w.create("v1", "Secret", "mine")
	for _, u := range []*unstructured.Unstructured{machine, left} {
		if err := w.client.Delete(t.Context(), u); err != nil {
			t.Fatal(err)
		}
	}
	// The objects leave one after the other, each when the command watches for it.
	steps := map[string]func(){
		"ClusterList":            func() { w.release(cluster) },
		"MachineList":            func() { w.release(machine) },
		"MachineHealthCheckList": func() { w.release(left) },
	}
	w.client = interceptor.NewClient(w.client, interceptor.Funcs{
		Watch: func(ctx context.Context, c client.WithWatch, list client.ObjectList, opts ...client.ListOption) (watch.Interface, error) {
			answer, err := c.Watch(ctx, list, opts...)
			if step := steps[list.GetObjectKind().GroupVersionKind().Kind]; step != nil && err == nil {
				step()
			}
			return answer, err
		},
	})
	stderr, err := w.run("c1", "--wait", "--timeout", "1m")
	if err != nil {
		t.Fatalf("%v\n%s", err, stderr)
	}
	for _, want := range []string{
		"Waiting for MachineHealthCheck/left to be deleted\n",
		"Not deleted, because the Cluster does not own it: Secret/mine\nCluster NS/c1 is deleted\n",
	} {
		if !strings.Contains(stderr, want) {
			t.Errorf("want %q in:\n%s", want, stderr)
		}
	}
	if err := w.client.Get(t.Context(), client.ObjectKey{Namespace: w.namespace, Name: "mine"}, &corev1.Secret{}); err != nil {
		t.Errorf("what the cluster does not own must stay: %v", err)
	}
}

func TestRemaining(t *testing.T) {
	object := func(kind, name string) *unstructured.Unstructured {
		u := &unstructured.Unstructured{Object: map[string]any{}}
		u.SetAPIVersion("cluster.x-k8s.io/v1beta1")
		u.SetKind(kind)
		u.SetName(name)
		return u
	}
	objects := tree.NewObjects(object("Machine", "a"), object("Machine", "b"), object("Cluster", "c"))
	if diff := cmp.Diff([]string{"1 Cluster, 2 Machines to be deleted"}, remaining(objects)); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if got := remaining(tree.NewObjects()); got != nil {
		t.Errorf("nothing is left, got %v", got)
	}
}

func TestFlags(t *testing.T) {
	type inputs struct {
		Namespace, Name string
		Wait            bool
		Timeout         time.Duration
	}
	for name, tc := range map[string]struct {
		reason string
		args   []string
		want   inputs
		err    string
	}{
		"Defaults":  {"It waits by default.", []string{"c1"}, inputs{"", "c1", true, 30 * time.Minute}, ""},
		"Wait":      {"It can be told to.", []string{"c1", "--wait", "-n", "ns", "--timeout", "5s"}, inputs{"ns", "c1", true, 5 * time.Second}, ""},
		"No wait":   {"--no-wait disables it.", []string{"c1", "--no-wait"}, inputs{"", "c1", false, 30 * time.Minute}, ""},
		"Both":      {"That is a contradiction.", []string{"c1", "--no-wait", "--wait"}, inputs{}, "none of the others can be"},
		"No time":   {"A timeout of zero is rejected.", []string{"c1", "--timeout", "0s"}, inputs{}, "--timeout is 0s"},
		"No name":   {"There is no default cluster.", nil, inputs{}, "the cluster name is required"},
		"Two names": {"More than one name is rejected.", []string{"c1", "c2"}, inputs{}, "expected one cluster name"},
	} {
		t.Run(name, func(t *testing.T) {
			streams, _ := iostreams.Test()
			var got inputs
			cmd := NewCluster(factory.New(streams, func(string) (string, bool) { return "", false }, nil), func(_ context.Context, o *ClusterOptions) error {
				got = inputs{o.Namespace, o.ClusterName, o.Wait, o.Timeout}
				return nil
			})
			cmd.SetArgs(append([]string{}, tc.args...))
			cmd.SilenceUsage, cmd.SilenceErrors = true, true
			err := cmd.ExecuteContext(t.Context())
			if (err == nil) != (tc.err == "") || err != nil && !strings.Contains(err.Error(), tc.err) {
				t.Errorf("%s\nwant error %q, got %v", tc.reason, tc.err, err)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s\n-want +got:\n%s", tc.reason, diff)
			}
		})
	}
}
