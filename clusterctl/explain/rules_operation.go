package explain

import (
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	fleetv1 "sigs.k8s.io/cluster-api/api/fleet/v1alpha1"
	"sigs.k8s.io/cluster-api/clusterctl/tree"
)

// operations finds an operation of the fleet provider on the control plane, and says what it waits for.
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
	case op == nil:
		return nil
	}
	cause := v.cause(OperationInProgress, Progressing, plane, nil, fmt.Sprintf("%s %s is in progress", op.Kind, op.Name))
	if op.Holds() {
		cause.Reason = HeldByOperation
		cause.Message = fmt.Sprintf("%s %s holds the control plane: no Machine and no etcd member is changed by others until it completes",
			op.Kind, op.Name)
	}
	object := strings.ToLower(op.Kind) + "." + fleetv1.GroupVersion.Group + "/" + op.Name
	paused := false
	if c := completion(v.Operation); c != nil {
		cause.Message = strings.TrimSuffix(cause.Message+". "+c.Message, ". ")
		paused = c.Reason == fleetv1.OperationPausedReason
		if paused || tree.Text(v.Operation, "status", "phase") == string(fleetv1.OperationPhaseFailed) {
			cause.State = Blocked
		}
	}
	if paused {
		cause = cause.do(fmt.Sprintf("Resume it: `kubectl patch %s -n %s --type merge -p '{\"spec\":{\"paused\":false}}'`",
			object, plane.GetNamespace()))
	}
	cause = cause.do(fmt.Sprintf("See its steps: `kubectl describe %s -n %s`", object, plane.GetNamespace()))
	if v.Operation == nil {
		cause = cause.do("If it does not exist, release the control plane: " + release)
	}
	if plane.GetAnnotations()[fleetv1.OperationObservedAnnotation] != op.Token() {
		cause.Message += "; the controller of the control plane has not confirmed that yet"
		cause = cause.do(
			"If that takes longer than a minute, see whether the kubeadm control plane provider runs, and whether its version knows operations")
	}
	return []Cause{cause}
}

// completion returns the condition of an operation that says how far it is; nil without one.
func completion(operation *unstructured.Unstructured) *tree.Condition {
	if operation == nil {
		return nil
	}
	return tree.ConditionOf(operation, fleetv1.OperationCompletedCondition)
}

// consequence reports whether a cause is what an operation that holds the control plane does itself: it deletes Machines of the control
// plane, and creates one, and meanwhile the workload cluster does not respond. What it waits for is in its own cause.
func (v *view) consequence(c Cause) bool {
	plane := v.controlPlane()
	if plane == nil || !isKubeadm(plane) {
		return false
	}
	if op, err := fleetv1.OperationOf(plane); err != nil || !op.Holds() {
		return false
	}
	if c.Reason == WorkloadClusterUnreachable {
		return true
	}
	for _, link := range c.Chain {
		for _, m := range v.machines {
			if isControlPlane(m) && link.Object.Kind == tree.MachineKind.Kind && link.Object.Name == m.GetName() {
				return true
			}
		}
	}
	return false
}
