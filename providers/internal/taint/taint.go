// Package taint has the rules of the taints of Machines: which ones users may set, and how they get to Nodes. The feature gate
// MachineTaintPropagation turns them on.
package taint

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
)

// Check validates the taints of a Machine, or of a template of Machines. Without the feature gate there must be none. Taints that the old
// object has, too, are valid, so that they do not prevent other changes.
func Check(enabled bool, old, taints []clusterv1.MachineTaint, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	for i, t := range taints {
		if slices.Contains(old, t) {
			continue
		}
		if !enabled {
			return field.ErrorList{field.Forbidden(path, "taints require the feature gate MachineTaintPropagation")}
		}
		at := path.Index(i)
		if managedBy := manager(t.Key); managedBy != "" {
			errs = append(errs, field.Invalid(at.Child("key"), t.Key, "taints with this key are managed by "+managedBy))
		}
		for _, problem := range validation.IsQualifiedName(t.Key) {
			errs = append(errs, field.Invalid(at.Child("key"), t.Key, problem))
		}
		for _, problem := range validation.IsValidLabelValue(t.Value) {
			errs = append(errs, field.Invalid(at.Child("value"), t.Value, problem))
		}
	}
	return errs
}

// manager returns who sets and removes taints with a key; empty if users do. The list is that of Cluster API v1.14.
func manager(key string) string {
	prefix, _, _ := strings.Cut(key, "/")
	switch {
	case key == clusterv1.NodeUninitializedTaint.Key, key == clusterv1.NodeOutdatedRevisionTaint.Key:
		return "Cluster API"
	case key == corev1.TaintNodeOutOfService:
		return ""
	case prefix == "node.kubernetes.io", key == "node-role.kubernetes.io/master":
		return "Kubernetes"
	case prefix == "node.cloudprovider.kubernetes.io":
		return "the cloud provider"
	}
	return ""
}

// Sync sets the taints of a Machine on its Node, and removes those with propagation Always that it set before and that the Machine no
// longer has; an annotation of the Node lists them. Taints with propagation OnInitialization are set only as long as the Node does not have
// the name of its Cluster: the caller annotates it with the same write. Taints that others have set stay.
func Sync(node *corev1.Node, taints []clusterv1.MachineTaint) {
	_, initialized := node.Annotations[clusterv1.ClusterNameAnnotation]
	before, existed := node.Annotations[clusterv1.TaintsFromMachineAnnotation]
	if len(taints) == 0 && !existed { // Otherwise, each Node of a fleet would be written once.
		return
	}
	var always, all []string
	for _, t := range taints {
		id := identity(t.Key, t.Effect)
		all = append(all, id)
		if t.Propagation == clusterv1.MachineTaintPropagationAlways {
			always = append(always, id)
		}
		if t.Propagation == clusterv1.MachineTaintPropagationAlways || !initialized {
			set(node, t)
		}
	}
	for id := range strings.SplitSeq(before, ",") {
		// Users of the workload cluster can edit the annotation: never remove what cannot come from Machines.
		key, effect, _ := strings.Cut(id, ":")
		if slices.Contains(all, id) || manager(key) != "" {
			continue
		}
		node.Spec.Taints = slices.DeleteFunc(node.Spec.Taints, is(key, corev1.TaintEffect(effect)))
	}
	slices.Sort(always)
	if node.Annotations == nil {
		node.Annotations = map[string]string{}
	}
	node.Annotations[clusterv1.TaintsFromMachineAnnotation] = strings.Join(always, ",")
}

// set adds a taint to a Node, or updates its value.
func set(node *corev1.Node, t clusterv1.MachineTaint) {
	wanted := corev1.Taint{Key: t.Key, Value: t.Value, Effect: t.Effect}
	i := slices.IndexFunc(node.Spec.Taints, is(t.Key, t.Effect))
	switch {
	case i < 0:
		node.Spec.Taints = append(node.Spec.Taints, wanted)
	case node.Spec.Taints[i].Value != t.Value:
		node.Spec.Taints[i] = wanted
	}
}

// is reports whether a taint of a Node has a key and an effect, which identify it.
func is(key string, effect corev1.TaintEffect) func(corev1.Taint) bool {
	return func(t corev1.Taint) bool { return t.Key == key && t.Effect == effect }
}

func identity(key string, effect corev1.TaintEffect) string { return fmt.Sprintf("%s:%s", key, effect) }
