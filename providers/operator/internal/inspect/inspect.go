// Package inspect rejects components that do more than components of a provider may, before anything is written: a release is not written
// by those who run the management cluster.
//
// It is a pure function of the objects. What administrators add with spec.additionalManifests is not inspected.
package inspect

import (
	"fmt"
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	clusterctlv1 "sigs.k8s.io/cluster-api/api/clusterctl/v1alpha3"
	operatorv1 "sigs.k8s.io/cluster-api/api/operator/v1alpha2"
	"sigs.k8s.io/cluster-api/packages/manifest"
)

// maxObjects is how many objects a provider may have. The largest known ones have a few hundred.
const maxObjects = 2000

// Options are what is allowed.
type Options struct {
	// Owner returns the provider label of an object in the management cluster, "" if the object or the label does not exist.
	Owner func(manifest.Key) string
	// Label is the label of the provider.
	Label string
	// AllPermissions allows roles with all permissions, or with which all permissions can be acquired.
	AllPermissions bool
}

// Check returns why the components are rejected, or nil.
func Check(objects []unstructured.Unstructured, o Options) error {
	if n := len(objects); n > maxObjects {
		return fmt.Errorf("the components have %d objects, at most %d are accepted", n, maxObjects)
	}
	for i := range objects {
		for _, check := range []func(*unstructured.Unstructured, Options) string{named, ownKind, builtIn, ofOther, subjects, permissions} {
			if reason := check(&objects[i], o); reason != "" {
				return fmt.Errorf("the components are refused: %s %s", manifest.Describe(&objects[i]), reason)
			}
		}
	}
	return nil
}

// named rejects objects that would be created again and again.
func named(o *unstructured.Unstructured, _ Options) string {
	if o.GetName() == "" {
		return "has no metadata.name"
	}
	return ""
}

// ownKind rejects providers that install providers, which could go round in circles.
func ownKind(o *unstructured.Unstructured, _ Options) string {
	switch o.GroupVersionKind().Group {
	case operatorv1.GroupVersion.Group:
		return "declares a provider: only administrators may"
	case clusterctlv1.GroupVersion.Group:
		return "is a part of the inventory, which the operator writes itself"
	}
	return ""
}

// builtIn rejects to replace the roles that the API server defines.
func builtIn(o *unstructured.Unstructured, _ Options) string {
	if o.GroupVersionKind().Group != rbacv1.GroupName {
		return ""
	}
	if name := o.GetName(); strings.HasPrefix(name, "system:") || slices.Contains([]string{"cluster-admin", "admin", "edit", "view"}, name) {
		return "would replace what Kubernetes defines"
	}
	return ""
}

// ofOther rejects to replace an object of another provider.
func ofOther(o *unstructured.Unstructured, options Options) string {
	if owner := options.Owner(manifest.KeyOf(o)); owner != "" && owner != options.Label && o.GetKind() != "Namespace" {
		return "belongs to provider " + owner
	}
	return ""
}

// subjects rejects permissions for others than the ServiceAccounts of the provider.
func subjects(o *unstructured.Unstructured, _ Options) string {
	if !isBinding(o) {
		return ""
	}
	binding := &rbacv1.ClusterRoleBinding{} // A RoleBinding has the same fields.
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(o.Object, binding); err != nil {
		return "is invalid: " + err.Error()
	}
	for _, s := range binding.Subjects {
		if s.Kind != rbacv1.ServiceAccountKind {
			return fmt.Sprintf("grants permissions to %s %s: only ServiceAccounts of the provider may have them", s.Kind, s.Name)
		}
	}
	return ""
}

// permissions rejects all permissions, and those with which all can be acquired, in all namespaces.
func permissions(o *unstructured.Unstructured, options Options) string {
	if options.AllPermissions {
		return ""
	}
	reason := ""
	switch {
	case isBinding(o) && isClusterWide(o):
		if role, _, _ := unstructured.NestedString(o.Object, "roleRef", "name"); role == "cluster-admin" {
			reason = "grants cluster-admin"
		}
	case isRole(o) && isClusterWide(o):
		role := &rbacv1.ClusterRole{}
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(o.Object, role); err != nil {
			return "is invalid: " + err.Error()
		}
		for i := range role.Rules {
			if what := excess(&role.Rules[i]); what != "" {
				reason = fmt.Sprintf("grants %s (rule %d)", what, i+1)
				break
			}
		}
	}
	if reason == "" {
		return ""
	}
	return fmt.Sprintf("%s: to allow it, set the annotation %s: \"true\" on the object that declares the provider",
		reason, operatorv1.AllowAllPermissionsAnnotation)
}

// excess returns what a rule grants beyond what providers may have, "" if nothing.
func excess(r *rbacv1.PolicyRule) string {
	has := func(list []string, values ...string) bool {
		return slices.ContainsFunc(values, func(v string) bool { return slices.Contains(list, v) }) || slices.Contains(list, "*")
	}
	switch {
	case slices.Contains(r.APIGroups, "*") && slices.Contains(r.Resources, "*") && slices.Contains(r.Verbs, "*"):
		return "all permissions"
	case has(r.APIGroups, rbacv1.GroupName) && has(r.Resources, "roles", "clusterroles") && has(r.Verbs, "escalate", "bind"):
		return "permission to write roles with any permissions"
	case has(r.APIGroups, "") && has(r.Resources, "users", "groups") && has(r.Verbs, "impersonate"):
		return "permission to impersonate users"
	}
	return ""
}

func isBinding(o *unstructured.Unstructured) bool {
	return o.GroupVersionKind().Group == rbacv1.GroupName && strings.HasSuffix(o.GetKind(), "RoleBinding")
}

func isRole(o *unstructured.Unstructured) bool {
	return o.GroupVersionKind().Group == rbacv1.GroupName && strings.HasSuffix(o.GetKind(), "Role")
}

func isClusterWide(o *unstructured.Unstructured) bool {
	return strings.HasPrefix(o.GetKind(), "Cluster")
}
