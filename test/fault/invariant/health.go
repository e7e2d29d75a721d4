package invariant

import (
	"fmt"
	"slices"

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
		return &Violation{Detail: fmt.Sprintf("Machine %s is to be remediated, but has power", e.Object.GetName())}
	})
}
