package explain

import (
	"fmt"
	"strings"

	fleetv1 "sigs.k8s.io/cluster-api/api/fleet/v1alpha1"
)

// operations finds a control plane that an operation of the fleet provider holds. What the Machines then lack is up to the operation. Its
// object is not read: kubectl shows what it waits for.
func (v *view) operations() []Cause {
	plane := v.controlPlane()
	if plane == nil || !isKubeadm(plane) {
		return nil
	}
	op, err := fleetv1.OperationOf(plane)
	release := fmt.Sprintf("`kubectl annotate %s -n %s %s-`", resource(plane), plane.GetNamespace(), fleetv1.OperationAnnotation)
	switch {
	case err != nil:
		return []Cause{v.cause(HeldByOperation, Blocked, plane, nil,
			fmt.Sprintf("no Machine and no etcd member is changed: %v", err)).do("Remove it: " + release)}
	case !op.Holds():
		return nil // Machines are replaced as usual.
	}
	message := fmt.Sprintf("%s %s holds the control plane: no Machine and no etcd member is changed until it completes", op.Kind, op.Name)
	actions := []string{
		fmt.Sprintf("See what it waits for: `kubectl describe %s.%s/%s -n %s`", strings.ToLower(op.Kind), fleetv1.GroupVersion.Group, op.Name,
			plane.GetNamespace()),
		"If it does not exist, release the control plane: " + release,
	}
	if plane.GetAnnotations()[fleetv1.OperationObservedAnnotation] != op.Token() {
		message += "; the controller of the control plane has not confirmed that yet"
		actions = append(actions,
			"If that takes longer than a minute, see whether the kubeadm control plane provider runs, and whether its version knows operations")
	}
	return []Cause{v.cause(HeldByOperation, Progressing, plane, nil, message).do(actions...)}
}
