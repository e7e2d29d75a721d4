package inspect

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"

	clusterctlv1 "sigs.k8s.io/cluster-api/api/clusterctl/v1alpha3"
	operatorv1 "sigs.k8s.io/cluster-api/api/operator/v1alpha2"
)

// power is a permission in all namespaces with which any other can be acquired. Who may read or write all Secrets can do the same, but
// nearly all providers need that.
type power struct {
	group     string
	resources []string
	// verbs are prefixes: impersonation has several.
	verbs []string
	what  string
	// harmless reports whether the permission for an object with this name is harmless; nil: it never is.
	harmless func(in *inspection, resource, name string) bool
}

func powers() []power {
	write := []string{"create", "update", "patch"}
	const asAnyone = "permission to run Pods with any ServiceAccount"
	return []power{
		{rbacv1.GroupName, []string{"roles", "clusterroles"}, []string{"escalate"}, "permission to write roles with any permissions", nil},
		{rbacv1.GroupName, []string{"roles", "clusterroles"}, []string{"bind"}, "permission to write roles with any permissions", bindable},
		{"", []string{"users", "groups", "serviceaccounts"}, []string{"impersonate"}, "permission to impersonate users", nil},
		{"authentication.k8s.io", []string{"users", "groups", "serviceaccounts", "nodes", "uids", "userextras"}, []string{"impersonate"},
			"permission to impersonate users", nil},
		{"", []string{"serviceaccounts/token"}, []string{"create"}, "permission to request tokens of any ServiceAccount", nil},
		{"", []string{"pods", "pods/ephemeralcontainers", "replicationcontrollers"}, write, asAnyone, nil},
		{"apps", []string{"deployments", "daemonsets", "statefulsets", "replicasets"}, write, asAnyone, nil},
		{"batch", []string{"jobs", "cronjobs"}, write, asAnyone, nil},
		{"", []string{"pods/exec", "pods/attach", "nodes/proxy"}, []string{"get", "create"}, "permission to run commands in any Pod", nil},
		{"", []string{"persistentvolumes"}, write, "permission to mount file systems of Nodes", nil},
		{"certificates.k8s.io", []string{"signers"}, []string{"approve", "sign"}, "permission to issue certificates of any user", isOwnSigner},
		{admissionGroup, []string{"mutatingwebhookconfigurations", "mutatingadmissionpolicies", "mutatingadmissionpolicybindings"}, write,
			"permission to change all objects while they are written", ownObject},
		{"apiregistration.k8s.io", []string{"apiservices"}, write, "permission to replace APIs", ownObject},
		{operatorv1.GroupVersion.Group, []string{"coreproviders", "bootstrapproviders", "controlplaneproviders", "infrastructureproviders",
			"ipamproviders", "addonproviders", "runtimeextensionproviders"}, write, "permission to declare providers", nil},
	}
}

// bindable reports whether a provider may have a role, so that it may also grant it.
func bindable(in *inspection, resource, name string) bool {
	if resource == "roles" {
		return in.has(rbacv1.GroupName, "Role", name)
	}
	reason, err := in.granted(name)
	return reason == "" && err == nil
}

// isOwnSigner reports whether certificates of a signer are none of users of the management cluster.
func isOwnSigner(_ *inspection, _, name string) bool {
	return name == "kubernetes.io/kubelet-serving" || !strings.HasPrefix(name, "kubernetes.io/") && name != "*"
}

// ownObject reports whether an object is one of the components.
func ownObject(in *inspection, resource, name string) bool {
	return slices.ContainsFunc(in.objects, func(o unstructured.Unstructured) bool {
		return o.GetName() == name && strings.HasPrefix(resource, strings.TrimSuffix(strings.ToLower(o.GetKind()), "y"))
	})
}

// has reports whether an object is one of the components, or of what administrators add to them.
func (in *inspection) has(group, kind, name string) bool {
	is := func(o unstructured.Unstructured) bool {
		return o.GetName() == name && o.GetKind() == kind && o.GroupVersionKind().Group == group
	}
	return slices.ContainsFunc(in.objects, is) || slices.ContainsFunc(in.Additional, is)
}

// binding rejects to grant a ClusterRole of the management cluster with which all permissions can be acquired, in all namespaces.
func (in *inspection) binding(o *unstructured.Unstructured) (string, error) {
	if !isBinding(o) || o.GetKind() != "ClusterRoleBinding" {
		return "", nil
	}
	name, _, _ := unstructured.NestedString(o.Object, "roleRef", "name")
	return in.granted(name)
}

// granted returns why a ClusterRole must not be granted, or "". Those of the components are inspected themselves.
func (in *inspection) granted(name string) (string, error) {
	if name == "cluster-admin" {
		return "grants cluster-admin", nil
	}
	if in.has(rbacv1.GroupName, "ClusterRole", name) {
		return "", nil
	}
	roles, err := in.clusterRoles()
	if err != nil {
		return "", err
	}
	role := roles[name]
	if role == nil {
		return fmt.Sprintf("grants ClusterRole %s, which neither the components nor the management cluster have", name), nil
	}
	if in.resolving[name] { // A role that may grant itself.
		return "", nil
	}
	in.resolving[name] = true
	defer delete(in.resolving, name)
	if what, rule := in.excessOf(role.Rules); what != "" {
		return fmt.Sprintf("grants ClusterRole %s, and so %s (its rule %d)", name, what, rule), nil
	}
	return "", nil
}

// role rejects ClusterRoles with which all permissions can be acquired.
func (in *inspection) role(o *unstructured.Unstructured) (string, error) {
	role, reason := clusterRole(o)
	if role == nil {
		return reason, nil
	}
	if what, rule := in.excessOf(role.Rules); what != "" {
		return fmt.Sprintf("grants %s (rule %d)", what, rule), nil
	}
	return "", nil
}

// clusterRole returns an object that is a ClusterRole, or nil. It may be invalid, for a reason.
func clusterRole(o *unstructured.Unstructured) (role *rbacv1.ClusterRole, reason string) {
	if o.GroupVersionKind().Group != rbacv1.GroupName || o.GetKind() != "ClusterRole" {
		return nil, ""
	}
	role = &rbacv1.ClusterRole{}
	if reason := into(o, role); reason != "" {
		return nil, reason
	}
	return role, ""
}

// aggregation rejects ClusterRoles that get all permissions from others. The core provider may get those of all providers: it manages their
// objects.
func (in *inspection) aggregation(o *unstructured.Unstructured) (string, error) {
	role, _ := clusterRole(o)
	if role == nil || role.AggregationRule == nil {
		return "", nil
	}
	for i := range role.AggregationRule.ClusterRoleSelectors {
		selector, err := metav1.LabelSelectorAsSelector(&role.AggregationRule.ClusterRoleSelectors[i])
		switch {
		case err != nil:
			return "is invalid: " + err.Error(), nil
		case selector.Empty():
			return "grants the permissions of all ClusterRoles", nil
		case in.Label == clusterctlv1.ClusterAPIProviderName && selector.String() == coreAggregation:
			continue
		}
		if reason, err := in.collected(selector); reason != "" || err != nil {
			return reason, err
		}
	}
	return "", nil
}

// coreAggregation selects the ClusterRoles of providers for the core provider.
const coreAggregation = "cluster.x-k8s.io/aggregate-to-manager=true"

// collected returns why the ClusterRoles of the management cluster that are selected must not be granted, or "".
func (in *inspection) collected(selector labels.Selector) (string, error) {
	roles, err := in.clusterRoles()
	if err != nil {
		return "", err
	}
	for _, name := range slices.Sorted(maps.Keys(roles)) {
		if !selector.Matches(labels.Set(roles[name].Labels)) || in.has(rbacv1.GroupName, "ClusterRole", name) {
			continue
		}
		if what, rule := in.excessOf(roles[name].Rules); what != "" {
			return fmt.Sprintf("grants the permissions of ClusterRole %s, and so %s (its rule %d)", name, what, rule), nil
		}
	}
	return "", nil
}

// forUsers rejects to extend roles of Kubernetes that users have, except by permissions for objects of providers.
func (in *inspection) forUsers(o *unstructured.Unstructured) (string, error) {
	role, _ := clusterRole(o)
	if role == nil {
		return "", nil
	}
	for _, users := range []string{"admin", "edit", "view"} {
		if role.Labels["rbac.authorization.k8s.io/aggregate-to-"+users] != "true" {
			continue
		}
		for i, rule := range role.Rules {
			if group := slices.IndexFunc(rule.APIGroups, isOfKubernetes); group >= 0 || len(rule.NonResourceURLs) > 0 {
				return fmt.Sprintf("grants permissions for what is not of the provider to all users with the ClusterRole %s (rule %d)", users, i+1), nil
			}
		}
	}
	return "", nil
}

// isOfKubernetes reports whether an API group is one of Kubernetes itself, or all.
func isOfKubernetes(group string) bool {
	return !strings.Contains(group, ".") || strings.HasSuffix(group, ".k8s.io")
}

// clusterRoles returns the ClusterRoles of the management cluster, by name.
func (in *inspection) clusterRoles() (map[string]*rbacv1.ClusterRole, error) {
	if in.roles != nil {
		return in.roles, nil
	}
	list, err := in.Roles()
	if err != nil {
		return nil, err
	}
	in.roles = map[string]*rbacv1.ClusterRole{}
	for i := range list {
		in.roles[list[i].Name] = &list[i]
	}
	return in.roles, nil
}

// excessOf returns what rules grant beyond what providers may have, with the number of the rule; "" if nothing.
func (in *inspection) excessOf(rules []rbacv1.PolicyRule) (what string, rule int) {
	for i := range rules {
		if what := in.excess(&rules[i]); what != "" {
			return what, i + 1
		}
	}
	return "", 0
}

func (in *inspection) excess(r *rbacv1.PolicyRule) string {
	if slices.Contains(r.APIGroups, "*") && slices.Contains(r.Resources, "*") {
		if slices.Contains(r.Verbs, "*") {
			return "all permissions"
		}
		return "permission to " + strings.Join(r.Verbs, ", ") + " all objects"
	}
	for _, p := range powers() {
		if !slices.Contains(r.APIGroups, p.group) && !slices.Contains(r.APIGroups, "*") || !slices.ContainsFunc(r.Verbs, p.isVerb) {
			continue
		}
		for _, resource := range p.resources {
			if slices.ContainsFunc(r.Resources, func(have string) bool { return includes(have, resource) }) && !in.limited(p, resource, r) {
				return p.what
			}
		}
	}
	return ""
}

// limited reports whether the names in a rule make a power harmless.
func (in *inspection) limited(p power, resource string, r *rbacv1.PolicyRule) bool {
	if p.harmless == nil || len(r.ResourceNames) == 0 {
		return false
	}
	return !slices.ContainsFunc(r.ResourceNames, func(name string) bool { return !p.harmless(in, resource, name) })
}

func (p power) isVerb(verb string) bool {
	return verb == "*" || slices.ContainsFunc(p.verbs, func(v string) bool {
		return verb == v || v == "impersonate" && strings.HasPrefix(verb, v)
	})
}

// includes reports whether a resource in a rule includes another one: * are all with all subresources, */x the subresources x of all.
// Extras
// of users are subresources.
func includes(have, resource string) bool {
	if _, sub, isSub := strings.Cut(resource, "/"); isSub && have == "*/"+sub {
		return true
	}
	return have == "*" || have == resource || resource == "userextras" && strings.HasPrefix(have, "userextras/")
}
