package webhook

import (
	"fmt"
	"slices"
	"strings"

	controlplanev1 "sigs.k8s.io/cluster-api/api/controlplane/v1beta2"
)

// member is an etcd member of a control plane, as the conditions of its Machine report it.
type member struct {
	// Machine is the name of the Machine.
	Machine string
	// Healthy is true if the member is known to be healthy.
	Healthy bool
	// Leaving is true if the Machine is being deleted.
	Leaving bool
}

// refuse returns why a Machine must not be deleted, empty if it may: it runs a healthy member, and of those that stay, not more than half
// are healthy. Members that are being deleted do not stay. So these may be deleted:
//
//   - any Machine if all are healthy, one after another. Of the last one, nothing stays; our pre-terminate hook holds it until another
//     member has joined.
//   - an unhealthy one, which is how it is repaired. It does not contribute to the quorum.
//   - one that is no member yet. The membership step makes sure that it becomes none.
func refuse(machine string, members []member) string {
	i := slices.IndexFunc(members, func(m member) bool { return m.Machine == machine })
	if i < 0 || !members[i].Healthy || members[i].Leaving {
		return ""
	}
	var leaving, unhealthy []string
	healthy, staying := 0, 0
	for _, m := range members {
		switch {
		case m.Machine == machine:
		case m.Leaving:
			leaving = append(leaving, m.Machine)
		case m.Healthy:
			healthy, staying = healthy+1, staying+1
		default:
			staying, unhealthy = staying+1, append(unhealthy, m.Machine)
		}
	}
	needed := staying/2 + 1
	if staying == 0 || healthy >= needed {
		return ""
	}
	return fmt.Sprintf("etcd could lose its quorum: without the healthy member of Machine %s, %d of the %d members that stay would be "+
		"healthy, and %d must be. The control plane has %d members (not healthy: %s; being deleted: %s). Wait until they are healthy, or "+
		"delete a Machine that is not healthy, which is replaced. If more than half of the members are lost, use a ControlPlaneRecovery, or a "+
		"ControlPlaneRestore, of the fleet provider. To delete this Machine nevertheless, set the annotation %s on it",
		machine, healthy, staying, needed, len(members), listed(unhealthy), listed(leaving), controlplanev1.AllowQuorumLossAnnotation)
}

// listed returns names for a message.
func listed(names []string) string {
	if len(names) == 0 {
		return "none"
	}
	slices.Sort(names)
	return strings.Join(names, " ")
}
