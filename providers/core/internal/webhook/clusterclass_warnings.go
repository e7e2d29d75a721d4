package webhook

import (
	"fmt"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
)

// classWarnings returns warnings about variables that changed. old is nil on creation.
func classWarnings(old, class *clusterv1.ClusterClass) admission.Warnings {
	if old != nil && equality.Semantic.DeepEqual(old.Spec.Variables, class.Spec.Variables) {
		return nil
	}
	var all admission.Warnings
	for i := range class.Spec.Variables {
		v := &class.Spec.Variables[i]
		path := field.NewPath("spec", "variables").Index(i).Child("schema", "openAPIV3Schema")
		all = append(all, uselessDefaults(&v.Schema.OpenAPIV3Schema, path, fmt.Sprintf("variable %q", v.Name), ptr.Deref(v.Required, false))...)
	}
	return all
}

// uselessDefaults finds objects without a default whose properties have some: those apply only if the object is set. An object that is
// required is always set. what is the object in messages.
func uselessDefaults(schema *clusterv1.JSONSchemaProps, path *field.Path, what string, required bool) admission.Warnings {
	if !required && schema.Default == nil && slices.ContainsFunc(slices.Collect(maps.Values(schema.Properties)), hasDefault) {
		return admission.Warnings{fmt.Sprintf("%s: the defaults inside have no effect in Clusters that do not set %s: "+
			`add "default: {}" beside "type: object"`, path, what)}
	}
	var all admission.Warnings
	for _, name := range slices.Sorted(maps.Keys(schema.Properties)) {
		property := schema.Properties[name]
		required := slices.Contains(schema.Required, name)
		all = append(all, uselessDefaults(&property, path.Child("properties").Key(name), name+" of "+what, required)...)
	}
	return all
}

// hasDefault reports whether a schema has a default, or its properties have.
func hasDefault(schema clusterv1.JSONSchemaProps) bool {
	return schema.Default != nil || slices.ContainsFunc(slices.Collect(maps.Values(schema.Properties)), hasDefault)
}
