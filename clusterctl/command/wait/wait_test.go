package wait

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/yaml"

	"sigs.k8s.io/cluster-api/clusterctl/factory"
	"sigs.k8s.io/cluster-api/clusterctl/iostreams"
	"sigs.k8s.io/cluster-api/clusterctl/management"
	"sigs.k8s.io/cluster-api/clusterctl/tree"
	"sigs.k8s.io/cluster-api/providers/core/topologyplan"
)

const (
	plain = `
apiVersion: cluster.x-k8s.io/v1beta1
kind: Cluster
metadata: {name: c1, namespace: ns}
status: {conditions: [{type: ControlPlaneInitialized, status: "True"}]}`
	withClass = `
apiVersion: cluster.x-k8s.io/v1beta1
kind: Cluster
metadata: {name: c1, namespace: ns}
spec:
  topology: {class: quick, version: v1.31.0}
  controlPlaneRef: {apiVersion: controlplane.cluster.x-k8s.io/v1beta1, kind: KubeadmControlPlane, name: cp}
status: {conditions: [{type: ControlPlaneInitialized, status: "True"}, {type: TopologyReconciled, status: "True"}]}`
	plane = `
apiVersion: controlplane.cluster.x-k8s.io/v1beta1
kind: KubeadmControlPlane
metadata: {name: cp, namespace: ns, labels: {cluster.x-k8s.io/cluster-name: c1}}
spec: {version: v1.31.0}
status: {ready: true}`
)

func object(t *testing.T, text string) *unstructured.Unstructured {
	t.Helper()
	u := &unstructured.Unstructured{}
	if err := yaml.Unmarshal([]byte(text), &u.Object); err != nil {
		t.Fatal(err)
	}
	return u
}

// kinds returns a client of an API server with these objects and their kinds.
func kinds(t *testing.T, texts []string) client.WithWatch {
	t.Helper()
	scheme, mapper := runtime.NewScheme(), meta.NewDefaultRESTMapper(nil)
	builder := fake.NewClientBuilder().WithScheme(scheme).WithRESTMapper(mapper)
	for _, text := range []string{plain, plane} {
		u := object(t, text)
		kind := u.GroupVersionKind()
		scheme.AddKnownTypeWithName(kind, &unstructured.Unstructured{})
		scheme.AddKnownTypeWithName(kind.GroupVersion().WithKind(kind.Kind+"List"), &unstructured.UnstructuredList{})
		mapper.Add(kind, meta.RESTScopeNamespace)
		builder.WithIndex(u, "metadata.name", func(o client.Object) []string { return []string{o.GetName()} })
	}
	for _, text := range texts {
		builder.WithObjects(object(t, text))
	}
	return builder.Build()
}

func TestRun(t *testing.T) {
	tests := []struct {
		reason   string
		objects  []string
		code     int
		messages []string
	}{
		{
			reason: "what is rolled out is not waited for", objects: []string{plain},
			messages: []string{"Cluster ns/c1 is ready"},
		},
		{
			reason: "a timeout has an exit code, and says what is missing", objects: []string{strings.Replace(plain, "True", "False", 1)},
			code: factory.ExitTimeout, messages: []string{"still waiting for the control plane to be initialized", "see `clusterctl explain c1 -n ns`"},
		},
		{
			reason: "a Cluster that does not exist is a mistake", code: 1, messages: []string{"cluster ns/c1 not found"},
		},
		{
			reason: "waiting for a Cluster that has failed is pointless", objects: []string{strings.Replace(plain, "status: {", "status: {failureMessage: no quota, ", 1)},
			code: 1, messages: []string{"failed permanently", "no quota"},
		},
		{
			reason: "a topology that cannot be planned is a warning, and the conditions decide", objects: []string{withClass, plane},
			messages: []string{"the topology cannot be planned", "Cluster ns/c1 is ready"},
		},
	}
	for _, tc := range tests {
		t.Run(tc.reason, func(t *testing.T) {
			c := management.Cluster{
				Client: kinds(t, tc.objects), Config: &rest.Config{Host: "127.0.0.1:1"}, Namespace: "ns",
			}
			streams, buffers := iostreams.Test()
			timeout := time.Minute
			if tc.code == factory.ExitTimeout {
				timeout = 200 * time.Millisecond
			}
			err := run(t.Context(), &Options{
				IO: streams, ClusterName: "c1", Clock: clock.RealClock{}, Timeout: timeout,
				Connect: func(management.Kubeconfig) (*management.Cluster, error) {
					return &c, nil
				},
			})
			if factory.ExitCode(err) != tc.code {
				t.Errorf("exit code %d, want %d: %v", factory.ExitCode(err), tc.code, err)
			}
			all := buffers.Err.String()
			if err != nil {
				all += err.Error()
			}
			for _, want := range tc.messages {
				if !strings.Contains(all, want) {
					t.Errorf("want %q in:\n%s", want, all)
				}
			}
		})
	}
}

// An API server that does not respond for a moment neither ends the wait nor the planning.
func TestPlansAreRepeated(t *testing.T) {
	streams, buffers := iostreams.Test()
	unavailable := true
	c := interceptor.NewClient(kinds(t, []string{withClass, plane}), interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, o client.Object, opts ...client.GetOption) error {
			if unavailable {
				return apierrors.NewServiceUnavailable("restarting")
			}
			return c.Get(ctx, key, o, opts...)
		},
		List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, opts ...client.ListOption) error {
			if unavailable {
				return apierrors.NewServiceUnavailable("restarting")
			}
			return c.List(ctx, list, opts...)
		},
	})
	p, err := newPlanner(&Options{IO: streams, Clock: clock.RealClock{}}, &management.Cluster{Client: c, Config: &rest.Config{Host: "127.0.0.1:1"}})
	if err != nil {
		t.Fatal(err)
	}
	cluster := object(t, withClass)
	objects := tree.NewObjects(cluster)
	for range 3 {
		if list := p.pending(t.Context(), cluster, objects); len(list) != 1 || !strings.Contains(list[0], "restarting") {
			t.Errorf("want the plan to be waited for, got %q", list)
		}
	}
	unavailable = false
	if list := p.pending(t.Context(), cluster, objects); len(list) > 0 && strings.Contains(list[0], "restarting") {
		t.Errorf("the plan is not repeated: %q", list)
	}
	if text := buffers.Err.String(); strings.Contains(text, "restarting") {
		t.Errorf("an error that passes is no warning: %s", text)
	}
}

func TestPending(t *testing.T) {
	u := object(t, plane)
	tests := []struct {
		reason string
		plan   topologyplan.Plan
		want   []string
	}{
		{"nothing is left", topologyplan.Plan{}, nil},
		{"a rollout that is in progress", topologyplan.Plan{Rounds: []topologyplan.Round{{}}}, nil},
		{
			"hooks, changes and rollouts, in their order",
			topologyplan.Plan{Rounds: []topologyplan.Round{{
				Hooks:    []string{"BeforeClusterUpgrade"},
				Changes:  []topologyplan.Change{{Action: topologyplan.Modified, After: u}},
				Rollouts: []topologyplan.Rollout{{Kind: "MachineDeployment", Name: "md", Machines: []string{"a", "b"}}, {Kind: "MachinePool", Name: "mp"}},
			}}},
			[]string{"lifecycle hook BeforeClusterUpgrade", "KubeadmControlPlane cp to be modified", "MachineDeployment md to replace 2 Machines"},
		},
		{"what annotations hold", topologyplan.Plan{Waiting: "md is deferred"}, []string{"md is deferred"}},
	}
	for _, tc := range tests {
		t.Run(tc.reason, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, pending(&tc.plan)); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}
