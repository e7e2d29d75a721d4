package components

import (
	"cmp"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"sigs.k8s.io/cluster-api/internal/distribution/manifest"
)

// InstallOrder returns objects in an order in which each can be created: those that others depend on first, webhook
// configurations, which can reject others, last. Objects of equal rank keep their order.
func InstallOrder(objects []unstructured.Unstructured) []unstructured.Unstructured {
	ranks := map[string]int{}
	for i, kind := range []string{
		"Namespace", manifest.KindCRD, "PriorityClass", "ServiceAccount", "Secret", "ConfigMap", "ClusterRole", "Role",
		"ClusterRoleBinding", "RoleBinding", "Service", "DaemonSet", "Deployment",
	} {
		ranks[kind] = i + 1
	}
	last := len(ranks) + 1
	rank := func(kind string) int {
		switch kind {
		case "MutatingWebhookConfiguration", "ValidatingWebhookConfiguration":
			return last + 1
		default:
			if r := ranks[kind]; r > 0 {
				return r
			}
			return last
		}
	}
	ordered := slices.Clone(objects)
	slices.SortStableFunc(ordered, func(a, b unstructured.Unstructured) int {
		return cmp.Compare(rank(a.GetKind()), rank(b.GetKind()))
	})
	return ordered
}
