package clusterrollout

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	fleetv1 "sigs.k8s.io/cluster-api/api/fleet/v1alpha1"
	"sigs.k8s.io/cluster-api/clusterctl/management"
	"sigs.k8s.io/cluster-api/packages/manifest"
	"sigs.k8s.io/cluster-api/providers/fleet/rolloutplan"
	"sigs.k8s.io/cluster-api/sdk/testenv"
)

const rolloutYAML = `
apiVersion: fleet.cluster.x-k8s.io/v1alpha1
kind: ClusterRollout
metadata: {name: up}
spec:
  clusterSelector: {}
  change: {version: v1.31.0}
  strategyRef: {name: waves}
---
apiVersion: fleet.cluster.x-k8s.io/v1alpha1
kind: ClusterRolloutStrategy
metadata: {name: waves}
spec:
  stages:
  - name: canary
    selector: {matchLabels: {stage: canary}}
  - name: rest
    gate: Approval
    selector: {matchLabels: {stage: rest}}
`

func scheme(t *testing.T) *runtime.Scheme {
	t.Helper()
	s, err := management.Scheme()
	testenv.Must(t, err)
	testenv.Must(t, clusterv1.AddToScheme(s))
	return s
}

// server returns a management cluster with objects.
func server(t *testing.T, objects ...client.Object) client.WithWatch {
	t.Helper()
	return fake.NewClientBuilder().WithScheme(scheme(t)).WithObjects(objects...).WithStatusSubresource(&fleetv1.ClusterRollout{}).Build()
}

// member returns a Cluster of a stage.
func member(name, stage string) *clusterv1.Cluster {
	c := &clusterv1.Cluster{}
	c.Namespace, c.Name, c.UID, c.Labels = "default", name, types.UID(name), map[string]string{"stage": stage}
	c.Spec.Topology.ClassRef.Name, c.Spec.Topology.Version = "c", "v1.30.0"
	return c
}

// effects plans Clusters by their names.
func effects(_ context.Context, c *clusterv1.Cluster, _ *fleetv1.RolloutChange, _ bool) (rolloutplan.Effect, error) {
	switch {
	case strings.HasPrefix(c.Name, "old"):
		return rolloutplan.Effect{Effect: fleetv1.RolloutForbidden, Reason: "spec.topology.version: not permitted for " + c.Name}, nil
	case strings.HasPrefix(c.Name, "same"):
		return rolloutplan.Effect{Effect: fleetv1.RolloutUnchanged}, nil
	}
	return rolloutplan.Effect{Effect: fleetv1.RolloutReplacing, Machines: 5}, nil
}

func planning(c client.Reader) *Planning {
	return &Planning{Client: c, Effect: effects, Backoff: wait.Backoff{Steps: 2}, Progress: func(int, int) {}}
}

func parsed(t *testing.T) (*fleetv1.ClusterRollout, []*fleetv1.ClusterRolloutStrategy) {
	t.Helper()
	objects, err := manifest.Parse([]byte(rolloutYAML))
	testenv.Must(t, err)
	r, strategies, err := Parse(pointers(objects), "default")
	testenv.Must(t, err)
	return r, strategies
}

// TestPlan plans the Clusters of two stages, and shows them in groups.
func TestPlan(t *testing.T) {
	all := []client.Object{member("same-a", "canary"), member("none", "other")}
	for i := range 7 {
		all = append(all, member(fmt.Sprintf("new-%d", i), "rest"))
	}
	for i := range 2 {
		all = append(all, member(fmt.Sprintf("old-%d", i), "rest"))
	}
	r, strategies := parsed(t)
	plan, err := planning(server(t, all...)).Plan(t.Context(), r, strategies)
	testenv.Must(t, err)
	var out strings.Builder
	testenv.Must(t, Show(&out, plan, false))
	want := `ClusterRollout default/up: version v1.31.0
Plan HASH: 10 Clusters; in 7, 35 Machines are replaced; 1 stay as they are; 2 cannot be changed
Cannot go back: version v1.31.0: Kubernetes versions do not go back.

STAGE   CLUSTERS  REPLACING  MACHINES  IN PLACE  UNCHANGED  FORBIDDEN  UNKNOWN  GATE
canary  1         0          0         0         1          0          0        None
rest    9         7          35        0         0          2          0        Approval

Forbidden, 2 Clusters, spec.topology.version: not permitted for <cluster>: old-0, old-1
5 Machines replaced in 7 Clusters: new-0, new-1, new-2 and 4 more
Unchanged, 1 Cluster: same-a
Not changed, because no stage selects them: none
`
	got := strings.ReplaceAll(out.String(), plan.Summary.Hash, "HASH")
	if diff := cmp.Diff(want, got); diff != "" || plan.Summary.Hash == "" || !plan.Changes() {
		t.Errorf("plan (-want +got):\n%s", diff)
	}
	out.Reset()
	testenv.Must(t, Show(&out, plan, true))
	if !strings.Contains(out.String(), "new-5, new-6") {
		t.Errorf("all Clusters are to be named:\n%s", out.String())
	}
}

// TestPlanErrors: temporary errors are tolerated for a while.
func TestPlanErrors(t *testing.T) {
	r, strategies := parsed(t)
	p, calls := planning(server(t, member("a", "canary"))), 0
	p.Effect = func(ctx context.Context, c *clusterv1.Cluster, change *fleetv1.RolloutChange, force bool) (rolloutplan.Effect, error) {
		if calls++; calls == 1 {
			return rolloutplan.Effect{}, errors.New("down")
		}
		return effects(ctx, c, change, force)
	}
	if _, err := p.Plan(t.Context(), r, strategies); err != nil {
		t.Errorf("one error is tolerated: %v", err)
	}
	p.Effect = func(context.Context, *clusterv1.Cluster, *fleetv1.RolloutChange, bool) (rolloutplan.Effect, error) {
		return rolloutplan.Effect{}, errors.New("down")
	}
	if _, err := p.Plan(t.Context(), r, strategies); err == nil || err.Error() != "planning Cluster a: down" {
		t.Errorf("error %v", err)
	}
	if _, err := p.Plan(t.Context(), r, nil); err == nil || !strings.Contains(err.Error(), "there is no ClusterRolloutStrategy default/waves") {
		t.Errorf("error without the strategy: %v", err)
	}
}

func TestParse(t *testing.T) {
	for _, tc := range []struct{ reason, from, to, want string }{
		{"a rollout is required", "kind: ClusterRollout\n", "kind: Other\n", "the files have no ClusterRollout"},
		{"fields must be known", "clusterSelector: {}", "selector: {}", `unknown field "spec.selector"`},
		{"something must change", "{version: v1.31.0}", "{}", "changes nothing"},
		{"a strategy is required", "  strategyRef: {name: waves}\n", "", "exactly one of spec.strategy and spec.strategyRef"},
		{"a name is required", "metadata: {name: up}", "metadata: {}", "has no name"},
	} {
		t.Run(tc.reason, func(t *testing.T) {
			objects, err := manifest.Parse([]byte(strings.Replace(rolloutYAML, tc.from, tc.to, 1)))
			testenv.Must(t, err)
			if _, _, err := Parse(pointers(objects), "default"); err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("error %v, want %q", err, tc.want)
			}
		})
	}
}

func TestGeneral(t *testing.T) {
	for _, tc := range []struct{ text, name, want string }{
		{"Machine c-md-0 of c is not ready", "c", "Machine <cluster>-md-0 of <cluster> is not ready"},
		{"a class of abc", "abc", "a class of <cluster>"},
		{"abcd", "abc", "abcd"},
		{"nothing", "", "nothing"},
	} {
		if got := general(tc.text, tc.name); got != tc.want {
			t.Errorf("%q for %q: %q, want %q", tc.text, tc.name, got, tc.want)
		}
	}
}

// now is the time of tests.
var now = time.Date(2026, 6, 1, 12, 0, 0, 0, time.UTC)

func pointers(objects []unstructured.Unstructured) []*unstructured.Unstructured {
	var all []*unstructured.Unstructured
	for i := range objects {
		all = append(all, &objects[i])
	}
	return all
}
