package manifest

import "slices"

// Rank returns the rank of a kind in the order in which objects can be created: kinds that others depend on first, webhook
// configurations, which can reject others, last.
func Rank(kind string) int {
	first := []string{
		"Namespace", KindCRD, "StorageClass", "PriorityClass", "RuntimeClass", "ServiceAccount", "Secret", "ConfigMap", "ClusterRole",
		"Role", "ClusterRoleBinding", "RoleBinding", "Service", "DaemonSet", "Deployment",
	}
	if i := slices.Index(first, kind); i >= 0 {
		return i
	}
	switch kind {
	case "MutatingWebhookConfiguration", "ValidatingWebhookConfiguration":
		return len(first) + 1
	}
	return len(first)
}
