package invariant

import (
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/test/fault/extension"
	"sigs.k8s.io/cluster-api/test/fault/history"
	"sigs.k8s.io/cluster-api/test/fault/scenario"
)

// updatedAsDesired checks that the extension has updated a Machine to what is desired of it when its update in place ends.
func updatedAsDesired(r Run) []Violation {
	if !r.Scenario.InPlace {
		return nil
	}
	updating := map[string]bool{}
	return r.play(func(e history.Event, now history.State) *Violation {
		m := e.Object
		if m.GetKind() != "Machine" {
			return nil
		}
		was, is := updating[m.GetName()], isUpdating(m)
		updating[m.GetName()] = is
		infrastructure := now[history.Key{Kind: "InMemoryMachine", Name: m.GetName()}]
		if !was || is || m.GetDeletionTimestamp() != nil || infrastructure == nil {
			return nil
		}
		desired := infrastructure.GetAnnotations()[clusterv1.TemplateClonedFromNameAnnotation]
		if made := extension.UpdatedTo(scenario.Record(now), m.GetName()); made != desired {
			return &Violation{Detail: fmt.Sprintf("the update of Machine %s ends, its infrastructure is of template %s, and it was updated to %q",
				m.GetName(), desired, made)}
		}
		return nil
	})
}

// oneUpdatesInPlace checks that at most one control plane Machine is being updated in place or deleted.
func oneUpdatesInPlace(r Run) []Violation {
	if !r.Scenario.InPlace {
		return nil
	}
	return r.play(func(_ history.Event, now history.State) *Violation {
		n := 0
		controlPlane, _ := scenario.Machines(now)
		for _, m := range controlPlane {
			if isUpdating(m) || m.GetDeletionTimestamp() != nil {
				n++
			}
		}
		if n > 1 {
			return &Violation{Detail: fmt.Sprintf("%d control plane Machines are being updated in place or deleted", n)}
		}
		return nil
	})
}

// workersUpdateInPlace checks that a worker always has exactly one controller, also while it moves to another MachineSet, and that as many
// workers as must be available are neither being updated in place nor deleted.
func workersUpdateInPlace(r Run) []Violation {
	if !r.Scenario.InPlace {
		return nil
	}
	complete := false
	return r.play(func(_ history.Event, now history.State) *Violation {
		serving := 0
		_, workers := scenario.Machines(now)
		for _, m := range workers {
			controllers := 0
			for _, owner := range m.GetOwnerReferences() {
				if owner.Controller != nil && *owner.Controller {
					controllers++
				}
			}
			if controllers != 1 {
				return &Violation{Detail: fmt.Sprintf("Machine %s has %d controllers", m.GetName(), controllers)}
			}
			if !isUpdating(m) && m.GetDeletionTimestamp() == nil {
				serving++
			}
		}
		minimum := r.Scenario.Limits.MinWorkers
		complete = complete || serving >= minimum
		if complete && serving < minimum {
			return &Violation{Detail: fmt.Sprintf(
				"%d workers are neither being updated in place nor deleted, at least %d must be", serving, minimum)}
		}
		return nil
	})
}

func isUpdating(m *unstructured.Unstructured) bool {
	_, marked := m.GetAnnotations()[clusterv1.UpdateInProgressAnnotation]
	return marked
}
