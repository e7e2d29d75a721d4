package drain

import (
	"cmp"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/validation/field"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
)

// Values of the label of Pods.
const (
	labelSkip          = "skip"
	labelWaitCompleted = "wait-completed"
)

// Rules are the MachineDrainRules for one Machine, sorted by name. The first one that selects a Pod applies to it.
type Rules []rule

type rule struct {
	name  string
	drain clusterv1.MachineDrainRuleDrainConfig
	// pods are the Pods; none: all.
	pods []podSelector
}

// podSelector selects Pods. Both of its selectors must match; nil matches all.
type podSelector struct{ pod, namespace labels.Selector }

// RulesFor returns those of the rules in a Machine's namespace that apply to the Machine. cluster is nil if it does not exist. It returns
// an error if a selector is invalid: Pods that the rule protects would be evicted otherwise.
func RulesFor(m *clusterv1.Machine, cluster *clusterv1.Cluster, all []clusterv1.MachineDrainRule) (Rules, error) {
	var rules Rules
	for i := range all {
		r := &all[i]
		applies, err := selectsMachine(r, m, cluster)
		if err != nil {
			return nil, err
		}
		if !applies {
			continue
		}
		pods, err := podSelectors(r)
		if err != nil {
			return nil, err
		}
		rules = append(rules, rule{name: r.Name, drain: r.Spec.Drain, pods: pods})
	}
	slices.SortFunc(rules, func(a, b rule) int { return cmp.Compare(a.name, b.name) })
	return rules, nil
}

// selectsMachine reports whether a rule applies to a Machine.
func selectsMachine(r *clusterv1.MachineDrainRule, m *clusterv1.Machine, cluster *clusterv1.Cluster) (bool, error) {
	if len(r.Spec.Machines) == 0 {
		return true, nil
	}
	var ofCluster labels.Set
	if cluster != nil {
		ofCluster = cluster.Labels
	}
	for i, s := range r.Spec.Machines {
		path := field.NewPath("spec", "machines").Index(i)
		machines, err := parse(r, s.Selector, path.Child("selector"))
		if err != nil {
			return false, err
		}
		clusters, err := parse(r, s.ClusterSelector, path.Child("clusterSelector"))
		if err != nil {
			return false, err
		}
		if machines.Matches(labels.Set(m.Labels)) && clusters.Matches(ofCluster) {
			return true, nil
		}
	}
	return false, nil
}

func podSelectors(r *clusterv1.MachineDrainRule) ([]podSelector, error) {
	var selectors []podSelector
	for i, s := range r.Spec.Pods {
		path := field.NewPath("spec", "pods").Index(i)
		pods, err := parse(r, s.Selector, path.Child("selector"))
		if err != nil {
			return nil, err
		}
		namespaces, err := parse(r, s.NamespaceSelector, path.Child("namespaceSelector"))
		if err != nil {
			return nil, err
		}
		selectors = append(selectors, podSelector{pods, namespaces})
	}
	return selectors, nil
}

// parse returns a selector of a rule; one that is not set selects everything.
func parse(r *clusterv1.MachineDrainRule, s *metav1.LabelSelector, path *field.Path) (labels.Selector, error) {
	if s == nil {
		return labels.Everything(), nil
	}
	parsed, err := metav1.LabelSelectorAsSelector(s)
	if err != nil {
		return nil, fmt.Errorf("MachineDrainRule %s, %s: %w", r.Name, path, err)
	}
	return parsed, nil
}

// namespaceLabels returns the labels of a namespace of the workload cluster.
type namespaceLabels func(name string) (labels.Set, error)

// of returns what happens to a Pod.
func (r Rules) of(pod *corev1.Pod, namespaces namespaceLabels) (clusterv1.MachineDrainRuleDrainConfig, error) {
	switch pod.Labels[clusterv1.PodDrainLabel] {
	case labelSkip:
		return clusterv1.MachineDrainRuleDrainConfig{Behavior: clusterv1.MachineDrainRuleDrainBehaviorSkip}, nil
	case labelWaitCompleted:
		return clusterv1.MachineDrainRuleDrainConfig{Behavior: clusterv1.MachineDrainRuleDrainBehaviorWaitCompleted}, nil
	}
	for _, rule := range r {
		selected, err := rule.selects(pod, namespaces)
		if err != nil {
			return clusterv1.MachineDrainRuleDrainConfig{}, err
		}
		if selected {
			return rule.drain, nil
		}
	}
	return clusterv1.MachineDrainRuleDrainConfig{Behavior: clusterv1.MachineDrainRuleDrainBehaviorDrain}, nil
}

// selects reports whether a rule applies to a Pod. It reads the namespace only if that decides.
func (r rule) selects(pod *corev1.Pod, namespaces namespaceLabels) (bool, error) {
	for _, s := range r.pods {
		if !s.pod.Matches(labels.Set(pod.Labels)) {
			continue
		}
		if s.namespace.Empty() {
			return true, nil
		}
		of, err := namespaces(pod.Namespace)
		if err != nil {
			return false, err
		}
		if s.namespace.Matches(of) {
			return true, nil
		}
	}
	return len(r.pods) == 0, nil
}
