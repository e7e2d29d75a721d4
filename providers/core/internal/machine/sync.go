package machine

import (
	"context"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/providers/internal/taint"
	"sigs.k8s.io/cluster-api/sdk/contract"
	"sigs.k8s.io/cluster-api/sdk/remote"
	"sigs.k8s.io/cluster-api/sdk/step"
)

// syncNode updates the Machine's annotations, labels and taints on the Node, with one patch, and only if they differ.
func (c *Controller) syncNode(ctx context.Context, s *scope, workload client.Writer, node *corev1.Node) error {
	m := s.machine
	family, err := c.family(ctx, s)
	if err != nil {
		return err
	}
	interruptible, err := c.interruptible(ctx, s)
	if err != nil {
		return err
	}
	after := node.DeepCopy()
	if c.taints {
		taint.Sync(after, m.Spec.Taints) // Before annotate.
	}
	c.selection.sync(after, m)
	annotate(after, m)
	if _, exists := after.Labels[clusterv1.InterruptibleLabel]; interruptible && !exists {
		after.Labels[clusterv1.InterruptibleLabel] = ""
		step.Event(ctx, "SuccessfulSetInterruptibleNodeLabel", "%s", node.Name)
	}
	remote.SetTaint(after, clusterv1.NodeUninitializedTaint, false)
	remote.SetTaint(after, clusterv1.NodeOutdatedRevisionTaint, family.outdated())
	if err := remote.PatchNode(ctx, workload, node, after); err != nil {
		return fmt.Errorf("updating labels, annotations and taints of Node %s: %w", node.Name, err)
	}
	return nil
}

func annotate(node *corev1.Node, m *clusterv1.Machine) {
	if node.Annotations == nil {
		node.Annotations = map[string]string{}
	}
	node.Annotations[clusterv1.ClusterNameAnnotation] = m.Spec.ClusterName
	node.Annotations[clusterv1.ClusterNamespaceAnnotation] = m.Namespace
	node.Annotations[clusterv1.MachineAnnotation] = m.Name
	if owner := metav1.GetControllerOf(m); owner != nil {
		node.Annotations[clusterv1.OwnerKindAnnotation] = owner.Kind
		node.Annotations[clusterv1.OwnerNameAnnotation] = owner.Name
	}
}

// Selection decides which labels and annotations of a Machine belong on its Node, besides those that always do.
type Selection struct{ labels, annotations []*regexp.Regexp }

// NewSelection parses regular expressions. A key belongs on Nodes if any of them matches a part of it.
func NewSelection(labels, annotations []string) (Selection, error) {
	var s Selection
	var err error
	if s.labels, err = expressions(labels); err != nil {
		return s, fmt.Errorf("labels: %w", err)
	}
	if s.annotations, err = expressions(annotations); err != nil {
		return s, fmt.Errorf("annotations: %w", err)
	}
	return s, nil
}

func expressions(sources []string) ([]*regexp.Regexp, error) {
	var all []*regexp.Regexp
	for _, source := range sources {
		e, err := regexp.Compile(source)
		if err != nil {
			return nil, fmt.Errorf("invalid regular expression %q: %w", source, err)
		}
		all = append(all, e)
	}
	return all, nil
}

func (s Selection) label(key string) bool {
	domain, _, _ := strings.Cut(key, "/")
	return domain == clusterv1.NodeRoleLabelPrefix || under(domain, clusterv1.NodeRestrictionLabelDomain) ||
		under(domain, clusterv1.ManagedNodeLabelDomain) || matchesAny(s.labels, key)
}

func (s Selection) annotation(key string) bool {
	domain, _, _ := strings.Cut(key, "/")
	return under(domain, clusterv1.ManagedNodeLabelDomain) || matchesAny(s.annotations, key)
}

func under(domain, parent string) bool {
	return domain == parent || strings.HasSuffix(domain, "."+parent)
}

func matchesAny(expressions []*regexp.Regexp, key string) bool {
	return slices.ContainsFunc(expressions, func(e *regexp.Regexp) bool { return e.MatchString(key) })
}

// sync copies the labels and annotations of a Machine that belong on its Node, and removes those that it copied before and that the Machine
// no longer has. Annotations of the Node list what was copied.
func (s Selection) sync(node *corev1.Node, m *clusterv1.Machine) {
	for _, all := range []*map[string]string{&node.Labels, &node.Annotations} {
		if *all == nil {
			*all = map[string]string{}
		}
	}
	labels := replace(node.Labels, m.Labels, node.Annotations[clusterv1.LabelsFromMachineAnnotation], s.label)
	before, existed := node.Annotations[clusterv1.AnnotationsFromMachineAnnotation]
	annotations := replace(node.Annotations, m.Annotations, before, s.annotation)
	node.Annotations[clusterv1.LabelsFromMachineAnnotation] = labels
	if annotations != "" || existed { // Without the condition, each Node of a fleet would be written once.
		node.Annotations[clusterv1.AnnotationsFromMachineAnnotation] = annotations
	}
}

// replace copies the entries that belong on Nodes, removes others that were copied before, and returns the keys of what it copied.
func replace(to, from map[string]string, before string, belongs func(key string) bool) string {
	synced := map[string]string{}
	for key, value := range from {
		if belongs(key) {
			synced[key] = value
		}
	}
	for key := range strings.SplitSeq(before, ",") {
		// Users of the workload cluster can edit the annotation: never remove what cannot come from Machines.
		if _, ok := synced[key]; !ok && belongs(key) {
			delete(to, key)
		}
	}
	maps.Copy(to, synced)
	return strings.Join(slices.Sorted(maps.Keys(synced)), ",")
}

func (c *Controller) interruptible(ctx context.Context, s *scope) (bool, error) {
	obj, err := c.object(ctx, s, &s.machine.Spec.InfrastructureRef)
	if err != nil || obj == nil {
		return false, err
	}
	return contract.InfrastructureMachineOf(contract.Object{Unstructured: obj}).Interruptible()
}
