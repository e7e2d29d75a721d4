package invariant

import (
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta1"
	"sigs.k8s.io/cluster-api/test/fault/history"
	"sigs.k8s.io/cluster-api/test/fault/scenario"
)

// onlyDeadRemediated checks that only Machines without power are marked for remediation.
func onlyDeadRemediated(r Run) []Violation {
	return r.play(func(e history.Event, now history.State) *Violation {
		if e.Object.GetKind() != "Machine" || scenario.Status(e.Object, string(clusterv1.MachineOwnerRemediatedCondition)) != "False" ||
			slices.Contains(scenario.Powerless(now), e.Object.GetName()) {
			return nil
		}
		return &Violation{Detail: fmt.Sprintf("Machine %s is marked for remediation, but has power", e.Object.GetName())}
	})
}

// heldByBrake checks that no Machine is deleted or marked for remediation while more Clusters have machines without power than may.
func heldByBrake(r Run) []Violation {
	if !r.Scenario.Braked {
		return nil
	}
	return r.play(func(e history.Event, now history.State) *Violation {
		n := scenario.UnhealthyClusters(now)
		if e.Object.GetKind() != "Machine" || !remediated(e.Object) || n <= scenario.MaxUnhealthyClusters {
			return nil
		}
		return &Violation{Detail: fmt.Sprintf("Machine %s is remediated while %d Clusters have unhealthy Machines", e.Object.GetName(), n)}
	})
}

// remediated reports whether a Machine is deleted or marked for remediation.
func remediated(m *unstructured.Unstructured) bool {
	return m.GetDeletionTimestamp() != nil || scenario.Status(m, string(clusterv1.MachineOwnerRemediatedCondition)) == "False"
}

// nothingRemediatedBlindly checks that no Machine is deleted or marked for remediation while the workload cluster does not respond.
func nothingRemediatedBlindly(r Run) []Violation {
	if r.Scenario.Deletes {
		return nil
	}
	return r.play(func(e history.Event, now history.State) *Violation {
		m := e.Object
		if m.GetKind() != "Machine" || !scenario.Unresponsive(now) || !remediated(m) {
			return nil
		}
		return &Violation{Detail: fmt.Sprintf("Machine %s is remediated while its cluster does not respond", m.GetName())}
	})
}
