package database

import (
	"strings"

	"sigs.k8s.io/cluster-api/providers/infrastructure-in-memory/internal/cloud/store"
)

const (
	// registry is the prefix of a kube-apiserver's keys.
	registry = "/registry/"
	// compactKey is where API servers note up to which revision they have compacted etcd.
	compactKey = "compact_rev_key"
)

// prefixes are the prefixes of resources that are not stored under their own name, for historical reasons.
func prefixes() map[store.Resource]string {
	return map[store.Resource]string{
		{Resource: "endpoints"}:                             "services/endpoints",
		{Resource: "nodes"}:                                 "minions",
		{Resource: "replicationcontrollers"}:                "controllers",
		{Resource: "services"}:                              "services/specs",
		{Group: "networking.k8s.io", Resource: "ingresses"}: "ingress",
	}
}

// isBuiltin reports whether a group is one of Kubernetes, whose resources are stored without their group.
func isBuiltin(group string) bool {
	switch group {
	case "", "apps", "autoscaling", "batch", "policy":
		return true
	case "apiextensions.k8s.io", "apiregistration.k8s.io":
		return false
	}
	return strings.HasSuffix(group, ".k8s.io")
}

// prefixOf returns what the keys of a resource begin with.
func prefixOf(r store.Resource) string {
	if special, ok := prefixes()[r]; ok {
		return registry + special
	}
	if isBuiltin(r.Group) {
		return registry + r.Resource
	}
	return registry + r.Group + "/" + r.Resource
}

// keyOf returns where a kube-apiserver stores an object.
func keyOf(k store.Key) string {
	if k.Namespace == "" {
		return prefixOf(k.Resource) + "/" + k.Name
	}
	return prefixOf(k.Resource) + "/" + k.Namespace + "/" + k.Name
}
