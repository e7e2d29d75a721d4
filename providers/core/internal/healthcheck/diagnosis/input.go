package diagnosis

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/sdk/condition"
)

// Input is what a diagnosis depends on. Nothing of it is changed.
type Input struct {
	Check   *clusterv1.MachineHealthCheck
	Cluster *clusterv1.Cluster
	// Targets are the Machines of the check, see IsTarget.
	Targets []*clusterv1.Machine
	// Nodes are the Nodes of the workload cluster, by name; at least those that the targets refer to. Nil: they are unknown, because
	// the workload cluster is unreachable or not initialized.
	Nodes map[string]*corev1.Node
	Now   time.Time
}

// Initialized reports whether the control plane of a Cluster is initialized: before, it has no Nodes.
func Initialized(cluster *clusterv1.Cluster) bool {
	return condition.IsTrue(cluster, clusterv1.ControlPlaneInitializedV1Beta1Condition)
}

// Selector returns the function that reports whether a Machine is a target of a check.
func Selector(check *clusterv1.MachineHealthCheck) (func(*clusterv1.Machine) bool, error) {
	selector, err := metav1.LabelSelectorAsSelector(&check.Spec.Selector)
	if err != nil {
		return nil, err
	}
	return func(m *clusterv1.Machine) bool { return matches(selector, check, m) && !exempt(m) }, nil
}

// Selects reports whether the selector of a check matches a Machine, which may be exempt from checks. An invalid selector matches none.
func Selects(check *clusterv1.MachineHealthCheck, m *clusterv1.Machine) bool {
	selector, err := metav1.LabelSelectorAsSelector(&check.Spec.Selector)
	return err == nil && matches(selector, check, m)
}

// matches reports whether a Machine of the check's Cluster has the labels. An empty selector, which admission rejects, matches none.
func matches(selector labels.Selector, check *clusterv1.MachineHealthCheck, m *clusterv1.Machine) bool {
	return m.Namespace == check.Namespace && m.Spec.ClusterName == check.Spec.ClusterName &&
		m.Labels[clusterv1.ClusterNameLabel] == check.Spec.ClusterName && !selector.Empty() && selector.Matches(labels.Set(m.Labels))
}

// exempt reports whether a Machine is paused, or has the annotation that prevents remediation.
func exempt(m *clusterv1.Machine) bool {
	_, paused := m.Annotations[clusterv1.PausedAnnotation]
	_, skipped := m.Annotations[clusterv1.MachineSkipRemediationAnnotation]
	return paused || skipped
}
