package invariant

import (
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/watch"

	"sigs.k8s.io/cluster-api/test/fault/extension"
	"sigs.k8s.io/cluster-api/test/fault/history"
	"sigs.k8s.io/cluster-api/test/fault/scenario"
)

// heldByPatches checks that nothing of the Cluster is created or gets another spec in a phase of the extension in which it does not give
// answers that count.
func heldByPatches(r Run) []Violation {
	if len(r.Scenario.Words) == 0 {
		return nil
	}
	generations := map[history.Key]int64{}
	for key, o := range r.Before.End() {
		generations[key] = o.GetGeneration()
	}
	return r.play(func(e history.Event, now history.State) *Violation {
		if !ofTopology(e.Object) {
			return nil
		}
		before := generations[e.Key()]
		generations[e.Key()] = e.Object.GetGeneration()
		phase := extension.PhaseOf(scenario.Record(now))
		if e.Type == watch.Deleted || phase == extension.Answers || before == e.Object.GetGeneration() {
			return nil
		}
		return &Violation{
			Detail: fmt.Sprintf("%s %s is created or changed, while the extension is in phase %s", e.Object.GetKind(), e.Object.GetName(), phase),
		}
	})
}

// ofTopology reports whether an object is one that the topology controller applies, or a Machine.
func ofTopology(o *unstructured.Unstructured) bool {
	return slices.Contains([]string{
		"InMemoryCluster", "KubeadmControlPlane", "MachineDeployment", "Machine",
		"KubeadmConfigTemplate", "InMemoryMachineTemplate", "MachineHealthCheck",
	}, o.GetKind())
}

// onlyConfirmedPatches checks that no template of the Cluster, and no configuration of a Machine, ever has a patch of an answer that the
// extension contradicted, or lacks its patch.
func onlyConfirmedPatches(r Run) []Violation {
	if len(r.Scenario.Words) == 0 {
		return nil
	}
	return r.play(func(e history.Event, _ history.State) *Violation {
		commands, ok := scenario.PatchedCommands(e.Object)
		if !ok || len(commands) == 1 &&
			slices.ContainsFunc(r.Scenario.Words, func(word string) bool { return commands[0] == extension.Command(word) }) {
			return nil
		}
		return &Violation{Detail: fmt.Sprintf("the commands of %s %s are %q", e.Object.GetKind(), e.Object.GetName(), commands)}
	})
}
