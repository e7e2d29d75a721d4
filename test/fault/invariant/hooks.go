package invariant

import (
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"sigs.k8s.io/cluster-api/test/fault/extension"
	"sigs.k8s.io/cluster-api/test/fault/history"
	"sigs.k8s.io/cluster-api/test/fault/scenario"
)

// heldByHooks checks that nothing that a blocking hook guards happens before the hook is released.
func heldByHooks(r Run) []Violation {
	if !r.Scenario.Hooks {
		return nil
	}
	guarded := map[string]func(*unstructured.Unstructured) bool{
		extension.BeforeClusterCreate: func(o *unstructured.Unstructured) bool {
			return slices.Contains([]string{"InMemoryCluster", "KubeadmControlPlane", "MachineDeployment", "Machine"}, o.GetKind())
		},
		extension.BeforeClusterUpgrade: func(o *unstructured.Unstructured) bool {
			return slices.Contains([]string{"KubeadmControlPlane", "MachineDeployment", "Machine"}, o.GetKind()) && scenario.HasNewVersion(o)
		},
		extension.AfterControlPlaneUpgrade: func(o *unstructured.Unstructured) bool {
			return slices.Contains([]string{"MachineDeployment", "MachineSet"}, o.GetKind()) && scenario.HasNewVersion(o)
		},
		extension.BeforeClusterDelete: func(o *unstructured.Unstructured) bool {
			return o.GetKind() != "Cluster" && o.GetDeletionTimestamp() != nil
		},
	}
	return r.play(func(e history.Event, now history.State) *Violation {
		record := scenario.Record(now)
		for hook, isGuarded := range guarded {
			if extension.Blocks(record, hook) && isGuarded(e.Object) {
				return &Violation{Detail: fmt.Sprintf("%s %s, while hook %s blocks", e.Object.GetKind(), e.Object.GetName(), hook)}
			}
		}
		return nil
	})
}

// hooksInTime checks that what a hook comes after has happened when it is called.
func hooksInTime(r Run) []Violation {
	if !r.Scenario.Hooks {
		return nil
	}
	calls := map[string]int{}
	conditions := map[string]scenario.Condition{
		extension.AfterControlPlaneInitialized: scenario.Initialized,
		extension.AfterControlPlaneUpgrade:     scenario.ControlPlaneUpgraded,
		extension.AfterClusterUpgrade:          scenario.Upgraded,
	}
	return r.play(func(_ history.Event, now history.State) *Violation {
		for hook, isTrue := range conditions {
			n := extension.Calls(scenario.Record(now), hook)
			if n > calls[hook] {
				if err := isTrue(now); err != nil {
					return &Violation{Detail: fmt.Sprintf("hook %s is called, but %v", hook, err)}
				}
			}
			calls[hook] = n
		}
		return nil
	})
}

// hooksOnce counts the calls of hooks that cannot block. With faults, they may be called again: managers record only afterwards that they
// were called.
func hooksOnce(r Run) []Violation {
	if !r.Scenario.Hooks || r.Baseline != nil {
		return nil
	}
	return r.play(func(_ history.Event, now history.State) *Violation {
		for _, hook := range []string{extension.AfterControlPlaneInitialized, extension.AfterClusterUpgrade} {
			if n := extension.Calls(scenario.Record(now), hook); n > 1 {
				return &Violation{Detail: fmt.Sprintf("hook %s was called %d times", hook, n)}
			}
		}
		return nil
	})
}
