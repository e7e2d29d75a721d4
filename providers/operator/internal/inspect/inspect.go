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
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	operatorv1 "sigs.k8s.io/cluster-api/api/operator/v1alpha2"
	"sigs.k8s.io/cluster-api/packages/live"
	"sigs.k8s.io/cluster-api/packages/manifest"
)

// maxObjects is how many objects a provider may have. The largest known ones have a few hundred.
const maxObjects = 2000

// Options are what is allowed.
type Options struct {
	// Find returns what is known of an object in the management cluster.
	Find func(o *unstructured.Unstructured) (live.Owner, error)
	// Installed reports whether the provider with a label is declared or installed.
	Installed func(label string) bool
	// Label is the label of the provider.
	Label string
	// Additional are objects that administrators add to the provider. They are not inspected.
	Additional []unstructured.Unstructured
	// Roles returns the ClusterRoles of the management cluster. It is only called if the components refer to some.
	Roles func() ([]rbacv1.ClusterRole, error)
	// AllPermissions allows roles with all permissions, or with which all permissions can be acquired.
	AllPermissions bool
}

// inspection is the inspection of components.
type inspection struct {
	Options
	objects []unstructured.Unstructured
	// roles are the ClusterRoles of the management cluster, by name, once they were needed.
	roles map[string]*rbacv1.ClusterRole
	// resolving are the ClusterRoles that are being inspected.
	resolving map[string]bool
}

// Check returns why the components are rejected, or nil.
func Check(objects []unstructured.Unstructured, o Options) error {
	if n := len(objects); n > maxObjects {
		return &RefusedError{fmt.Sprintf("the components have %d objects, at most %d are accepted", n, maxObjects)}
	}
	in := &inspection{Options: o, objects: objects, resolving: map[string]bool{}}
	checks := []func(*unstructured.Unstructured) (string, error){
		in.named, in.ownKind, in.builtIn, in.ofOther, in.subjects,
		in.unlessAllowed(in.binding), in.unlessAllowed(in.role), in.unlessAllowed(in.aggregation), in.unlessAllowed(in.forUsers),
		in.unlessAllowed(in.admission), in.unlessAllowed(in.volume), in.unlessAllowed(in.account),
	}
	for i := range objects {
		for _, check := range checks {
			reason, err := check(&objects[i])
			if err != nil {
				return fmt.Errorf("inspecting %s: %w", manifest.Describe(&objects[i]), err)
			}
			if reason != "" {
				return &RefusedError{fmt.Sprintf("the components are refused: %s %s", manifest.Describe(&objects[i]), reason)}
			}
		}
	}
	return nil
}

// Shared returns the CustomResourceDefinitions that an installed provider of the same project has, with that provider's label. They stay as
// they are: two providers that both wrote them would overwrite each other's. Other objects cannot be shared, because they refer to what the
// provider itself has, such as its ServiceAccount.
func Shared(objects []unstructured.Unstructured, o Options) ([]unstructured.Unstructured, error) {
	var list []unstructured.Unstructured
	for i := range objects {
		if objects[i].GetKind() != manifest.KindCRD {
			continue
		}
		found, err := o.Find(&objects[i])
		if err != nil {
			return nil, fmt.Errorf("inspecting %s: %w", manifest.Describe(&objects[i]), err)
		}
		if live.Related(o.Label, found.Provider) && o.Installed(found.Provider) {
			shared := objects[i].DeepCopy()
			labels := shared.GetLabels()
			if labels == nil {
				labels = map[string]string{}
			}
			labels[clusterv1.ProviderNameLabel] = found.Provider
			shared.SetLabels(labels)
			list = append(list, *shared)
		}
	}
	return list, nil
}

// RefusedError is the error of components that are rejected.
type RefusedError struct{ text string }

// Error implements error.
func (e *RefusedError) Error() string { return e.text }

// unlessAllowed returns a check that administrators can switch off.
func (in *inspection) unlessAllowed(
	check func(*unstructured.Unstructured) (string, error),
) func(*unstructured.Unstructured) (string, error) {
	return func(o *unstructured.Unstructured) (string, error) {
		if in.AllPermissions {
			return "", nil
		}
		reason, err := check(o)
		if reason != "" {
			reason += fmt.Sprintf(": to allow it, set the annotation %s: \"true\" on the object that declares the provider",
				operatorv1.AllowAllPermissionsAnnotation)
		}
		return reason, err
	}
}

// named rejects objects that would be created again and again.
func (in *inspection) named(o *unstructured.Unstructured) (string, error) {
	if o.GetName() == "" {
		return "has no metadata.name", nil
	}
	return "", nil
}

// ownKind rejects providers that install providers, which could go round in circles.
func (in *inspection) ownKind(o *unstructured.Unstructured) (string, error) {
	switch o.GroupVersionKind().Group {
	case operatorv1.GroupVersion.Group:
		return "declares a provider: only administrators may", nil
	case clusterctlv1.GroupVersion.Group:
		return "is a part of the inventory, which the operator writes itself", nil
	}
	return "", nil
}

// builtIn rejects to replace the roles that the API server defines.
func (in *inspection) builtIn(o *unstructured.Unstructured) (string, error) {
	if o.GroupVersionKind().Group != rbacv1.GroupName {
		return "", nil
	}
	if name := o.GetName(); strings.HasPrefix(name, "system:") || slices.Contains([]string{"cluster-admin", "admin", "edit", "view"}, name) {
		return "would replace what Kubernetes defines", nil
	}
	return "", nil
}

// ofOther rejects to replace an object of another provider, and one without a namespace that is of no provider.
func (in *inspection) ofOther(o *unstructured.Unstructured) (string, error) {
	if o.GetKind() == "Namespace" {
		return "", nil
	}
	found, err := in.Find(o)
	if err != nil {
		return "", err
	}
	return found.Objection(o, in.Label, in.Installed), nil
}

// subjects rejects permissions for others than the ServiceAccounts of the provider.
func (in *inspection) subjects(o *unstructured.Unstructured) (string, error) {
	if !isBinding(o) {
		return "", nil
	}
	binding := &rbacv1.ClusterRoleBinding{} // A RoleBinding has the same fields.
	if reason := into(o, binding); reason != "" {
		return reason, nil
	}
	for _, s := range binding.Subjects {
		if s.Kind != rbacv1.ServiceAccountKind {
			return fmt.Sprintf("grants permissions to %s %s: only ServiceAccounts of the provider may have them", s.Kind, s.Name), nil
		}
	}
	return "", nil
}

// into converts an object. It returns why that is not possible, or "".
func into(o *unstructured.Unstructured, typed any) string {
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(o.Object, typed); err != nil {
		return "is invalid: " + err.Error()
	}
	return ""
}

func isBinding(o *unstructured.Unstructured) bool {
	return o.GroupVersionKind().Group == rbacv1.GroupName && strings.HasSuffix(o.GetKind(), "RoleBinding")
}
