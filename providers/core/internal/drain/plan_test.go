package drain

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/utils/ptr"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/sdk/testenv"
	"sigs.k8s.io/cluster-api/sdk/testenv/object"
)

const (
	evicts = clusterv1.MachineDrainRuleDrainBehaviorDrain
	skips  = clusterv1.MachineDrainRuleDrainBehaviorSkip
	waits  = clusterv1.MachineDrainRuleDrainBehaviorWaitCompleted
)

// drainRule returns a rule for all Machines and Pods, changed by with.
func drainRule(name string, behavior clusterv1.MachineDrainRuleDrainBehavior, with ...func(*clusterv1.MachineDrainRule)) clusterv1.MachineDrainRule {
	r := clusterv1.MachineDrainRule{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name}}
	r.Spec.Drain.Behavior = behavior
	for _, f := range with {
		f(&r)
	}
	return r
}

func ordered(order int32) func(*clusterv1.MachineDrainRule) {
	return func(r *clusterv1.MachineDrainRule) { r.Spec.Drain.Order = ptr.To(order) }
}

// matching returns a selector of labels that are written as "a=b,c=d"; nil for an empty text.
func matching(text string) *metav1.LabelSelector {
	if text == "" {
		return nil
	}
	selector, err := metav1.ParseToLabelSelector(text)
	if err != nil {
		panic(err)
	}
	return selector
}

// forPods adds Pods to a rule.
func forPods(selector, namespaces string) func(*clusterv1.MachineDrainRule) {
	return func(r *clusterv1.MachineDrainRule) {
		r.Spec.Pods = append(r.Spec.Pods, clusterv1.MachineDrainRulePodSelector{Selector: matching(selector), NamespaceSelector: matching(namespaces)})
	}
}

// forMachines adds Machines to a rule.
func forMachines(selector, clusters string) func(*clusterv1.MachineDrainRule) {
	return func(r *clusterv1.MachineDrainRule) {
		r.Spec.Machines = append(r.Spec.Machines, clusterv1.MachineDrainRuleMachineSelector{Selector: matching(selector), ClusterSelector: matching(clusters)})
	}
}

func labeled(text string) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		set, err := labels.ConvertSelectorToLabelsMap(text)
		if err != nil {
			panic(err)
		}
		p.Labels = set
	}
}

// TestRulesOfMachine lists which rules apply to a Machine with label "os=linux" of a Cluster with label "stage=prod".
func TestRulesOfMachine(t *testing.T) {
	var build object.Builder
	m := build.Machine("m-1", func(m *clusterv1.Machine) { m.Labels["os"] = "linux" })
	cluster := build.Cluster(func(c *clusterv1.Cluster) { c.Labels = map[string]string{"stage": "prod"} })
	for name, tc := range map[string]struct {
		reason  string
		machine func(*clusterv1.MachineDrainRule)
		orphan  bool
		want    bool
	}{
		"All":          {reason: "without machines, a rule applies to all", machine: func(*clusterv1.MachineDrainRule) {}, want: true},
		"Label":        {reason: "the Machine has the label", machine: forMachines("os=linux", ""), want: true},
		"OtherLabel":   {reason: "the Machine has another", machine: forMachines("os=windows", "")},
		"Cluster":      {reason: "its Cluster has the label", machine: forMachines("", "stage=prod"), want: true},
		"Both":         {reason: "both must match", machine: forMachines("os=linux", "stage=prod"), want: true},
		"OnlyOne":      {reason: "only one matches", machine: forMachines("os=linux", "stage=test")},
		"Either":       {reason: "one of two entries is enough", machine: func(r *clusterv1.MachineDrainRule) { forMachines("os=windows", "")(r); forMachines("os=linux", "")(r) }, want: true},
		"Orphan":       {reason: "a Cluster that does not exist has no labels", machine: forMachines("", "stage=prod"), orphan: true},
		"OrphanByItem": {reason: "the Machine's own labels count without a Cluster", machine: forMachines("os=linux", ""), orphan: true, want: true},
	} {
		t.Run(name, func(t *testing.T) {
			of := cluster
			if tc.orphan {
				of = nil
			}
			rules, err := RulesFor(m, of, []clusterv1.MachineDrainRule{drainRule("r", skips, tc.machine)})
			testenv.Must(t, err)
			if got := len(rules) == 1; got != tc.want {
				t.Errorf("%s: applies: %t", tc.reason, got)
			}
		})
	}
}

// TestInvalidSelectors checks that a rule that cannot be read is reported, and not ignored: Pods that it protects would be evicted.
func TestInvalidSelectors(t *testing.T) {
	var build object.Builder
	invalid := &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "a", Operator: "Near"}}}
	for path, spec := range map[string]clusterv1.MachineDrainRuleSpec{
		"spec.machines[0].selector":        {Machines: []clusterv1.MachineDrainRuleMachineSelector{{Selector: invalid}}},
		"spec.machines[0].clusterSelector": {Machines: []clusterv1.MachineDrainRuleMachineSelector{{ClusterSelector: invalid}}},
		"spec.pods[0].selector":            {Pods: []clusterv1.MachineDrainRulePodSelector{{Selector: invalid}}},
		"spec.pods[0].namespaceSelector":   {Pods: []clusterv1.MachineDrainRulePodSelector{{NamespaceSelector: invalid}}},
	} {
		r := drainRule("broken", skips)
		r.Spec.Machines, r.Spec.Pods = spec.Machines, spec.Pods
		_, err := RulesFor(build.Machine("m-1"), build.Cluster(), []clusterv1.MachineDrainRule{r})
		if err == nil || !strings.HasPrefix(err.Error(), "MachineDrainRule broken, "+path+": ") {
			t.Errorf("error %v, want one that names the rule and %s", err, path)
		}
	}
}

// TestPlan lists what one attempt does with the Pods of a Node. Namespace "default" has the label "team=a".
func TestPlan(t *testing.T) {
	now := time.Now()
	rules := func(r ...clusterv1.MachineDrainRule) []clusterv1.MachineDrainRule { return r }
	for name, tc := range map[string]struct {
		reason string
		rules  []clusterv1.MachineDrainRule
		pods   []*corev1.Pod
		evict  []string
		left   Left
	}{
		"NoRules":     {reason: "all are evicted at once", pods: []*corev1.Pod{pod("b"), pod("a")}, evict: []string{"a", "b"}},
		"Skipped":     {"a rule leaves it on the Node", rules(drainRule("r", skips)), []*corev1.Pod{pod("a")}, nil, Left{}},
		"ByLabel":     {"a rule applies to some Pods", rules(drainRule("r", skips, forPods("app=a", ""))), []*corev1.Pod{pod("a", labeled("app=a")), pod("b")}, []string{"b"}, Left{}},
		"ByNamespace": {"a rule applies to Pods of some namespaces", rules(drainRule("r", skips, forPods("", "team=a"))), []*corev1.Pod{pod("a")}, nil, Left{}},
		"OtherTeam":   {"the namespace does not match", rules(drainRule("r", skips, forPods("", "team=b"))), []*corev1.Pod{pod("a")}, []string{"a"}, Left{}},
		"First":       {"the first rule by name applies", rules(drainRule("b", evicts), drainRule("a", skips)), []*corev1.Pod{pod("a")}, nil, Left{}},
		"PodSkips":    {"the label of a Pod precedes rules", rules(drainRule("r", evicts)), []*corev1.Pod{pod("a", labeled("cluster.x-k8s.io/drain=skip"))}, nil, Left{}},
		"PodWaits":    {"the same with the other value", rules(drainRule("r", evicts)), []*corev1.Pod{pod("a", labeled("cluster.x-k8s.io/drain=wait-completed"))}, nil, Left{Running: []string{"default/a"}}},
		"PodUnknown":  {"other values mean nothing", nil, []*corev1.Pod{pod("a", labeled("cluster.x-k8s.io/drain=never"))}, []string{"a"}, Left{}},
		"Waits":       {"it is not evicted, but waited for", rules(drainRule("r", waits)), []*corev1.Pod{pod("a")}, nil, Left{Running: []string{"default/a"}}},
		"Completed":   {"it has completed", rules(drainRule("r", waits)), []*corev1.Pod{pod("a", finished)}, nil, Left{}},
		"Order": {"those with a higher order come later", rules(drainRule("r", evicts, ordered(10), forPods("app=storage", "")), drainRule("s", evicts, ordered(20), forPods("app=log", ""))),
			[]*corev1.Pod{pod("a", labeled("app=storage")), pod("b"), pod("c", labeled("app=log"))}, []string{"b"}, Left{Later: []string{"default/a", "default/c"}}},
		"Next": {"all with a lower order are gone", rules(drainRule("r", evicts, ordered(10), forPods("app=storage", ""))),
			[]*corev1.Pod{pod("a", labeled("app=storage"))}, []string{"a"}, Left{}},
		"StillLeaving": {"one with a lower order is terminating", rules(drainRule("r", evicts, ordered(10), forPods("app=storage", ""))),
			[]*corev1.Pod{pod("a", labeled("app=storage")), pod("b", terminating(0))}, nil, Left{Leaving: 1, Later: []string{"default/a"}}},
		"Before": {"negative orders precede Pods without a rule", rules(drainRule("r", evicts, ordered(-1), forPods("app=first", ""))),
			[]*corev1.Pod{pod("a", labeled("app=first")), pod("b")}, []string{"a"}, Left{Later: []string{"default/b"}}},
		"WaitsFirst": {"Pods that are waited for have order 0", rules(drainRule("r", evicts, ordered(1), forPods("app=late", "")), drainRule("s", waits, forPods("app=job", ""))),
			[]*corev1.Pod{pod("a", labeled("app=job")), pod("b", labeled("app=late")), pod("c")}, []string{"c"}, Left{Running: []string{"default/a"}, Later: []string{"default/b"}}},
		"SkippedFirst": {"one that stays holds up none", rules(drainRule("r", evicts, ordered(1), forPods("app=late", "")), drainRule("s", skips)),
			[]*corev1.Pod{pod("a"), pod("b", labeled("app=late"))}, []string{"b"}, Left{}},
	} {
		t.Run(name, func(t *testing.T) {
			var build object.Builder
			rules, err := RulesFor(build.Machine("m-1"), build.Cluster(), tc.rules)
			testenv.Must(t, err)
			var all []corev1.Pod
			for _, p := range tc.pods {
				all = append(all, *p)
			}
			evict, left, err := rules.plan(all, -1, now, func(string) (labels.Set, error) { return labels.Set{"team": "a"}, nil })
			testenv.Must(t, err)
			var names []string
			for i := range evict {
				names = append(names, evict[i].Name)
			}
			if !slices.Equal(names, tc.evict) {
				t.Errorf("%s: evicts %q, want %q", tc.reason, names, tc.evict)
			}
			if diff := cmp.Diff(tc.left, left); diff != "" {
				t.Errorf("%s: left, -want +got:\n%s", tc.reason, diff)
			}
		})
	}
}

// TestNamespacesAreReadIfTheyDecide checks that namespaces are read only for rules that select them, and that an error evicts no Pod.
func TestNamespacesAreReadIfTheyDecide(t *testing.T) {
	var build object.Builder
	unreadable := func(string) (labels.Set, error) { return nil, errors.New("no") }
	for name, tc := range map[string]struct {
		pods  func(*clusterv1.MachineDrainRule)
		fails bool
	}{
		"no selector of namespaces": {forPods("app=a", ""), false},
		"of other Pods":             {forPods("app=b", "team=a"), false},
		"of this Pod":               {forPods("app=a", "team=a"), true},
	} {
		rules, err := RulesFor(build.Machine("m-1"), build.Cluster(), []clusterv1.MachineDrainRule{drainRule("r", skips, tc.pods)})
		testenv.Must(t, err)
		evict, _, err := rules.plan([]corev1.Pod{*pod("a", labeled("app=a"))}, -1, time.Now(), unreadable)
		if (err != nil) != tc.fails || tc.fails && len(evict) > 0 {
			t.Errorf("%s: evicts %d Pods, error %v", name, len(evict), err)
		}
	}
}
