package check

import (
	"context"
	"slices"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
)

// readPermissions copies the ServiceAccounts of the managers, and the permissions that they have: what is missing shows in the copy.
func (s *source) readPermissions(ctx context.Context) error {
	accounts := map[types.NamespacedName]bool{}
	for _, d := range s.deployments {
		name := d.Spec.Template.Spec.ServiceAccountName
		if name == "" {
			name = "default"
		}
		accounts[types.NamespacedName{Namespace: d.Namespace, Name: name}] = true
	}
	for _, namespace := range s.namespaces() {
		r := corev1.SchemeGroupVersion.WithResource("serviceaccounts")
		err := s.each(ctx, r, namespace, metav1.ListOptions{}, func(o *unstructured.Unstructured) error {
			if !accounts[types.NamespacedName{Namespace: o.GetNamespace(), Name: o.GetName()}] {
				return nil
			}
			return s.add(r.GroupResource(), o)
		})
		if err != nil {
			return err
		}
	}
	wanted := map[string]bool{} // keys of roles
	for _, resource := range []string{"clusterrolebindings", "rolebindings"} {
		if err := s.readBindings(ctx, rbacv1.SchemeGroupVersion.WithResource(resource), accounts, wanted); err != nil {
			return err
		}
	}
	for _, resource := range []string{"clusterroles", "roles"} {
		r := rbacv1.SchemeGroupVersion.WithResource(resource)
		err := s.each(ctx, r, "", metav1.ListOptions{}, func(o *unstructured.Unstructured) error {
			if !wanted[keyOf(r.GroupResource(), o.GetNamespace(), o.GetName())] || isBootstrapped(o) {
				return nil
			}
			return s.add(r.GroupResource(), o) // Aggregated roles have the rules of the others in their own.
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// readBindings copies the bindings of accounts, and notes the keys of their roles.
func (s *source) readBindings(
	ctx context.Context, r schema.GroupVersionResource, accounts map[types.NamespacedName]bool, wanted map[string]bool,
) error {
	return s.each(ctx, r, "", metav1.ListOptions{}, func(o *unstructured.Unstructured) error {
		if isBootstrapped(o) {
			return nil
		}
		binding, err := into[rbacv1.RoleBinding](o) // The other kind has the same fields.
		if err != nil || !slices.ContainsFunc(binding.Subjects, func(subject rbacv1.Subject) bool { return binds(subject, accounts) }) {
			return err
		}
		roles := schema.GroupResource{Group: rbacv1.GroupName, Resource: "clusterroles"}
		namespace := ""
		if binding.RoleRef.Kind == "Role" {
			roles.Resource, namespace = "roles", binding.Namespace
		}
		wanted[keyOf(roles, namespace, binding.RoleRef.Name)] = true
		return s.add(r.GroupResource(), o)
	})
}

// binds reports whether a subject is one of the accounts, or a group of them.
func binds(subject rbacv1.Subject, accounts map[types.NamespacedName]bool) bool {
	switch subject.Kind {
	case rbacv1.ServiceAccountKind:
		return accounts[types.NamespacedName{Namespace: subject.Namespace, Name: subject.Name}]
	case rbacv1.GroupKind:
		if subject.Name == "system:serviceaccounts" || subject.Name == "system:authenticated" {
			return true
		}
		for account := range accounts {
			if subject.Name == "system:serviceaccounts:"+account.Namespace {
				return true
			}
		}
	}
	return false
}

// isBootstrapped reports whether every API server creates an object, also that of the copy.
func isBootstrapped(o *unstructured.Unstructured) bool {
	return o.GetLabels()["kubernetes.io/bootstrapping"] != ""
}
