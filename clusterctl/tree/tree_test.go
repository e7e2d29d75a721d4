package tree

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
)

var update = flag.Bool("update", false, "rewrite the expected tables")

func TestTree(t *testing.T) {
	for name, tc := range map[string]treeCase{
		"Default": {
			reason:  "Machines in the same state are grouped, and healthy objects hidden.",
			objects: base(),
			options: Options{Grouping: true},
		},
		"Everything": {
			reason:  "Each flag adds its objects, templates first.",
			objects: with(base(), newObject("addons.cluster.x-k8s.io/v1beta1", "ClusterResourceSetBinding", "c1").set([]any{map[string]any{"clusterResourceSetName": "cni"}}, "spec", "bindings")),
			options: Options{Echo: true, Templates: true, MachineSets: true, ResourceSets: true, Grouping: true},
		},
		"Trouble": {
			reason: "Machines in another state have their own lines, and so do their objects if their state differs.",
			objects: with(base(),
				newObject(coreVersion, "Machine", "c1-md-1-b").owned("MachineSet", "c1-md-1").
					condition("Ready", "False", "Error", "CreateError", strings.Repeat("no capacity, ", 10), time.Minute).
					ref(infrastructureVersion, "ToyMachine", "c1-md-1-b", machineInfrastructure...).
					ref(bootstrapVersion, "KubeadmConfig", "c1-md-1-b", machineBootstrap...),
				newObject(infrastructureVersion, "ToyMachine", "c1-md-1-b").condition("Ready", "False", "Error", "CreateError", "", time.Minute),
				newObject(bootstrapVersion, "KubeadmConfig", "c1-md-1-b").condition("Ready", "Unknown", "", "Odd", "", time.Minute),
			),
			options: Options{Grouping: true},
		},
		"Health checks": {
			reason: "MachineHealthChecks show what they check, or why they remediate nothing; Machines show why they are unhealthy.",
			objects: with(base(),
				newObject(coreVersion, "MachineHealthCheck", "c1-cp").condition("RemediationAllowed", "True", "", "", "", time.Minute).
					set(int64(3), "status", "expectedMachines").set(int64(3), "status", "currentHealthy").set("40%", "spec", "maxUnhealthy").
					set([]any{map[string]any{"type": "Ready", "status": "Unknown", "timeout": "5m0s"}}, "spec", "unhealthyConditions"),
				newObject(coreVersion, "MachineHealthCheck", "c1-md-1").
					condition("RemediationAllowed", "False", "Warning", "TooManyUnhealthy", "2 of 3 Machines are not healthy", time.Minute),
				newObject(coreVersion, "MachineHealthCheck", "own"),
				newObject(coreVersion, "Machine", "c1-md-1-b").owned("MachineSet", "c1-md-1").
					condition("Ready", "False", "Warning", "UnhealthyNode", "Condition Ready of Node b has been Unknown for more than 5m0s", time.Minute),
			),
			options: Options{Grouping: true, HealthChecks: true},
		},
		"Ungrouped and echoed": {
			reason:  "Every object is shown.",
			objects: with(base(), newObject(coreVersion, "Machine", "c1-cp-2").label(clusterv1.MachineControlPlaneLabel).deleting()),
			options: Options{Echo: true},
		},
		"Conditions": {
			reason:  "The other conditions of a kind are below it; a requested Machine is not grouped.",
			objects: with(base(), newObject(coreVersion, "Machine", "c1-md-1-b").owned("MachineSet", "c1-md-1").ready(time.Minute).condition("NodeHealthy", "True", "", "", "", time.Second)),
			options: Options{Grouping: true, ShowConditions: []string{"KubeadmControlPlane", " Machine/c1-md-1-b"}},
		},
		"All conditions": {
			reason:  "Groups stay groups.",
			objects: base(),
			options: Options{Grouping: true, ShowConditions: []string{"ALL"}},
		},
		"Pools and others": {
			reason: "MachinePools have their objects and Machines; Machines without owners are shown.",
			objects: with(NewObjects(),
				newObject(coreVersion, "Cluster", "c1"),
				newObject(coreVersion, "MachinePool", "mp").
					ref(infrastructureVersion, "ToyMachinePool", "mp", templateInfrastructure...).
					ref(bootstrapVersion, "KubeadmConfig", "mp", templateBootstrap...),
				newObject(infrastructureVersion, "ToyMachinePool", "mp").condition("Ready", "False", "Info", "Scaling", "", time.Second),
				newObject(bootstrapVersion, "KubeadmConfig", "mp").ready(time.Second),
				newObject(coreVersion, "Machine", "mp-1").owned("MachinePool", "mp"),
				newObject(coreVersion, "Machine", "mp-2").owned("MachinePool", "mp"),
				newObject(coreVersion, "Machine", "stray"),
				newObject(coreVersion, "Machine", "plane").label(clusterv1.MachineControlPlaneLabel),
			),
			options: Options{Grouping: true},
		},
		"Cluster gone": {
			reason:  "Objects that outlive their Cluster are still shown.",
			objects: with(NewObjects(), newObject(coreVersion, "Machine", "last").deleting()),
		},
	} {
		t.Run(name, func(t *testing.T) { tc.test(t, name) })
	}
}

func TestTreeOfTrouble(t *testing.T) {
	for name, tc := range map[string]treeCase{
		"Narrow terminal": {
			reason: "In a terminal that is narrower than the table, messages are below their rows.",
			objects: with(base(),
				newObject(coreVersion, "Cluster", "c1").ready(time.Hour).condition("TopologyReconciled", "False", "Error", "TopologyReconcileFailed",
					"patch audit: /spec/template/spec/kubeadmConfigSpec/clusterConfiguration/apiServer does not exist: add it in an earlier patch, or to the template", time.Minute)),
			options: Options{Grouping: true},
			width:   80,
		},
		"Behind Ready": {
			reason: "What Ready does not summarize is shown when it is wrong: a class that is not applied, Nodes that are not healthy, resources of sets.",
			objects: with(base(),
				newObject(coreVersion, "Cluster", "c1").ready(time.Hour).condition("TopologyReconciled", "False", "Error", "TopologyReconcileFailed", "patch audit", time.Minute).
					ref(controlPlaneVersion, "KubeadmControlPlane", "c1-cp", clusterControlPlane...),
				newObject(coreVersion, "Machine", "c1-md-1-b").owned("MachineSet", "c1-md-1").ready(time.Minute).set("n", "status", "nodeRef", "name").
					condition("NodeHealthy", "Unknown", "", "NodeConditionsFailed", "the kubelet has stopped", time.Second),
				newObject("addons.cluster.x-k8s.io/v1beta1", "ClusterResourceSetBinding", "c1").set([]any{map[string]any{"clusterResourceSetName": "cni", "resources": []any{
					map[string]any{"applied": true}, map[string]any{"kind": "ConfigMap", "name": "absent", "applied": false},
				}}}, "spec", "bindings"),
			),
			options: Options{Grouping: true, ResourceSets: true},
		},
	} {
		t.Run(name, func(t *testing.T) { tc.test(t, name) })
	}
}

// treeCase is compared with a file in testdata.
type treeCase struct {
	reason  string
	objects *Objects
	options Options
	width   int
	short   bool
}

func (tc treeCase) test(t *testing.T, name string) {
	t.Helper()
	var b strings.Builder
	if err := Write(&b, Build(testCluster, tc.objects, tc.options), Style{Now: testTime, Width: tc.width, Short: tc.short, Reports: tc.options.Reports}); err != nil {
		t.Fatal(err)
	}
	golden := filepath.Join("testdata", strings.NewReplacer(" ", "-", ",", "").Replace(strings.ToLower(name))+".txt")
	if *update {
		if err := os.WriteFile(golden, []byte(b.String()), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(strings.Split(string(want), "\n"), strings.Split(b.String(), "\n")); diff != "" {
		t.Errorf("%s\n-want +got:\n%s", tc.reason, diff)
	}
}

func TestColors(t *testing.T) {
	objects := with(base(),
		newObject(coreVersion, "Machine", "c1-md-1-b").owned("MachineSet", "c1-md-1").condition("Ready", "False", "Error", "Bad", "very", 0).deleting(),
		newObject(coreVersion, "MachineDeployment", "c1-md").condition("Ready", "False", "Warning", "Slow", "", 0),
		newObject(coreVersion, "Machine", "c1-md-1-a").owned("MachineSet", "c1-md-1").condition("Ready", "False", "Info", "Wait", "", 0),
		newObject(infrastructureVersion, "ToyCluster", "c1").condition("Paused", "True", "", "", "", 0),
	)
	lines := Lines(Build(testCluster, objects, Options{Grouping: true, ShowConditions: []string{"ToyCluster"}}), Style{Now: testTime, Color: true})
	text := strings.Join(lines, "\n")
	for reason, want := range map[string]string{
		"True is green":             "\x1b[32mTrue\x1b[0m",
		"errors are red":            "\x1b[31mBad\x1b[0m",
		"warnings are yellow":       "\x1b[33mSlow\x1b[0m",
		"other states are white":    "\x1b[37mWait\x1b[0m",
		"a deletion is red":         "\x1b[31m (deleting)\x1b[0m",
		"references are gray":       "ControlPlane - \x1b[90mKubeadmControlPlane/c1-cp\x1b[0m",
		"names of groups are bold":  "\x1b[97;1m3 Machines...\x1b",
		"a group's message is gray": "\x1b[90mSee c1-cp-0, c1-cp-1, ...\x1b[0m",
		"names of conditions cyan":  "\x1b[36mPaused\x1b[0m",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("%s: want %q in:\n%s", reason, want, text)
		}
	}
	plain := Lines(Build(testCluster, objects, Options{Grouping: true, ShowConditions: []string{"ToyCluster"}}), Style{Now: testTime})
	if strings.Contains(strings.Join(plain, ""), "\x1b") {
		t.Error("there must be no colors unless asked for")
	}
}

// large returns a Cluster whose MachineDeployment has n more Machines.
func large(n int) *Objects {
	objects := base()
	for i := range n {
		with(objects, machine(fmt.Sprintf("m-%04d", i), "MachineSet", "c1-md-1")...)
	}
	return objects
}

func TestSelections(t *testing.T) {
	want := []string{
		"Cluster ns/c1", "Machine ns/", "MachineSet ns/", "MachineDeployment ns/", "MachinePool ns/", "ToyCluster ns/c1",
		"KubeadmControlPlane ns/c1-cp", "ToyMachine ns/", "KubeadmConfig ns/", "ToyMachineTemplate ns/", "KubeadmConfigTemplate ns/",
	}
	var got []string
	for _, s := range Selections(testCluster, large(500), Options{Templates: true}) {
		got = append(got, fmt.Sprintf("%s %s/%s", s.Kind.Kind, s.Namespace, s.Name))
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("One request per kind, however many Machines there are: -want +got:\n%s", diff)
	}
}

func TestMissing(t *testing.T) {
	m := newObject(coreVersion, "Machine", "new").ref(infrastructureVersion, "ToyMachine", "new", machineInfrastructure...)
	gone := newObject(coreVersion, "Machine", "gone").ref(bootstrapVersion, "KubeadmConfig", "gone", machineBootstrap...).deleting()
	want := []Selection{{Kind: newObject(infrastructureVersion, "ToyMachine", "").GroupVersionKind(), Namespace: "ns"}}
	if diff := cmp.Diff(want, Missing(testCluster, with(base(), m, gone), Options{})); diff != "" {
		t.Errorf("What a leaving Machine refers to is not missed: -want +got:\n%s", diff)
	}
	if got := Missing(testCluster, base(), Options{Templates: true}); got != nil {
		t.Errorf("nothing is missing, got %v", got)
	}
}

func BenchmarkTree500Machines(b *testing.B) {
	objects := large(500)
	for _, o := range []Options{{Grouping: true}, {Echo: true, ShowConditions: []string{"all"}}} {
		b.Run(fmt.Sprintf("grouping=%v", o.Grouping), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				Lines(Build(testCluster, objects, o), Style{Now: testTime})
			}
		})
	}
}
