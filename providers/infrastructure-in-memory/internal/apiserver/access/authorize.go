package access

import (
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"

	"sigs.k8s.io/cluster-api/providers/infrastructure-in-memory/internal/cloud/store"
)

// Attributes are the authorization attributes of a request. Either path is set or the others are.
type Attributes struct {
	Verb            string
	Group, Resource string
	Subresource     string
	Namespace, Name string
	Path            string
	// AlwaysForAnyIdentity is whether all users are allowed to do this.
	AlwaysForAnyIdentity bool
}

var (
	clusterRoles        = store.Resource{Group: rbacv1.GroupName, Resource: "clusterroles"}
	clusterRoleBindings = store.Resource{Group: rbacv1.GroupName, Resource: "clusterrolebindings"}
	roles               = store.Resource{Group: rbacv1.GroupName, Resource: "roles"}
	roleBindings        = store.Resource{Group: rbacv1.GroupName, Resource: "rolebindings"}
)

// Authorize reports whether a request is allowed: for system:masters always, for others by the cluster's RBAC objects.
// The ClusterRole cluster-admin always exists.
func Authorize(g *store.Store, u *User, a Attributes) bool {
	if slices.Contains(u.Groups, Masters) || a.AlwaysForAnyIdentity {
		return true
	}
	bindings, _ := g.List(clusterRoleBindings, "", store.Selector{})
	for _, o := range bindings {
		var b rbacv1.ClusterRoleBinding
		if o.Into(&b) == nil && matchesAny(b.Subjects, u) && roleAllows(g, b.RoleRef, "", a) {
			return true
		}
	}
	if a.Namespace == "" {
		return false
	}
	bindings, _ = g.List(roleBindings, a.Namespace, store.Selector{})
	for _, o := range bindings {
		var b rbacv1.RoleBinding
		if o.Into(&b) == nil && matchesAny(b.Subjects, u) && roleAllows(g, b.RoleRef, a.Namespace, a) {
			return true
		}
	}
	return false
}

func matchesAny(subjects []rbacv1.Subject, u *User) bool {
	return slices.ContainsFunc(subjects, func(s rbacv1.Subject) bool {
		switch s.Kind {
		case rbacv1.UserKind:
			return s.Name == u.Name
		case rbacv1.GroupKind:
			return slices.Contains(u.Groups, s.Name)
		case rbacv1.ServiceAccountKind:
			return u.Name == accountPrefix+s.Namespace+":"+s.Name
		}
		return false
	})
}

func roleAllows(g *store.Store, ref rbacv1.RoleRef, namespace string, a Attributes) bool {
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

func ruleAllows(r rbacv1.PolicyRule, a Attributes) bool {
	if !has(r.Verbs, a.Verb) {
		return false
	}
	if a.Path != "" {
		return slices.ContainsFunc(r.NonResourceURLs, func(pattern string) bool {
			prefix, wildcard := strings.CutSuffix(pattern, "*")
			return pattern == a.Path || wildcard && strings.HasPrefix(a.Path, prefix)
		})
	}
	resource := a.Resource
	if a.Subresource != "" {
		resource += "/" + a.Subresource
	}
	return has(r.APIGroups, a.Group) &&
		(has(r.Resources, resource) || a.Subresource != "" && slices.Contains(r.Resources, "*/"+a.Subresource)) &&
		(len(r.ResourceNames) == 0 || slices.Contains(r.ResourceNames, a.Name))
}

func has(list []string, value string) bool {
	return slices.Contains(list, "*") || slices.Contains(list, value)
}

// User is the user of a request.
type User struct {
	Name   string
	Groups []string
}
