package apiserver

import (
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"

	"sigs.k8s.io/cluster-api/providers/infrastructure-in-memory/internal/cloud"
	"sigs.k8s.io/cluster-api/providers/infrastructure-in-memory/internal/cloud/store"
)

// attributes are the authorization attributes of a request. Either path is set or the others are.
type attributes struct {
	verb                 string
	group, resource      string
	subresource          string
	namespace, name      string
	path                 string
	alwaysForAnyIdentity bool
}

var (
	clusterRoles        = store.Resource{Group: rbacv1.GroupName, Resource: "clusterroles"}
	clusterRoleBindings = store.Resource{Group: rbacv1.GroupName, Resource: "clusterrolebindings"}
	roles               = store.Resource{Group: rbacv1.GroupName, Resource: "roles"}
	roleBindings        = store.Resource{Group: rbacv1.GroupName, Resource: "rolebindings"}
)

// authorize reports whether a request is allowed: for system:masters always, for others by the cluster's RBAC objects.
// The ClusterRole cluster-admin always exists.
func authorize(g *cloud.Group, u *user, a attributes) bool {
	if slices.Contains(u.groups, groupMasters) || a.alwaysForAnyIdentity {
		return true
	}
	bindings, _ := g.List(clusterRoleBindings, "", store.Selector{})
	for _, o := range bindings {
		var b rbacv1.ClusterRoleBinding
		if o.Into(&b) == nil && matchesAny(b.Subjects, u) && roleAllows(g, b.RoleRef, "", a) {
			return true
		}
	}
	if a.namespace == "" {
		return false
	}
	bindings, _ = g.List(roleBindings, a.namespace, store.Selector{})
	for _, o := range bindings {
		var b rbacv1.RoleBinding
		if o.Into(&b) == nil && matchesAny(b.Subjects, u) && roleAllows(g, b.RoleRef, a.namespace, a) {
			return true
		}
	}
	return false
}

func matchesAny(subjects []rbacv1.Subject, u *user) bool {
	return slices.ContainsFunc(subjects, func(s rbacv1.Subject) bool {
		switch s.Kind {
		case rbacv1.UserKind:
			return s.Name == u.name
		case rbacv1.GroupKind:
			return slices.Contains(u.groups, s.Name)
		case rbacv1.ServiceAccountKind:
			return u.name == accountPrefix+s.Namespace+":"+s.Name
		}
		return false
	})
}

func roleAllows(g *cloud.Group, ref rbacv1.RoleRef, namespace string, a attributes) bool {
	key := store.Key{Resource: clusterRoles, Name: ref.Name}
	if ref.Kind == "Role" {
		key = store.Key{Resource: roles, Namespace: namespace, Name: ref.Name}
	} else if ref.Name == "cluster-admin" {
		return true
	}
	o, err := g.Get(key)
	if err != nil {
		return false
	}
	var role struct {
		Rules []rbacv1.PolicyRule `json:"rules"`
	}
	return o.Into(&role) == nil && slices.ContainsFunc(role.Rules, func(r rbacv1.PolicyRule) bool { return ruleAllows(r, a) })
}

func ruleAllows(r rbacv1.PolicyRule, a attributes) bool {
	if !has(r.Verbs, a.verb) {
		return false
	}
	if a.path != "" {
		return slices.ContainsFunc(r.NonResourceURLs, func(pattern string) bool {
			prefix, wildcard := strings.CutSuffix(pattern, "*")
			return pattern == a.path || wildcard && strings.HasPrefix(a.path, prefix)
		})
	}
	resource := a.resource
	if a.subresource != "" {
		resource += "/" + a.subresource
	}
	return has(r.APIGroups, a.group) &&
		(has(r.Resources, resource) || a.subresource != "" && slices.Contains(r.Resources, "*/"+a.subresource)) &&
		(len(r.ResourceNames) == 0 || slices.Contains(r.ResourceNames, a.name))
}

func has(list []string, value string) bool {
	return slices.Contains(list, "*") || slices.Contains(list, value)
}
