package live

import (
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	clusterctlv1 "sigs.k8s.io/cluster-api/api/clusterctl/v1alpha3"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/packages"
)

// Owner is what is known of an object that components would replace.
type Owner struct {
	// Exists is set if there is an object without a namespace that users or other programs have written, and neither clusterctl nor an
	// operator for a provider.
	Exists bool
	// Provider is its provider label, "" without one.
	Provider string
	// Part is what it belongs to if not to a provider, such as cert-manager; "" if that is unknown.
	Part string
}

// aggregationManager is the field manager of Kubernetes' controller that writes the rules of aggregated ClusterRoles. It may write them
// once more when one is deleted, and so creates a ClusterRole without labels: without any field manager, if there are no rules.
const aggregationManager = "clusterrole-aggregation-controller"

// OwnerOf returns what the metadata of an object of a kind without a namespace says.
func OwnerOf(kind string, o metav1.Object) Owner {
	labels := o.GetLabels()
	// What clusterctl or an operator has written has this label, also if a user has removed that of the provider.
	_, written := labels[clusterctlv1.ClusterctlLabel]
	part := labels[clusterctlv1.ClusterctlCoreLabel]
	return Owner{
		Exists: part != "" || !written && !(kind == "ClusterRole" && isRemainder(o)), Provider: labels[clusterv1.ProviderNameLabel], Part: part,
	}
}

// isRemainder reports whether only Kubernetes' aggregation has written a ClusterRole, see aggregationManager.
func isRemainder(o metav1.Object) bool {
	return len(o.GetLabels()) == 0 && len(o.GetAnnotations()) == 0 && !slices.ContainsFunc(o.GetManagedFields(),
		func(f metav1.ManagedFieldsEntry) bool { return f.Manager != aggregationManager })
}

// Objection returns why the components of the provider with a label must not replace an object, or "". installed reports whether the
// provider with a label is declared or installed.
//
// An object of another provider is not replaced, and one without a namespace not if it is of no provider. What was written for a provider
// that is gone, such as its CustomResourceDefinitions, is taken over. Namespaces are not inspected: they may be of several.
func (w Owner) Objection(o *unstructured.Unstructured, label string, installed func(label string) bool) string {
	switch {
	case o.GetKind() == "Namespace", w.Provider == label:
		return ""
	case w.Provider != "" && installed(w.Provider):
		return fmt.Sprintf("belongs to provider %s: delete that provider first, or use a release that does not have this object; "+
			"if it is of %s now, change its label: %s", w.Provider, label, relabel(o, label, " --overwrite"))
	case w.Provider != "" || !w.Exists:
		return ""
	case w.Part != "":
		return "would replace a part of " + w.Part
	default:
		return "exists already, and is of no provider: if it is of this one, set its label: " + relabel(o, label, "")
	}
}

// Related reports whether two manifest labels are of providers with the same name and different types: their releases come from the same
// project, and may share definitions, as those of k0smotron do.
func Related(label, other string) bool {
	if label == other {
		return false
	}
	for _, t := range packages.Types() {
		for _, u := range packages.Types() {
			name, ok := strings.CutPrefix(label, clusterctlv1.ManifestLabel("", t))
			if ok && name != "" && clusterctlv1.ManifestLabel(name, u) == other {
				return true
			}
		}
	}
	return false
}

// PartObjection is Objection for a part of clusterctl that is no provider, such as the operator.
func (w Owner) PartObjection(o *unstructured.Unstructured, part string, installed func(label string) bool) string {
	switch {
	case o.GetKind() == "Namespace", w.Part == part:
		return ""
	case w.Provider != "" && installed(w.Provider):
		return fmt.Sprintf("belongs to provider %s: delete that provider first, or use a release that does not have this object", w.Provider)
	case w.Provider != "" || !w.Exists:
		return ""
	case w.Part != "":
		return "would replace a part of " + w.Part
	default:
		return fmt.Sprintf("exists already, and is not of %s: if it is, set its label: %s",
			part, labelCommand(o, clusterctlv1.ClusterctlCoreLabel, part, ""))
	}
}

// relabel returns the command that makes an object one of a provider.
func relabel(o *unstructured.Unstructured, label, flags string) string {
	return labelCommand(o, clusterv1.ProviderNameLabel, label, flags)
}

func labelCommand(o *unstructured.Unstructured, key, value, flags string) string {
	kind := strings.ToLower(o.GetKind())
	if group := o.GroupVersionKind().Group; group != "" {
		kind += "." + group
	}
	if namespace := o.GetNamespace(); namespace != "" {
		kind = "-n " + namespace + " " + kind
	}
	return fmt.Sprintf("kubectl label%s %s %s %s=%s", flags, kind, o.GetName(), key, value)
}
