package describe

import (
	"context"
	"io"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/utils/clock"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"sigs.k8s.io/cluster-api/clusterctl/factory"
	"sigs.k8s.io/cluster-api/clusterctl/iostreams"
	"sigs.k8s.io/cluster-api/clusterctl/management"
	"sigs.k8s.io/cluster-api/clusterctl/tree"
)

func TestFlags(t *testing.T) {
	type inputs struct {
		Tree                tree.Options
		Namespace, Name     string
		Kubeconfig, Context string
		Color               bool
	}
	for name, tc := range map[string]struct {
		reason string
		args   []string
		want   inputs
	}{
		"Defaults": {"Grouping and v1beta2 are on, all else off.", []string{"c1"}, inputs{Name: "c1", Tree: tree.Options{Grouping: true, Reports: true}}},
		"Every flag": {
			"Each flag has its option.",
			[]string{"c1", "--kubeconfig", "k", "--kubeconfig-context", "x", "-n", "ns", "--show-conditions", "Machine,Cluster/c1", "--show-machinesets", "--show-resourcesets", "--show-healthchecks", "--show-templates", "--echo", "--grouping=false", "--v1beta2=false", "-c"},
			inputs{
				Name: "c1", Namespace: "ns", Color: true, Kubeconfig: "k", Context: "x",
				Tree: tree.Options{ShowConditions: []string{"Machine", "Cluster/c1"}, MachineSets: true, ResourceSets: true, HealthChecks: true, Templates: true, Echo: true},
			},
		},
		"Wide":       {"Other formats than text have what v1beta1 has.", []string{"c1", "-o", "wide"}, inputs{Name: "c1", Tree: tree.Options{Grouping: true}}},
		"Deprecated": {"The old flag still works.", []string{"c1", "--disable-grouping"}, inputs{Name: "c1", Tree: tree.Options{Reports: true}}},
	} {
		t.Run(name, func(t *testing.T) {
			streams, _ := iostreams.Test()
			var got inputs
			cmd := NewCluster(factory.New(streams, func(string) (string, bool) { return "", false }, nil), func(_ context.Context, o *Options) error {
				got = inputs{o.Tree, o.Namespace, o.ClusterName, o.Kubeconfig.Path, o.Kubeconfig.Context, o.IO.OutColor()}
				return nil
			})
			cmd.SetArgs(tc.args)
			cmd.SetErr(streams.Err)
			if err := cmd.ExecuteContext(t.Context()); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s\n-want +got:\n%s", tc.reason, diff)
			}
		})
	}
}

func TestRun(t *testing.T) {
	scheme, err := management.Scheme()
	if err != nil {
		t.Fatal(err)
	}
	u := &unstructured.Unstructured{Object: map[string]any{"status": map[string]any{"conditions": []any{
		map[string]any{"type": "Ready", "status": "False", "severity": "Info", "reason": "Early", "lastTransitionTime": "2030-01-02T12:00:00Z"},
	}}}}
	u.SetGroupVersionKind(tree.ClusterKind)
	u.SetNamespace("default")
	u.SetName("c1")
	c := fake.NewClientBuilder().WithScheme(scheme).WithObjects(u).Build()
	streams, buffers := iostreams.Test()
	opts := &Options{
		IO: streams, ClusterName: "c1", Clock: clocktesting.NewFakeClock(time.Date(2030, 1, 2, 12, 0, 5, 0, time.UTC)),
		Connect: func(management.Kubeconfig) (*management.Cluster, error) {
			return &management.Cluster{Client: c, Namespace: "default", Host: "https://mgmt"}, nil
		},
	}
	if err := run(t.Context(), opts); err != nil {
		t.Fatal(err)
	}
	want := "NAME        READY  SEVERITY  REASON  SINCE  MESSAGE\nCluster/c1  False  Info      Early   5s\n"
	if diff := cmp.Diff(want, buffers.Out.String()); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	buffers.Out.Reset()
	opts.Output = "name"
	if err := run(t.Context(), opts); err != nil || buffers.Out.String() != "cluster.cluster.x-k8s.io/c1\n" {
		t.Errorf("the names are %q, %v", buffers.Out, err)
	}
	if got, err := conditionObjects(t.Context(), opts, []string{"c1"}, "Machine,C"); err != nil || !slices.Equal(got, []string{"Machine,Cluster", "Machine,Cluster/c1", "Machine,all"}) {
		t.Errorf("--show-conditions is completed with %q, %v", got, err)
	}
	opts.Output = ""
	opts.ClusterName = "c2"
	if err := run(t.Context(), opts); err == nil || !strings.Contains(err.Error(), "cluster default/c2 not found") {
		t.Errorf("want an error for a missing Cluster, got %v", err)
	}
	none := interceptor.NewClient(c, interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, o client.Object, opts ...client.GetOption) error {
			if kind := o.GetObjectKind().GroupVersionKind(); kind == tree.ClusterKind {
				return &meta.NoKindMatchError{GroupKind: kind.GroupKind()}
			}
			return c.Get(ctx, key, o, opts...)
		},
	})
	opts.Connect = func(management.Kubeconfig) (*management.Cluster, error) {
		return &management.Cluster{Client: none, Namespace: "default", Host: "https://mgmt"}, nil
	}
	if err := run(t.Context(), opts); err == nil || !strings.Contains(err.Error(), "run `clusterctl init` first") {
		t.Errorf("want what to do about a cluster that is no management cluster, got %v", err)
	}
}

func TestOutputs(t *testing.T) {
	scheme, err := management.Scheme()
	if err != nil {
		t.Fatal(err)
	}
	u := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"topology": map[string]any{"version": "v1.31.0"}}}}
	u.SetGroupVersionKind(tree.ClusterKind)
	u.SetNamespace("default")
	u.SetName("c1")
	c := fake.NewClientBuilder().WithScheme(scheme).WithObjects(u).Build()
	for output, want := range map[string]string{
		"json": "{\n  \"apiVersion\": \"cluster.x-k8s.io/v1beta1\",\n  \"kind\": \"Cluster\",\n  \"namespace\": \"default\",\n  \"name\": \"c1\",\n  \"version\": \"v1.31.0\"\n}\n",
		"yaml": "apiVersion: cluster.x-k8s.io/v1beta1\nkind: Cluster\nname: c1\nnamespace: default\nversion: v1.31.0\n",
		"wide": "NAME        REPLICAS  VERSION  NODE  AGE  READY  SEVERITY  REASON  SINCE  MESSAGE\nCluster/c1            v1.31.0\n",
	} {
		t.Run(output, func(t *testing.T) {
			streams, buffers := iostreams.Test()
			opts := &Options{IO: streams, ClusterName: "c1", Output: output, Clock: clocktesting.NewFakeClock(time.Time{}),
				Connect: func(management.Kubeconfig) (*management.Cluster, error) {
					return &management.Cluster{Client: c, Namespace: "default"}, nil
				}}
			if err := run(t.Context(), opts); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(want, buffers.Out.String()); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

func TestMistakes(t *testing.T) {
	for _, tc := range []struct {
		reason string
		args   []string
		want   string
	}{
		{"an unknown format", []string{"c1", "-o", "tree"}, `--output "tree" is not supported: use text, wide, name, json or yaml`},
		{"watching JSON", []string{"c1", "-w", "-o", "json"}, "--watch is not supported with --output json"},
	} {
		t.Run(tc.reason, func(t *testing.T) {
			streams, _ := iostreams.Test()
			cmd := NewCluster(factory.New(streams, func(string) (string, bool) { return "", false }, nil), nil)
			cmd.SetArgs(tc.args)
			cmd.SetOut(streams.Out)
			cmd.SetErr(streams.Err)
			if err := cmd.ExecuteContext(t.Context()); err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("error %v, want %q", err, tc.want)
			}
		})
	}
}

// TestWatchEnds checks that watching ends with the Cluster, and fails if there is none.
func TestWatchEnds(t *testing.T) {
	scheme := runtime.NewScheme() // The fake sends events with the types of its scheme.
	scheme.AddKnownTypeWithName(tree.ClusterKind, &unstructured.Unstructured{})
	scheme.AddKnownTypeWithName(tree.ClusterKind.GroupVersion().WithKind("ClusterList"), &unstructured.UnstructuredList{})
	u := &unstructured.Unstructured{}
	u.SetGroupVersionKind(tree.ClusterKind)
	u.SetNamespace("default")
	u.SetName("c1")
	mapper := meta.NewDefaultRESTMapper(nil)
	mapper.Add(tree.ClusterKind, meta.RESTScopeNamespace)
	watched := make(chan struct{}, 100) // The fake does not repeat events from before a watch.
	c := fake.NewClientBuilder().WithScheme(scheme).WithObjects(u).WithRESTMapper(mapper).
		WithIndex(u.DeepCopy(), "metadata.name", func(o client.Object) []string { return []string{o.GetName()} }).
		WithInterceptorFuncs(interceptor.Funcs{Watch: func(ctx context.Context, c client.WithWatch, list client.ObjectList, opts ...client.ListOption) (watch.Interface, error) {
			w, err := c.Watch(ctx, list, opts...)
			watched <- struct{}{}
			return w, err
		}}).Build()
	_, buffers := iostreams.Test()
	out := &notifying{Writer: buffers.Out, written: make(chan struct{}, 100)}
	opts := &Options{IO: iostreams.New(buffers.In, out, buffers.Err), ClusterName: "c1", Watch: true, Clock: clock.RealClock{},
		Connect: func(management.Kubeconfig) (*management.Cluster, error) {
			return &management.Cluster{Client: c, Namespace: "default"}, nil
		}}
	done := make(chan error, 1)
	go func() { done <- run(t.Context(), opts) }()
	for _, event := range []<-chan struct{}{watched, out.written} {
		select {
		case <-event:
		case err := <-done:
			t.Fatalf("watching ended: %v", err)
		}
	}
	if err := c.Delete(t.Context(), u); err != nil {
		t.Fatal(err)
	}
	if err := <-done; err != nil || !strings.Contains(buffers.Err.String(), "Cluster default/c1 is deleted") {
		t.Errorf("error %v, messages: %s", err, buffers.Err)
	}
	if err := run(t.Context(), opts); err == nil || !strings.Contains(err.Error(), "cluster default/c1 not found") {
		t.Errorf("error %v, want that the Cluster is not found", err)
	}
}

// notifying notifies of writes.
type notifying struct {
	io.Writer
	written chan struct{}
}

func (n *notifying) Write(p []byte) (int, error) {
	defer func() { n.written <- struct{}{} }()
	return n.Writer.Write(p)
}
