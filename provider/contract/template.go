package contract

import (
	"errors"
	"maps"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta1"
)

// templateSuffix ends the kind of every template; without it, it is the kind of what the template makes.
const templateSuffix = "Template"

// KindOf is the kind of the objects that a template of the given kind makes.
func KindOf(templateKind string) string { return strings.TrimSuffix(templateKind, templateSuffix) }

// CloneInput is what Clone needs. Template, Name, Namespace and ClusterName are required.
type CloneInput struct {
	// Template is the template, at the apiVersion the clone shall have.
	Template *unstructured.Unstructured
	// Name and Namespace are those of the clone.
	Name      string
	Namespace string
	// ClusterName is the Cluster the clone is a part of.
	ClusterName string
	// Owner is the clone's only owner at first; nil for none.
	Owner *metav1.OwnerReference
	// Labels and Annotations are put over those that the template gives.
	Labels      map[string]string
	Annotations map[string]string
}

// Clone makes an object from a template, in memory: the content of spec.template, with nothing of the template's own
// metadata. It fails when the template has no spec.template.
func Clone(in CloneInput) (*unstructured.Unstructured, error) {
	template := ObjectOf(in.Template)
	content, ok, err := template.lookup("spec", "template")
	if err != nil {
		return nil, err
	}
	fields, isObject := content.(map[string]any)
	if !ok || !isObject {
		return nil, template.errorf([]string{"spec", "template"}, "%w", errors.New("is missing or not an object: there is nothing to clone"))
	}
	meta, err := template.metadata("spec", "template", "metadata")
	if err != nil {
		return nil, err
	}
	clone := &unstructured.Unstructured{Object: runtime.DeepCopyJSON(fields)}
	delete(clone.Object, "metadata")
	clone.SetAPIVersion(in.Template.GetAPIVersion())
	clone.SetKind(KindOf(in.Template.GetKind()))
	clone.SetName(in.Name)
	clone.SetNamespace(in.Namespace)
	clone.SetLabels(merged(meta.Labels, in.Labels, map[string]string{clusterv1.ClusterNameLabel: in.ClusterName}))
	clone.SetAnnotations(merged(meta.Annotations, in.Annotations, map[string]string{
		clusterv1.TemplateClonedFromNameAnnotation:      in.Template.GetName(),
		clusterv1.TemplateClonedFromGroupKindAnnotation: in.Template.GroupVersionKind().GroupKind().String(),
	}))
	if in.Owner != nil {
		clone.SetOwnerReferences([]metav1.OwnerReference{*in.Owner})
	}
	return clone, nil
}

// merged is the union of all; the later ones win.
func merged(all ...map[string]string) map[string]string {
	union := map[string]string{}
	for _, one := range all {
		maps.Copy(union, one)
	}
	return union
}
