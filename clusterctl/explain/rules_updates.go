package explain

import (
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/clusterctl/tree"
)

// updates finds Machines that an extension updates in place, and those whose readiness gates hold up the rollout of their
// MachineDeployment.
func (v *view) updates() []Cause {
	var list []Cause
	rolling := map[Object]bool{}
	for _, c := range v.rollouts() {
		rolling[c.Object] = true
	}
	for _, m := range v.machines {
		if m.GetDeletionTimestamp() != nil || tree.Text(m, "status", "nodeRef", "name") == "" {
			continue
		}
		if _, updating := m.GetAnnotations()[clusterv1.UpdateInProgressAnnotation]; updating {
			list = append(list, v.updating(m))
		} else if set := v.ownerOf(m); set != nil && v.ownerOf(set) != nil && rolling[objectOf(v.ownerOf(set))] {
			list = append(list, v.gates(m)...)
		}
	}
	return list
}

// updating explains an update in place.
func (v *view) updating(m *unstructured.Unstructured) Cause {
	message := "an extension updates the machine in place"
	c := tree.ReportedCondition(m, clusterv1.MachineUpdatingCondition)
	if c == nil || c.Status != string(metav1.ConditionTrue) {
		return v.cause(UpdatingInPlace, Progressing, m, nil, message)
	}
	if c.Message != "" {
		message += ": " + c.Message
	}
	if c.Reason != clusterv1.MachineInPlaceUpdateFailedReason {
		return v.cause(UpdatingInPlace, Progressing, m, c, message)
	}
	return v.cause(UpdatingInPlace, Blocked, m, c, "the update in place fails, and is tried again: "+c.Message).
		do("Correct what the message names, or see the log of the extension",
			fmt.Sprintf("To give the update up, delete the Machine: `kubectl delete %s -n %s`", resource(m), m.GetNamespace()))
}

// gates explains a Machine whose readiness gates are not healthy, with the first of them.
func (v *view) gates(m *unstructured.Unstructured) []Cause {
	gates, _, _ := unstructured.NestedSlice(m.Object, "spec", "readinessGates")
	for _, item := range gates {
		gate, _ := item.(map[string]any)
		kind, _ := gate["conditionType"].(string)
		healthy := metav1.ConditionTrue
		if gate["polarity"] == string(clusterv1.NegativePolarityCondition) {
			healthy = metav1.ConditionFalse
		}
		c := tree.ReportedCondition(m, kind)
		if c != nil && c.Status == string(healthy) {
			continue
		}
		message := fmt.Sprintf("its readiness gate %s is not reported yet", kind)
		if c != nil {
			message = fmt.Sprintf("its readiness gate %s is %s", kind, c.Status)
			if c.Message != "" {
				message += ": " + c.Message
			}
		}
		return []Cause{v.cause(ReadinessGate, Progressing, m, c, message).
			do(fmt.Sprintf("Find out why what sets condition %s of the Machine does not report that it is healthy: the rollout waits for it", kind))}
	}
	return nil
}
