package tree

import (
	"cmp"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
)

// healthChecks returns the MachineHealthChecks of the Cluster, those of its class included. They have no condition Ready: whether they
// allow remediation is shown in its place, and otherwise what they check.
func (b *builder) healthChecks() []*Node {
	group := virtual("MachineHealthChecks")
	for _, u := range b.objects.Of(MachineHealthCheckKind, b.name) {
		node := b.objectNode(u, "")
		node.Ready = ConditionOf(u, string(clusterv1.RemediationAllowedV1Beta1Condition))
		if node.Ready == nil {
			node.Ready = &Condition{}
		}
		if node.Ready.Message == "" {
			node.Ready.Message = checks(u)
		}
		if node.Report != nil {
			node.Report.State = node.Ready
		}
		group.Children = append(group.Children, node)
	}
	if len(group.Children) == 0 {
		return nil
	}
	return []*Node{group}
}

// checks describes a MachineHealthCheck, which is read in v1beta1, in the words of v1beta2: "2 of 3 healthy,
// unhealthyLessThanOrEqualTo 40%, Ready=Unknown 5m0s".
func checks(u *unstructured.Unstructured) string {
	at := func(path ...string) any {
		value, _, _ := unstructured.NestedFieldNoCopy(u.Object, path...)
		return value
	}
	number := func(path ...string) string {
		return cmp.Or(strings.ReplaceAll(fmt.Sprint(at(path...)), "<nil>", ""), "0")
	}
	parts := []string{number("status", "currentHealthy") + " of " + number("status", "expectedMachines") + " healthy"}
	for _, field := range [][2]string{{"unhealthyRange", "unhealthyInRange"}, {"maxUnhealthy", "unhealthyLessThanOrEqualTo"}} {
		if limit := at("spec", field[0]); limit != nil {
			parts = append(parts, fmt.Sprintf("%s %v", field[1], limit))
			break
		}
	}
	for _, field := range []string{"unhealthyConditions", "unhealthyMachineConditions"} {
		conditions, _ := at("spec", field).([]any)
		for _, c := range conditions {
			if one, ok := c.(map[string]any); ok {
				parts = append(parts, fmt.Sprintf("%v=%v %v", one["type"], one["status"], one["timeout"]))
			}
		}
	}
	return strings.Join(parts, ", ")
}
