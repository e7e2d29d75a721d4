package contract

import (
	"errors"
	"maps"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/sdk/conversion"
)

// templateSuffix is the end of the kind of every template, after the kind of its objects.
const templateSuffix = "Template"

// KindOf returns the kind of the objects of a template.
func KindOf(templateKind string) string { return strings.TrimSuffix(templateKind, templateSuffix) }

// CloneInput is the input of Clone. Template, Name, Namespace and ClusterName are required.
type CloneInput struct {
	// Template is the template. Its apiVersion is that of the clone.
	Template *unstructured.Unstructured
	// Name and Namespace are those of the clone.
	Name      string
	Namespace string
	// ClusterName is the Cluster that the clone belongs to.
	ClusterName string
	// Owner is the owner of the clone; nil for none.
	Owner *metav1.OwnerReference
	// Labels and Annotations override those of the template.
	Labels      map[string]string
	Annotations map[string]string
}

// Clone returns a new object with the content of spec.template of a template, and without the template's own metadata. It does not
// create it in the API server.
func Clone(in CloneInput) (*unstructured.Unstructured, error) {
	template := Object{Unstructured: in.Template}
	content, ok, err := template.lookup("spec", "template")
	if err != nil {
		return nil, err
	}
	fields, isObject := content.(map[string]any)
	if !ok && strings.HasSuffix(in.Template.GetKind(), templateSuffix) {
		// A template without any field: v1beta2 neither stores nor accepts empty objects.
		fields, ok, isObject = map[string]any{}, true, true
	}
	if !ok || !isObject {
		return nil, template.errorf([]string{"spec", "template"}, "%w", errors.New("is missing or not an object"))
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
	annotations := merged(meta.Annotations, in.Annotations, map[string]string{
		clusterv1.TemplateClonedFromNameAnnotation:      in.Template.GetName(),
		clusterv1.TemplateClonedFromGroupKindAnnotation: in.Template.GroupVersionKind().GroupKind().String(),
	})
	if older := conversion.OlderOfTemplate(in.Template); older != "" {
		annotations[conversion.OlderVersionAnnotation] = older
	}
	clone.SetAnnotations(annotations)
	if in.Owner != nil {
		clone.SetOwnerReferences([]metav1.OwnerReference{*in.Owner})
	}
	return clone, nil
}

// merged returns the union of maps; later ones win.
func merged(all ...map[string]string) map[string]string {
	union := map[string]string{}
	for _, one := range all {
		maps.Copy(union, one)
	}
	return union
}
