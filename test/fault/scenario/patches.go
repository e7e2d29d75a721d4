package scenario

import (
	"context"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta1"
	"sigs.k8s.io/cluster-api/test/fault/extension"
	"sigs.k8s.io/cluster-api/test/fault/history"
)

// secondWord is the value of the extension's variable after a change.
const secondWord = "goodbye"

// patched returns the scenarios of Clusters with an external patch: its extension is away, contradicts itself, and rejects the topology
// before it answers. Answers for a Cluster without Machines are not compared, so that it does not contradict itself during a creation.
func patched() []Scenario {
	s := deployed(1, 1)
	create := creation("patched-create", s)
	create.Prepare = inOrder(UsePatch, BeginPhases(extension.Away, extension.Rejects))
	create.Words = []string{extension.DefaultWord}
	create.Done = append(create.Done, Patched(extension.DefaultWord))

	change := rollout("patched-change", s, ChangeWord, 1, 1, Patched(secondWord))
	change.Prepare = UsePatch
	change.Arrange = BeginPhases(extension.Away, extension.Random, extension.Rejects)
	change.Words = []string{extension.DefaultWord, secondWord}

	all := []Scenario{create, change}
	for i := range all {
		all[i].Hooks, all[i].Provider = true, EndPhases
	}
	return all
}

func inOrder(changes ...Change) Change {
	return func(ctx context.Context, t Target) error {
		for _, change := range changes {
			if err := change(ctx, t); err != nil {
				return err
			}
		}
		return nil
	}
}

// UsePatch adds the external patch to the class.
func UsePatch(ctx context.Context, t Target) error {
	if err := CallHooks()(ctx, t); err != nil {
		return err
	}
	return editClass(ctx, t, func(class map[string]any) error {
		return unstructured.SetNestedSlice(class, []any{extension.Patch()}, "spec", "patches")
	})
}

// BeginPhases makes the extension go through phases, of which EndPhases ends each.
func BeginPhases(phases ...extension.Phase) Change {
	return func(ctx context.Context, t Target) error {
		return extension.Begin(ctx, t.Client, t.Namespace, phases...)
	}
}

// callsPerPhase is how often the extension is called in a phase: two answers to one request contradict each other.
const callsPerPhase = 2

// EndPhases ends the phase in which the extension was called often enough.
func EndPhases(ctx context.Context, t Target, now history.State) error {
	phase := extension.PhaseOf(Record(now))
	if phase == extension.Answers || extension.CallsIn(Record(now), phase) < callsPerPhase {
		return nil
	}
	return extension.EndPhase(ctx, t.Client, t.Namespace, phase)
}

// ChangeWord changes the value of the extension's variable, for all Machines.
func ChangeWord(ctx context.Context, t Target) error {
	return editCluster(func(topology map[string]any) error {
		return unstructured.SetNestedSlice(topology, []any{map[string]any{"name": extension.WordVariable, "value": secondWord}}, "variables")
	})(ctx, t)
}

// Patched is true when the extension answers, and all Machines are created from templates with this word.
func Patched(word string) Condition {
	return func(now history.State) error {
		if phase := extension.PhaseOf(Record(now)); phase != extension.Answers {
			return fmt.Errorf("the extension is in phase %s", phase)
		}
		for _, o := range slices.Concat(now.Of("KubeadmControlPlane"), now.Of("KubeadmConfig"), bootstrapTemplates(now)) {
			commands, _ := PatchedCommands(o)
			if want := []string{extension.Command(word)}; !slices.Equal(commands, want) {
				return fmt.Errorf("the commands of %s %s are %q, want %q", o.GetKind(), o.GetName(), commands, want)
			}
		}
		return nil
	}
}

// bootstrapTemplates returns the templates that MachineDeployments refer to. Those of old MachineSets are kept.
func bootstrapTemplates(now history.State) []*unstructured.Unstructured {
	var found []*unstructured.Unstructured
	for _, d := range now.Of("MachineDeployment") {
		name, _, _ := unstructured.NestedString(d.Object, "spec", "template", "spec", "bootstrap", "configRef", "name")
		if template := now[history.Key{Kind: "KubeadmConfigTemplate", Name: name}]; template != nil {
			found = append(found, template)
		}
	}
	return found
}

// PatchedCommands returns the commands that the extension's patch sets, and whether an object has templates of a Cluster.
func PatchedCommands(o *unstructured.Unstructured) (commands []string, ok bool) {
	path, ok := map[string][]string{
		"KubeadmControlPlane":   {"spec", "kubeadmConfigSpec", "preKubeadmCommands"},
		"KubeadmConfig":         {"spec", "preKubeadmCommands"},
		"KubeadmConfigTemplate": {"spec", "template", "spec", "preKubeadmCommands"},
	}[o.GetKind()]
	if !ok || o.GetLabels()[clusterv1.ClusterNameLabel] == "" {
		return nil, false // The templates of the class have no label.
	}
	commands, _, _ = unstructured.NestedStringSlice(o.Object, path...)
	return commands, true
}
