package merge

import (
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// Extended returns the object to write so that both the version that serves now and the one of desired can work with it:
// live, with what desired adds. It returns nil if live has to stay as it is until only the other version is left.
func Extended(live, desired *unstructured.Unstructured) *unstructured.Unstructured {
	desired = Normal(desired)
	out := live.DeepCopy()
	switch live.GetKind() {
	case "Namespace", "ServiceAccount":
		return Final(live, desired)
	case "Role", "ClusterRole":
		if desired.Object["aggregationRule"] != nil {
			addItems(out, desired, "aggregationRule", "clusterRoleSelectors")
		} else {
			addItems(out, desired, "rules")
		}
	case "RoleBinding", "ClusterRoleBinding":
		addItems(out, desired, "subjects")
	case "ConfigMap", "Secret":
		addKeys(out, desired, "data")
		addKeys(out, desired, "binaryData")
	case "Service":
		addPorts(out, desired)
	default:
		if live.GroupVersionKind().Group == "cert-manager.io" {
			return Final(live, desired) // New Pods may mount the Secret; running ones keep theirs.
		}
		return nil
	}
	return out
}

// Rolling returns the Deployment to write for a rollout in which new Pods are started beside the old ones, which serve until
// these are available; unless the provider demands that they never run at the same time.
func Rolling(live, desired *unstructured.Unstructured) *unstructured.Unstructured {
	out := Final(live, desired)
	kind, _, _ := unstructured.NestedString(desired.Object, "spec", "strategy", "type")
	if out.GetKind() != "Deployment" || kind == "Recreate" {
		return out
	}
	// Cannot fail: a Deployment's spec is a map.
	_ = unstructured.SetNestedMap(out.Object, map[string]any{
		"type": "RollingUpdate", "rollingUpdate": map[string]any{"maxUnavailable": int64(0), "maxSurge": int64(1)},
	}, "spec", "strategy")
	return out
}

// addItems appends the items of a list that out does not have.
func addItems(out, desired *unstructured.Unstructured, path ...string) {
	have, _, _ := unstructured.NestedSlice(out.Object, path...)
	wanted, _, _ := unstructured.NestedSlice(desired.Object, path...)
	added := false
	for _, item := range wanted {
		if !contains(have, item) {
			have, added = append(have, item), true
		}
	}
	if added {
		// Cannot fail: the parents are maps in every valid object.
		_ = unstructured.SetNestedSlice(out.Object, have, path...)
	}
}

func contains(list []any, item any) bool {
	for _, have := range list {
		if equality.Semantic.DeepEqual(have, item) {
			return true
		}
	}
	return false
}

// addKeys sets the keys of a map; others are kept.
func addKeys(out, desired *unstructured.Unstructured, field string) {
	wanted, _ := desired.Object[field].(map[string]any)
	for key, value := range wanted {
		// Cannot fail: the parent is a map in every valid object.
		_ = unstructured.SetNestedField(out.Object, value, field, key)
	}
}

// addPorts adds the ports of a Service that conflict with none of out.
func addPorts(out, desired *unstructured.Unstructured) {
	have, _, _ := unstructured.NestedSlice(out.Object, "spec", "ports")
	added := false
	for _, port := range entries(desired.Object, "spec", "ports") {
		conflict := false
		for _, old := range entries(out.Object, "spec", "ports") {
			conflict = conflict || samePort(old, port) || old["name"] == port["name"]
		}
		if !conflict {
			have, added = append(have, port), true
		}
	}
	if added {
		_ = unstructured.SetNestedSlice(out.Object, have, "spec", "ports") // As above.
	}
}

func samePort(a, b map[string]any) bool {
	protocol := func(port map[string]any) any {
		if p := port["protocol"]; p != nil {
			return p
		}
		return "TCP"
	}
	return equality.Semantic.DeepEqual(a["port"], b["port"]) && protocol(a) == protocol(b)
}
