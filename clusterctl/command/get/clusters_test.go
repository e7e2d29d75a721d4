package get

import (
	"bufio"
	"context"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	clusterv1beta1 "sigs.k8s.io/cluster-api/api/core/v1beta1"
	"sigs.k8s.io/cluster-api/clusterctl/factory"
	"sigs.k8s.io/cluster-api/clusterctl/iostreams"
	"sigs.k8s.io/cluster-api/clusterctl/management"
	"sigs.k8s.io/cluster-api/clusterctl/tree"
)

var now = time.Date(2030, 1, 2, 12, 0, 0, 0, time.UTC)

func cluster(namespace, name, team string) *clusterv1beta1.Cluster {
	return &clusterv1beta1.Cluster{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, Labels: map[string]string{"team": team}, CreationTimestamp: metav1.NewTime(now.Add(-time.Hour))},
		Spec:       clusterv1beta1.ClusterSpec{Topology: &clusterv1beta1.Topology{Class: "quick", Version: "v1.31.0"}},
		Status:     clusterv1beta1.ClusterStatus{Phase: "Provisioning"},
	}
}

func TestClusters(t *testing.T) {
	scheme, err := management.Scheme()
	if err != nil {
		t.Fatal(err)
	}
	newest := cluster("b", "two", "red")
	newest.CreationTimestamp.Time = newest.CreationTimestamp.Add(time.Second)
	c := fake.NewClientBuilder().WithScheme(scheme).WithObjects(cluster("a", "one", "blue"), newest, &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Namespace: "p", Name: "p", Labels: map[string]string{"cluster.x-k8s.io/provider": "cluster-api"}},
	}).Build()
	const (
		headings  = "NAME   CLASS   VERSION   CONTROL PLANE   WORKERS   READY   AGE   ACTIVITY\n"
		one       = "one    quick   v1.31.0   -               0/0       -       60m   waiting for infrastructure\n"
		two       = "two    quick   v1.31.0   -               0/0       -       59m   waiting for infrastructure\n"
		namespace = "NAMESPACE   "
		a, b      = "a           ", "b           "
	)
	tests := []struct {
		reason string
		opts   ClustersOptions
		want   string
		err    string
	}{
		{reason: "the namespace of the kubeconfig", want: headings + one},
		{reason: "another namespace", opts: ClustersOptions{Namespace: "b"}, want: headings + two},
		{reason: "all namespaces", opts: ClustersOptions{AllNamespaces: true}, want: namespace + headings + a + one + b + two},
		{reason: "a label", opts: ClustersOptions{AllNamespaces: true, Selector: "team=red"}, want: namespace + headings + b + two},
		{reason: "a name", opts: ClustersOptions{Names: []string{"one"}, NoHeaders: true}, want: "one   quick   v1.31.0   -   0/0   -   60m   waiting for infrastructure\n"},
		{reason: "the newest first", opts: ClustersOptions{AllNamespaces: true, Output: "name", SortBy: "age"}, want: "cluster.cluster.x-k8s.io/two\ncluster.cluster.x-k8s.io/one\n"},
		{reason: "names of all", opts: ClustersOptions{AllNamespaces: true, Output: "name"}, want: "cluster.cluster.x-k8s.io/one\ncluster.cluster.x-k8s.io/two\n"},
		{
			reason: "wide", opts: ClustersOptions{Output: "wide"},
			want: "NAME   CLASS   VERSION   CONTROL PLANE   WORKERS   READY   AGE   PHASE          INFRASTRUCTURE   CONTROL PLANE KIND   ENDPOINT   ACTIVITY\n" +
				"one    quick   v1.31.0   -               0/0       -       60m   Provisioning   -                -                    -          waiting for infrastructure\n",
		},
		{
			reason: "YAML", opts: ClustersOptions{Output: "yaml"},
			want: "items:\n- activity: waiting for infrastructure\n  class: quick\n  created: \"2030-01-02T11:00:00Z\"\n  name: one\n  namespace: a\n" +
				"  phase: Provisioning\n  version: v1.31.0\n  workers:\n    desired: 0\n    ready: 0\n    updated: 0\n",
		},
		{reason: "nothing, in JSON, is an empty list", opts: ClustersOptions{Namespace: "none", Output: "json"}, want: "{\n  \"items\": []\n}\n"},
		{reason: "nothing in a table is a message", opts: ClustersOptions{Namespace: "none"}, err: "No workload clusters found in namespace none\n"},
	}
	for _, tc := range tests {
		t.Run(tc.reason, func(t *testing.T) {
			streams, buffers := iostreams.Test()
			tc.opts.IO, tc.opts.Clock = streams, clocktesting.NewFakePassiveClock(now)
			tc.opts.Connect = func(management.Kubeconfig) (*management.Cluster, error) {
				return &management.Cluster{Client: c, Namespace: "a"}, nil
			}
			if err := runClusters(t.Context(), &tc.opts); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, strings.ReplaceAll(buffers.Out.String(), "    \n", "\n")); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
			if diff := cmp.Diff(tc.err, buffers.Err.String()); diff != "" {
				t.Errorf("messages (-want +got):\n%s", diff)
			}
		})
	}
}

// TestWithoutProviders: what is shown was reported before the providers were deleted. Programs are not told.
func TestWithoutProviders(t *testing.T) {
	scheme, err := management.Scheme()
	if err != nil {
		t.Fatal(err)
	}
	lease := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: "elsewhere", Name: "controller-leader-election-capi"}}
	running := lease.DeepCopy()
	running.Spec.RenewTime = &metav1.MicroTime{Time: time.Now()}
	for _, tt := range []struct {
		reason, output string
		lease          *coordinationv1.Lease
		warns          bool
	}{
		{reason: "for people", output: "text", lease: lease, warns: true},
		{reason: "names", output: "name", lease: lease},
		{reason: "for programs", output: "json", lease: lease},
		{reason: "managers run elsewhere", output: "text", lease: running},
	} {
		c := fake.NewClientBuilder().WithScheme(scheme).WithObjects(cluster("a", "one", "blue"), tt.lease).
			WithIndex(tt.lease, "metadata.name", func(o client.Object) []string { return []string{o.GetName()} }).Build()
		output := tt.output
		streams, buffers := iostreams.Test()
		opts := &ClustersOptions{
			IO: streams, Clock: clocktesting.NewFakePassiveClock(now), Output: output,
			Connect: func(management.Kubeconfig) (*management.Cluster, error) {
				return &management.Cluster{Client: c, Namespace: "a"}, nil
			},
		}
		if err := runClusters(t.Context(), opts); err != nil {
			t.Fatal(err)
		}
		if warned := strings.Contains(buffers.Err.String(), "no provider is installed"); warned != tt.warns {
			t.Errorf("%s: %q", tt.reason, buffers.Err)
		}
	}
}

func TestWatch(t *testing.T) {
	one := &unstructured.Unstructured{}
	one.SetGroupVersionKind(tree.ClusterKind)
	one.SetNamespace("a")
	one.SetName("one")
	one.SetCreationTimestamp(metav1.NewTime(now.Add(-time.Hour)))
	scheme, mapper := runtime.NewScheme(), meta.NewDefaultRESTMapper(nil)
	scheme.AddKnownTypeWithName(tree.ClusterKind, &unstructured.Unstructured{})
	scheme.AddKnownTypeWithName(tree.ClusterKind.GroupVersion().WithKind("ClusterList"), &unstructured.UnstructuredList{})
	mapper.Add(tree.ClusterKind, meta.RESTScopeNamespace)
	watched := make(chan struct{}, 10) // The fake does not repeat events from before a watch.
	c := fake.NewClientBuilder().WithScheme(scheme).WithRESTMapper(mapper).WithObjects(one).WithInterceptorFuncs(interceptor.Funcs{
		Watch: func(ctx context.Context, c client.WithWatch, list client.ObjectList, opts ...client.ListOption) (watch.Interface, error) {
			w, err := c.Watch(ctx, list, opts...)
			watched <- struct{}{}
			return w, err
		},
	}).Build()
	streams, _ := iostreams.Test()
	out, in := io.Pipe()
	streams.Out = in
	lines := make(chan string, 10)
	go func() {
		for scanner := bufio.NewScanner(out); scanner.Scan(); {
			lines <- strings.Join(strings.Fields(scanner.Text()), " ")
		}
	}()
	ctx, interrupt := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() {
		done <- runClusters(ctx, &ClustersOptions{
			IO: streams, Clock: clocktesting.NewFakePassiveClock(now), Watch: true, Namespace: "a",
			Connect: func(management.Kubeconfig) (*management.Cluster, error) { return &management.Cluster{Client: c}, nil },
		})
	}()
	for _, want := range []string{"NAME CLASS VERSION CONTROL PLANE WORKERS READY AGE ACTIVITY", "one - - - 0/0 - 60m waiting for infrastructure"} {
		if have := <-lines; have != want {
			t.Errorf("line %q, want %q", have, want)
		}
	}
	<-watched
	if err := unstructured.SetNestedField(one.Object, true, "spec", "paused"); err != nil {
		t.Fatal(err)
	}
	if err := c.Update(t.Context(), one); err != nil {
		t.Fatal(err)
	}
	if have, want := <-lines, "one - - - 0/0 - 60m paused"; have != want {
		t.Errorf("a change is %q, want %q", have, want)
	}
	interrupt()
	if err := <-done; err != nil {
		t.Errorf("an interruption is no error: %v", err)
	}
}

func TestClustersMistakes(t *testing.T) {
	tests := []struct {
		reason string
		args   []string
		want   string
	}{
		{"a name in all namespaces", []string{"c1", "-A"}, "names and --all-namespaces exclude each other"},
		{"an unknown format", []string{"-o", "table"}, `--output "table" is not supported: use text, wide, name, json or yaml`},
		{"one namespace and all", []string{"-A", "-n", "ns"}, "[all-namespaces namespace]"},
		{"an unknown flag", []string{"--all"}, "unknown flag: --all"},
		{"a watch for programs", []string{"-w", "-o", "json"}, "--watch is not supported with --output json"},
		{"an invalid selector", []string{"-l", "a in b"}, `--selector "a in b" is invalid`},
	}
	for _, tc := range tests {
		t.Run(tc.reason, func(t *testing.T) {
			streams, _ := iostreams.Test()
			f := factory.New(streams, func(string) (string, bool) { return "", false }, nil)
			cmd := NewClusters(f, nil)
			cmd.SetArgs(tc.args)
			cmd.SetOut(streams.Out)
			cmd.SetErr(streams.Err)
			if err := cmd.ExecuteContext(context.Background()); err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("error %v, want %q", err, tc.want)
			}
		})
	}
}
