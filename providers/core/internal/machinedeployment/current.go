package machinedeployment

import (
	"time"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
)

// Current returns the MachineSet that a MachineDeployment keeps or scales up: the one of its template, not created before
// rolloutAfter. It is nil if the MachineDeployment has to create one. The Machines of all others are replaced.
func Current(md *clusterv1.MachineDeployment, sets []*clusterv1.MachineSet, now time.Time) *clusterv1.MachineSet {
	notBefore := time.Time{}
	if after := md.Spec.Rollout.After; !after.After(now) {
		notBefore = after.Time
	}
	if found := current(sets, &md.Spec.Template, notBefore); found != nil {
		return found
	}
	s := &scope{deployment: md, sets: sets}
	return s.createdFor(notBefore)
}
