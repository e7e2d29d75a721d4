package webhook

import (
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
)

func TestDrainRules(t *testing.T) {
	valid := &metav1.LabelSelector{MatchLabels: map[string]string{"a": "b"}}
	invalid := &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "a", Operator: metav1.LabelSelectorOpIn}}}
	const noValues = `: Required value: must be specified when `
	for name, tc := range map[string]struct {
		reason    string
		old, spec clusterv1.MachineDrainRuleSpec
		want      string // The beginning of the error.
	}{
		"Valid": {reason: "all selectors are valid", spec: clusterv1.MachineDrainRuleSpec{
			Drain:    clusterv1.MachineDrainRuleDrainConfig{Behavior: clusterv1.MachineDrainRuleDrainBehaviorDrain, Order: ptr.To[int32](-5)},
			Machines: []clusterv1.MachineDrainRuleMachineSelector{{Selector: valid, ClusterSelector: valid}},
			Pods:     []clusterv1.MachineDrainRulePodSelector{{Selector: valid, NamespaceSelector: valid}},
		}},
		"Order": {reason: "Pods that are not evicted have no order", want: "spec.drain.order: Invalid value: 1: must not be set: Pods with behavior Skip are not evicted", spec: clusterv1.MachineDrainRuleSpec{
			Drain: clusterv1.MachineDrainRuleDrainConfig{Behavior: clusterv1.MachineDrainRuleDrainBehaviorSkip, Order: ptr.To[int32](1)},
		}},
		"Machines":   {reason: "the operator requires values", want: "spec.machines[0].selector.matchExpressions[0].values" + noValues, spec: clusterv1.MachineDrainRuleSpec{Machines: []clusterv1.MachineDrainRuleMachineSelector{{Selector: invalid}}}},
		"Clusters":   {reason: "the operator requires values", want: "spec.machines[0].clusterSelector.matchExpressions[0].values" + noValues, spec: clusterv1.MachineDrainRuleSpec{Machines: []clusterv1.MachineDrainRuleMachineSelector{{ClusterSelector: invalid}}}},
		"Pods":       {reason: "the operator requires values", want: "spec.pods[0].selector.matchExpressions[0].values" + noValues, spec: clusterv1.MachineDrainRuleSpec{Pods: []clusterv1.MachineDrainRulePodSelector{{Selector: invalid}}}},
		"Namespaces": {reason: "the operator requires values", want: "spec.pods[0].namespaceSelector.matchExpressions[0].values" + noValues, spec: clusterv1.MachineDrainRuleSpec{Pods: []clusterv1.MachineDrainRulePodSelector{{NamespaceSelector: invalid}}}},
		"Unchanged": {reason: "what was wrong before does not prevent other changes",
			old:  clusterv1.MachineDrainRuleSpec{Pods: []clusterv1.MachineDrainRulePodSelector{{Selector: invalid}}},
			spec: clusterv1.MachineDrainRuleSpec{Pods: []clusterv1.MachineDrainRulePodSelector{{Selector: invalid}}}},
	} {
		t.Run(name, func(t *testing.T) {
			rule := &clusterv1.MachineDrainRule{ObjectMeta: metav1.ObjectMeta{Name: "r"}, Spec: tc.spec}
			_, err := drainRuleValidator().ValidateCreate(t.Context(), rule)
			if len(tc.old.Pods) > 0 {
				_, err = drainRuleValidator().ValidateUpdate(t.Context(), &clusterv1.MachineDrainRule{Spec: tc.old}, rule)
			}
			switch {
			case tc.want == "" && err != nil:
				t.Errorf("%s: %v", tc.reason, err)
			case tc.want != "" && (err == nil || !strings.Contains(err.Error(), `MachineDrainRule.cluster.x-k8s.io "r" is invalid: `+tc.want)):
				t.Errorf("%s: error %v, want %q", tc.reason, err, tc.want)
			}
		})
	}
}
