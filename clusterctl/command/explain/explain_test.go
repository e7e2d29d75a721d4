package explain

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"sigs.k8s.io/cluster-api/clusterctl/explain"
	"sigs.k8s.io/cluster-api/clusterctl/factory"
	"sigs.k8s.io/cluster-api/clusterctl/iostreams"
	"sigs.k8s.io/cluster-api/clusterctl/management"
	"sigs.k8s.io/cluster-api/clusterctl/tree"
)

func TestRun(t *testing.T) {
	scheme, err := management.Scheme()
	if err != nil {
		t.Fatal(err)
	}
	u := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"paused": true}}}
	u.SetGroupVersionKind(tree.ClusterKind)
	u.SetNamespace("ns")
	u.SetName("c1")
	c := fake.NewClientBuilder().WithScheme(scheme).WithObjects(u).
		WithIndex(&corev1.Event{}, "type", func(o client.Object) []string { return []string{o.(*corev1.Event).Type} }).Build()
	for _, output := range []string{"text", "json", "name"} {
		t.Run(output, func(t *testing.T) {
			streams, buffers := iostreams.Test()
			opts := &Options{
				IO: streams, ClusterName: "c1", Output: output, Clock: clocktesting.NewFakePassiveClock(time.Date(2030, 1, 2, 12, 0, 0, 0, time.UTC)),
				Connect: func(management.Kubeconfig) (*management.Cluster, error) {
					return &management.Cluster{Client: c, Namespace: "ns"}, nil
				},
			}
			if err := run(t.Context(), opts); err != nil {
				t.Fatal(err)
			}
			if output == "text" {
				if want := "Cluster ns/c1 waits for Cluster/c1: the Cluster is paused"; !strings.HasPrefix(buffers.Out.String(), want) {
					t.Errorf("want %q, got:\n%s", want, buffers.Out)
				}
				return
			}
			if output == "name" {
				if buffers.Out.String() != "cluster.cluster.x-k8s.io/c1\n" {
					t.Errorf("the names are %q", buffers.Out)
				}
				return
			}
			opts.ExitCode = true
			if err := run(t.Context(), opts); factory.ExitCode(err) != factory.ExitBlocked {
				t.Errorf("want the exit code of a blocked Cluster, got %v", err)
			}
			report := explain.Report{}
			if err := json.NewDecoder(buffers.Out).Decode(&report); err != nil || report.Healthy || report.Causes[0].Reason != "Paused" {
				t.Errorf("report %+v, error %v", report, err)
			}
		})
	}
	streams, _ := iostreams.Test()
	opts := &Options{IO: streams, ClusterName: "none", Clock: clocktesting.NewFakePassiveClock(time.Time{}),
		Connect: func(management.Kubeconfig) (*management.Cluster, error) {
			return &management.Cluster{Client: c, Namespace: "ns"}, nil
		}}
	if err := run(t.Context(), opts); err == nil || !strings.Contains(err.Error(), "cluster ns/none not found") {
		t.Errorf("error %v", err)
	}
}

func TestMistakes(t *testing.T) {
	tests := []struct {
		reason string
		args   []string
		want   string
	}{
		{"no name", nil, "the cluster name is required"},
		{"two names", []string{"a", "b"}, "expected one cluster name, got 2 (a, b)"},
		{"the words of describe", []string{"cluster", "c1"}, "expected one cluster name, got 2 (cluster, c1)"},
		{"an unknown format", []string{"c1", "-o", "table"}, `--output "table" is not supported: use text, wide, name, json or yaml`},
	}
	for _, tc := range tests {
		t.Run(tc.reason, func(t *testing.T) {
			streams, _ := iostreams.Test()
			cmd := NewCmd(factory.New(streams, func(string) (string, bool) { return "", false }, nil), nil)
			cmd.SetArgs(tc.args)
			cmd.SetOut(streams.Out)
			cmd.SetErr(streams.Err)
			if err := cmd.ExecuteContext(t.Context()); err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("error %v, want %q", err, tc.want)
			}
		})
	}
}

type flagged struct{}

func (flagged) Line(line string) string { return line }
func (flagged) Text(text string) string { return text + " --flags" }

// Actions are about the management cluster, except those that name the workload cluster.
func TestActionsAreCompleted(t *testing.T) {
	streams, _ := iostreams.Test()
	streams.FollowUp = flagged{}
	causes := []explain.Cause{{Actions: []string{"See `kubectl get x`", "In the workload cluster, see `kubectl get pods`"}}}
	complete(streams, causes)
	if diff := cmp.Diff([]string{"See `kubectl get x` --flags", "In the workload cluster, see `kubectl get pods`"}, causes[0].Actions); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}
