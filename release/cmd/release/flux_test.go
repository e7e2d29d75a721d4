package main

import (
	"testing"

	"github.com/fluxcd/cli-utils/pkg/kstatus/status"
	"github.com/google/cel-go/cel"
)

// check is how Flux judges a kind.
type check struct {
	APIVersion, Kind            string
	InProgress, Failed, Current string
}

func checks(t *testing.T) []check {
	t.Helper()
	var kustomization struct {
		Spec struct {
			Wait             bool
			HealthCheckExprs []check
		}
	}
	file(t, "flux-health.yaml", &kustomization)
	return kustomization.Spec.HealthCheckExprs
}

// holds evaluates an expression; false if there is none. Its variables are the fields of the object.
func holds(t *testing.T, expression string, obj map[string]any) bool {
	t.Helper()
	if expression == "" {
		return false
	}
	env, err := cel.NewEnv(cel.OptionalTypes(), cel.Variable("metadata", cel.DynType), cel.Variable("spec", cel.DynType), cel.Variable("status", cel.DynType))
	if err != nil {
		t.Fatal(err)
	}
	ast, issues := env.Compile(expression)
	if issues.Err() != nil {
		t.Fatalf("%s: %v", expression, issues.Err())
	}
	program, err := env.Program(ast)
	if err != nil {
		t.Fatal(err)
	}
	result, _, err := program.Eval(obj)
	if err != nil {
		t.Fatalf("%s: %v", expression, err)
	}
	return result.Value() == true
}

// judged returns what Flux makes of an object: the first expression that holds, otherwise it waits.
func (c check) judged(t *testing.T, obj map[string]any) string {
	t.Helper()
	switch {
	case holds(t, c.InProgress, obj):
		return "InProgress"
	case holds(t, c.Failed, obj):
		return "Failed"
	case holds(t, c.Current, obj):
		return "Current"
	}
	return "InProgress"
}

func TestFlux(t *testing.T) {
	want := map[string]string{
		"1-creating": "InProgress", "2-at-rest": "Current", "3-upgrading": "InProgress", "4-upgraded": "Current",
		"5-scaling": "InProgress", "6-scaled": "Current", "7-paused": "InProgress", // Its generation was not observed.
	}
	judged := map[string]int{}
	all := checks(t)
	for _, s := range recorded(t) {
		t.Run(s.release+"/"+s.name+"/"+s.version, func(t *testing.T) {
			for _, c := range all {
				for _, o := range s.objects {
					if o.GetAPIVersion() != c.APIVersion || o.GetKind() != c.Kind {
						continue
					}
					judged[c.APIVersion+" "+c.Kind]++
					got := c.judged(t, o.Object)
					if got == "Failed" {
						t.Errorf("%s %s failed, but nothing did", o.GetKind(), o.GetName())
					}
					if c.Kind == "Cluster" && want[s.name] != "" && got != want[s.name] {
						t.Errorf("the Cluster is %s, want %s", got, want[s.name])
					}
					if want[s.name] == "Current" && got != "Current" {
						t.Errorf("%s %s is %s in a Cluster at rest", o.GetKind(), o.GetName(), got)
					}
				}
			}
		})
	}
	for _, kind := range []string{"Cluster", "MachineDeployment", "MachineHealthCheck", "ClusterClass"} {
		for _, version := range []string{"v1beta1", "v1beta2"} {
			if judged["cluster.x-k8s.io/"+version+" "+kind] == 0 {
				t.Errorf("no recorded %s of %s was judged", kind, version)
			}
		}
	}
}

// TestFailuresInFlux: a topology that cannot be reconciled does not become ready by itself.
func TestFailuresInFlux(t *testing.T) {
	failed := []any{map[string]any{"type": "TopologyReconciled", "status": "False", "reason": "ReconcileFailed"}}
	for _, c := range checks(t) {
		if c.Kind != "Cluster" {
			continue
		}
		status := map[string]any{"conditions": failed}
		if c.APIVersion == "cluster.x-k8s.io/v1beta1" {
			status = map[string]any{"v1beta2": status}
		}
		if got := c.judged(t, map[string]any{"metadata": map[string]any{}, "status": status}); got != "Failed" {
			t.Errorf("%s: %s, want Failed", c.APIVersion, got)
		}
	}
}

// TestKstatus is why there are expressions: kstatus looks for Ready, which most kinds of v1beta2 do not have, so that a Cluster which is
// being created is current for it.
func TestKstatus(t *testing.T) {
	for _, s := range recorded(t) {
		if s.release != "v1.14.0" || s.name != "1-creating" && s.name != "2-at-rest" {
			continue
		}
		cluster, want := s.in("Cluster"), status.CurrentStatus
		if s.version == "v1beta1" && s.name == "1-creating" {
			want = status.InProgressStatus
		}
		result, err := status.Compute(cluster)
		if err != nil {
			t.Fatalf("%s: %v", s.name, err)
		}
		if result.Status != want {
			t.Errorf("%s in %s: %s, want %s (%s)", s.name, s.version, result.Status, want, result.Message)
		}
	}
}
