package rolloutplan

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	fleetv1 "sigs.k8s.io/cluster-api/api/fleet/v1alpha1"
	"sigs.k8s.io/cluster-api/providers/core/topologyplan"
	"sigs.k8s.io/cluster-api/sdk/testenv"
)

func variable(name, value string) fleetv1.RolloutVariable {
	return fleetv1.RolloutVariable{Name: name, Value: apiextensionsv1.JSON{Raw: []byte(value)}}
}

func toVersion(version string) *fleetv1.RolloutChange {
	return &fleetv1.RolloutChange{Version: version}
}

func toClass(name string) *fleetv1.RolloutChange {
	return &fleetv1.RolloutChange{ClassRef: fleetv1.RolloutClassReference{Name: name}}
}

func TestEffect(t *testing.T) {
	refused := apierrors.NewForbidden(schema.GroupResource{Resource: "machines"}, "", errors.New("no rights"))
	for _, tc := range []struct {
		reason string
		change *fleetv1.RolloutChange
		// fail fails requests that begin with it.
		fail     string
		with     error
		want     fleetv1.RolloutEffect
		machines int32
		because  string
		err      bool
	}{
		{reason: "the version that it has", change: toVersion("1.30.0"), want: fleetv1.RolloutUnchanged},
		{reason: "a version replaces all Machines", change: toVersion("v1.31.0"), want: fleetv1.RolloutReplacing, machines: 5},
		{
			reason: "versions may not be skipped", change: toVersion("v1.33.0"), want: fleetv1.RolloutForbidden,
			because: "spec.topology.version: ",
		},
		{reason: "versions do not go back", change: toVersion("v1.29.0"), want: fleetv1.RolloutForbidden, because: "spec.topology.version: "},
		{reason: "an equal class changes metadata at most", change: toClass("in-memory-v2"), want: fleetv1.RolloutUnchanged},
		{reason: "a class that does not exist", change: toClass("other"), want: fleetv1.RolloutForbidden, because: "does not exist"},
		{
			reason: "a variable that the class does not have", change: &fleetv1.RolloutChange{Variables: []fleetv1.RolloutVariable{variable("x", "1")}},
			want: fleetv1.RolloutForbidden, because: "spec.topology.variables",
		},
		{
			reason: "Machines may not be read", change: toVersion("v1.31.0"), fail: "list Machine", with: refused, want: fleetv1.RolloutUnknown,
			because: "no rights",
		},
		{
			reason: "dry runs are not permitted", change: toVersion("v1.31.0"), fail: "dry-run", with: refused, want: fleetv1.RolloutReplacing,
			machines: 5,
		},
		{reason: "the API server is down", change: toVersion("v1.31.0"), fail: "list", with: &net.OpError{Err: errors.New("down")}, err: true},
		{
			reason: "the API server is overloaded while the Cluster is validated", change: toVersion("v1.31.0"), fail: "get ClusterClass",
			with: apierrors.NewTooManyRequests("later", 1), err: true,
		},
	} {
		t.Run(tc.reason, func(t *testing.T) {
			a := newAPI(t)
			c := a.cluster("c")
			a.fail = func(request string) error {
				if tc.fail != "" && strings.HasPrefix(request, tc.fail) {
					return tc.with
				}
				return nil
			}
			got, err := a.planner().Effect(t.Context(), c, tc.change, false)
			if (err != nil) != tc.err {
				t.Fatalf("error %v, want one: %t", err, tc.err)
			}
			if got.Effect != tc.want || got.Machines != tc.machines || !strings.Contains(got.Reason, tc.because) || (tc.because == "") != (got.Reason == "") {
				t.Errorf("effect %+v, want %s with %d Machines, because of %q", got, tc.want, tc.machines, tc.because)
			}
		})
	}
}

func TestEffectOfEndedContext(t *testing.T) {
	a := newAPI(t)
	c := a.cluster("c")
	ctx, cancel := context.WithCancel(t.Context())
	a.fail = func(string) error { cancel(); return context.Canceled }
	if _, err := a.planner().Effect(ctx, c, toVersion("v1.31.0"), false); !errors.Is(err, context.Canceled) {
		t.Errorf("error %v", err)
	}
}

// TestOthersArePlanned: a Cluster that cannot be planned does not prevent the plan of another one.
func TestOthersArePlanned(t *testing.T) {
	a := newAPI(t)
	broken, c := a.cluster("broken"), a.cluster("c")
	broken.Spec.ControlPlaneRef.Kind = "Other"
	p := a.planner()
	first, err := p.Effect(t.Context(), broken, toVersion("v1.31.0"), false)
	testenv.Must(t, err)
	second, err := p.Effect(t.Context(), c, toVersion("v1.31.0"), false)
	testenv.Must(t, err)
	if first.Effect != fleetv1.RolloutUnknown && first.Effect != fleetv1.RolloutForbidden || second.Effect != fleetv1.RolloutReplacing {
		t.Errorf("effects %+v and %+v", first, second)
	}
}

// TestRequests asserts what a plan of a further Cluster costs.
func TestRequests(t *testing.T) {
	a := newAPI(t)
	first, second := a.cluster("first"), a.cluster("second")
	p := a.planner()
	_, err := p.Effect(t.Context(), first, toVersion("v1.31.0"), false)
	testenv.Must(t, err)
	shared := a.take()
	_, err = p.Effect(t.Context(), second, toVersion("v1.31.0"), false)
	testenv.Must(t, err)
	own := a.take()
	slices.Sort(own)
	for _, request := range own {
		if strings.Contains(request, "Definition") || strings.Contains(request, "ClusterClass") || request == "list Cluster" {
			t.Errorf("%s is repeated for the second Cluster", request)
		}
	}
	t.Logf("first: %d, second: %d requests:\n%s", len(shared), len(own), strings.Join(own, "\n"))
	if want := 17; len(own) != want {
		t.Errorf("%d requests for a further Cluster, want %d", len(own), want)
	}
}

func TestOwner(t *testing.T) {
	variables := &fleetv1.RolloutChange{Variables: []fleetv1.RolloutVariable{variable("a", "1")}}
	for _, tc := range []struct {
		reason, manager, fields string
		operation               metav1.ManagedFieldsOperationType
		change                  *fleetv1.RolloutChange
		want                    string
	}{
		{reason: "the version", fields: `{"f:spec":{"f:topology":{"f:version":{}}}}`, change: toVersion("v1.31.0"), want: "spec.topology.version"},
		{reason: "the same version", fields: `{"f:spec":{"f:topology":{"f:version":{}}}}`, change: toVersion("v1.30.0")},
		{reason: "another field", fields: `{"f:spec":{"f:topology":{"f:controlPlane":{"f:replicas":{}}}}}`, change: toVersion("v1.31.0")},
		{
			reason: "an update", operation: metav1.ManagedFieldsOperationUpdate, fields: `{"f:spec":{"f:topology":{"f:version":{}}}}`,
			change: toVersion("v1.31.0"),
		},
		{reason: "the topology controller", manager: "capi-topology", fields: `{"f:spec":{"f:topology":{"f:version":{}}}}`, change: toVersion("v1.31.0")},
		{reason: "a user of clusterctl", manager: "clusterctl", fields: `{"f:spec":{"f:topology":{"f:version":{}}}}`, change: toVersion("v1.31.0")},
		{reason: "rollouts", manager: FieldManager, fields: `{"f:spec":{"f:topology":{"f:version":{}}}}`, change: toVersion("v1.31.0")},
		{
			reason: "the class", fields: `{"f:spec":{"f:topology":{"f:classRef":{"f:name":{}}}}}`, change: toClass("b"),
			want: "spec.topology.classRef",
		},
		{reason: "the class in v1beta1", fields: `{"f:spec":{"f:topology":{"f:class":{}}}}`, change: toClass("b"), want: "spec.topology.classRef"},
		{
			reason: "a variable", fields: `{"f:spec":{"f:topology":{"f:variables":{"k:{\"name\":\"a\"}":{".":{},"f:name":{},"f:value":{}}}}}}`,
			change: variables, want: "spec.topology.variables[a]",
		},
		{
			reason: "a variable with a definition",
			fields: `{"f:spec":{"f:topology":{"f:variables":{"k:{\"definitionFrom\":\"\",\"name\":\"a\"}":{".":{}}}}}}`,
			change: variables, want: "spec.topology.variables[a]",
		},
		{
			reason: "another variable", fields: `{"f:spec":{"f:topology":{"f:variables":{".":{},"k:{\"name\":\"b\"}":{".":{},"f:name":{}}}}}}`,
			change: variables,
		},
		{reason: "all variables", fields: `{"f:spec":{"f:topology":{"f:variables":{}}}}`, change: variables, want: "spec.topology.variables[a]"},
		{reason: "unreadable", fields: `{`, change: variables},
	} {
		t.Run(tc.reason, func(t *testing.T) {
			c := &clusterv1.Cluster{}
			c.Spec.Topology.ClassRef.Name, c.Spec.Topology.Version = "a", "v1.30.0"
			entry := metav1.ManagedFieldsEntry{Manager: "gitops", Operation: metav1.ManagedFieldsOperationApply, FieldsV1: metav1.NewFieldsV1(tc.fields)}
			if tc.manager != "" {
				entry.Manager = tc.manager
			}
			if tc.operation != "" {
				entry.Operation = tc.operation
			}
			c.ManagedFields = []metav1.ManagedFieldsEntry{entry}
			name, manager := owned(c, tc.change)
			if name != tc.want || (manager == "gitops") != (tc.want != "") || Owner(c, tc.change) != manager {
				t.Errorf("%s is applied by %q, want %q", name, manager, tc.want)
			}
		})
	}
}

// TestOwnedIsForbidden: a change that would be taken back is forbidden, unless it is forced.
func TestOwnedIsForbidden(t *testing.T) {
	a := newAPI(t)
	c := a.cluster("c")
	c.ManagedFields = append(c.ManagedFields, metav1.ManagedFieldsEntry{
		Manager: "gitops", Operation: metav1.ManagedFieldsOperationApply,
		FieldsV1: metav1.NewFieldsV1(`{"f:spec":{"f:topology":{"f:version":{}}}}`),
	})
	p := a.planner()
	got, err := p.Effect(t.Context(), c, toVersion("v1.31.0"), false)
	testenv.Must(t, err)
	want := forbidden("spec.topology.version is applied by gitops, which would take the change back: change it there, or set spec.force")
	if got != want {
		t.Errorf("effect %+v, want %+v", got, want)
	}
	if got, err = p.Effect(t.Context(), c, toVersion("v1.31.0"), true); err != nil || got.Effect != fleetv1.RolloutReplacing {
		t.Errorf("forced: %+v, %v", got, err)
	}
}

// BenchmarkEffect plans an upgrade of further Clusters.
func BenchmarkEffect(b *testing.B) {
	a := newAPI(b)
	p := a.planner()
	var all []*clusterv1.Cluster
	for i := range 10 {
		all = append(all, a.cluster(fmt.Sprintf("c%d", i)))
	}
	i := 0
	b.ReportAllocs()
	for b.Loop() {
		if got, err := p.Effect(b.Context(), all[i%len(all)], toVersion("v1.31.0"), false); err != nil || got.Machines != 5 {
			b.Fatal(got, err)
		}
		i++
	}
}

// TestPlansThatWait: what follows another change of a Cluster is not known.
func TestPlansThatWait(t *testing.T) {
	round := topologyplan.Round{Rollouts: []topologyplan.Rollout{{Kind: "MachineDeployment", Name: "md", Machines: []string{"m"}}}}
	for _, tc := range []struct {
		reason string
		plan   topologyplan.Plan
		want   Effect
	}{
		{"nothing happens before", topologyplan.Plan{Waiting: "an upgrade"}, unknown("it waits: an upgrade")},
		{
			"something happens before", topologyplan.Plan{Waiting: "an upgrade", Rounds: []topologyplan.Round{round}},
			Effect{Effect: fleetv1.RolloutReplacing, Machines: 1, Reason: "it waits: an upgrade"},
		},
	} {
		if got := effectOf(&tc.plan); got != tc.want {
			t.Errorf("%s: got %+v, want %+v", tc.reason, got, tc.want)
		}
	}
}
