package main

import (
	"slices"
	"strings"
	"testing"

	lua "github.com/yuin/gopher-lua"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// scripts returns the scripts by group and kind.
func scripts(t *testing.T) map[string]string {
	t.Helper()
	var config struct{ Data map[string]string }
	file(t, "argocd-health.yaml", &config)
	found := map[string]string{}
	for key, script := range config.Data {
		name, ok := strings.CutPrefix(key, "resource.customizations.health.")
		if !ok {
			t.Errorf("%s is no setting of Argo CD for health", key)
		}
		found[name] = script
	}
	return found
}

// judge runs a script as Argo CD does, with nothing but the base library and tables.
func judge(t *testing.T, script string, obj map[string]any) (health, message string) {
	t.Helper()
	state := lua.NewState(lua.Options{SkipOpenLibs: true})
	defer state.Close()
	for name, open := range map[string]lua.LGFunction{lua.LoadLibName: lua.OpenPackage, lua.BaseLibName: lua.OpenBase, lua.TabLibName: lua.OpenTable} {
		if err := state.CallByParam(lua.P{Fn: state.NewFunction(open), Protect: true}, lua.LString(name)); err != nil {
			t.Fatal(err)
		}
	}
	state.SetContext(t.Context())
	state.SetGlobal("obj", value(state, obj))
	if err := state.DoString(script); err != nil {
		t.Fatalf("the script fails: %v", err)
	}
	result, ok := state.Get(-1).(*lua.LTable)
	if !ok {
		t.Fatalf("the script returns %s", state.Get(-1).Type())
	}
	return lua.LVAsString(result.RawGetString("status")), lua.LVAsString(result.RawGetString("message"))
}

// value returns a JSON value as one of Lua.
func value(state *lua.LState, v any) lua.LValue {
	switch v := v.(type) {
	case map[string]any:
		table := state.NewTable()
		for key, member := range v {
			table.RawSetString(key, value(state, member))
		}
		return table
	case []any:
		table := state.NewTable()
		for _, item := range v {
			table.Append(value(state, item))
		}
		return table
	case string:
		return lua.LString(v)
	case bool:
		return lua.LBool(v)
	case int64:
		return lua.LNumber(v)
	case float64:
		return lua.LNumber(v)
	}
	return lua.LNil
}

// TestArgoCD: the health of a Cluster follows its states, and no object of any kind is an error.
func TestArgoCD(t *testing.T) {
	want := map[string]string{
		"1-creating": "Progressing", "2-at-rest": "Healthy", "3-upgrading": "Progressing", "4-upgraded": "Healthy",
		"5-scaling": "Progressing", "6-scaled": "Healthy", "7-paused": "Suspended", "8-deleting": "Progressing",
	}
	all, judged := scripts(t), map[string]bool{}
	for _, s := range recorded(t) {
		t.Run(s.release+"/"+s.name+"/"+s.version, func(t *testing.T) {
			for _, o := range s.objects {
				name := o.GroupVersionKind().Group + "_" + o.GetKind()
				script, known := all[name]
				if !known {
					continue
				}
				judged[name] = true
				health, message := judge(t, script, o.Object)
				if !slices.Contains([]string{"Healthy", "Progressing", "Suspended", "Degraded"}, health) || health != "Healthy" && message == "" {
					t.Errorf("%s %s: health %q, message %q", o.GetKind(), o.GetName(), health, message)
				}
				if health == "Degraded" {
					t.Errorf("%s %s is Degraded, but nothing failed: %s", o.GetKind(), o.GetName(), message)
				}
			}
			cluster := s.in("Cluster")
			if cluster == nil {
				return
			}
			if health, message := judge(t, all["cluster.x-k8s.io_Cluster"], cluster.Object); health != want[s.name] {
				t.Errorf("the Cluster is %s (%s), want %s", health, message, want[s.name])
			}
			if want[s.name] != "Healthy" {
				return
			}
			for _, kind := range []string{"KubeadmControlPlane", "MachineDeployment", "MachineSet", "Machine", "MachineHealthCheck", "ClusterClass", "KubeadmConfig"} {
				if kind == "MachineSet" && s.release == "v1.7.0" {
					continue // v1.7 says of one without replicas that it is not ready.
				}
				if o := s.in(kind); o != nil {
					if health, message := judge(t, all["cluster.x-k8s.io_Cluster"], o.Object); health != "Healthy" {
						t.Errorf("%s %s is %s (%s) in a Cluster at rest", kind, o.GetName(), health, message)
					}
				}
			}
		})
	}
	for _, name := range []string{"cluster.x-k8s.io_Machine", "controlplane.cluster.x-k8s.io_KubeadmControlPlane", "bootstrap.cluster.x-k8s.io_KubeadmConfig"} {
		if !judged[name] {
			t.Errorf("no recorded %s was judged", name)
		}
	}
}

// TestArgoCDOnFailures has what the recorded states do not have.
func TestArgoCDOnFailures(t *testing.T) {
	object := func(apiVersion string, status map[string]any) map[string]any {
		return map[string]any{"apiVersion": apiVersion, "kind": "Cluster", "metadata": map[string]any{"generation": int64(2)}, "status": status}
	}
	list := func(conditions ...map[string]any) []any {
		var l []any
		for _, c := range conditions {
			l = append(l, c)
		}
		return l
	}
	c := func(t, status, reason, message string) map[string]any {
		return map[string]any{"type": t, "status": status, "reason": reason, "message": message}
	}
	failed := c("TopologyReconciled", "False", "ReconcileFailed", "the class has no such variable")
	lost := list(c("ControlPlaneInitialized", "True", "Initialized", ""), c("RemoteConnectionProbe", "False", "ProbeFailed", "no connection"))
	const newer, older = "cluster.x-k8s.io/v1beta2", "cluster.x-k8s.io/v1beta1"
	script := scripts(t)["cluster.x-k8s.io_Cluster"]
	for name, tt := range map[string]struct {
		reason          string
		object          map[string]any
		health, message string
	}{
		"Empty":       {"a new object has no status", object(newer, nil), "Progressing", "Waiting for a status"},
		"Unobserved":  {"the status is of an older generation", object(newer, map[string]any{"observedGeneration": int64(1)}), "Progressing", "Waiting for the latest change to be observed"},
		"Topology":    {"a class that fails needs a person", object(newer, map[string]any{"conditions": list(failed)}), "Degraded", "TopologyReconciled: the class has no such variable"},
		"TopologyOld": {"the same in v1beta1", object(older, map[string]any{"v1beta2": map[string]any{"conditions": list(failed)}}), "Degraded", "TopologyReconciled: the class has no such variable"},
		"Connection":  {"an initialized control plane that does not respond", object(newer, map[string]any{"conditions": lost}), "Degraded", "RemoteConnectionProbe: no connection"},
		"NotYet":      {"one that is not initialized is being created", object(newer, map[string]any{"conditions": lost[1:]}), "Progressing", "Waiting for conditions"},
		"Severity": {"v1.7 has severities", object(older, map[string]any{"conditions": list(
			map[string]any{"type": "Ready", "status": "False", "severity": "Error", "reason": "Failed", "message": "no quota"})}), "Degraded", "Ready: no quota"},
		"Malformed": {"other programs write what they like", object(newer, map[string]any{"conditions": list(map[string]any{"type": "Ready", "status": "False"})}), "Progressing", "Ready: False"},
	} {
		t.Run(name, func(t *testing.T) {
			if tt.object["status"].(map[string]any) == nil {
				delete(tt.object, "status")
			}
			if health, message := judge(t, script, (&unstructured.Unstructured{Object: tt.object}).Object); health != tt.health || message != tt.message {
				t.Errorf("%s: %s, %q; want %s, %q", tt.reason, health, message, tt.health, tt.message)
			}
		})
	}
}
