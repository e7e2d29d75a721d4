package kinds

import (
	"k8s.io/apimachinery/pkg/runtime/schema"

	"sigs.k8s.io/cluster-api/sdk/conversion/internal/lossless"
)

// Fields with references. Those of contracts have neither a version nor a namespace in the hub, the others no namespace.
const (
	configRef           = "configRef"
	controlPlaneRef     = "controlPlaneRef"
	infrastructureRef   = "infrastructureRef"
	templateRef         = "templateRef"
	remediationTemplate = "remediationTemplate"
)

// references are the names of fields with references of the spoke.
func references() []string {
	return []string{configRef, controlPlaneRef, infrastructureRef, "ref", remediationTemplate}
}

// referenceUp removes the version, the namespace and everything else that contracts do not need from a reference.
func referenceUp(reference object) {
	if reference == nil {
		return
	}
	apiVersion, _ := reference["apiVersion"].(string)
	kind, name := reference["kind"], reference["name"]
	clear(reference)
	reference["kind"], reference["name"] = kind, name
	if version, err := schema.ParseGroupVersion(apiVersion); err == nil && version.Group != "" {
		reference["apiGroup"] = version.Group
	}
}

// referenceDown adds the version and the namespace to a reference.
func referenceDown(reference object, namespace any, version lossless.VersionOf) {
	if len(reference) == 0 {
		return
	}
	group, _ := reference["apiGroup"].(string)
	kind, _ := reference["kind"].(string)
	delete(reference, "apiGroup")
	if group != "" {
		reference["apiVersion"] = schema.GroupVersion{Group: group, Version: version(schema.GroupKind{Group: group, Kind: kind})}.String()
	}
	qualify(reference, namespace)
}

// templateUp keeps what a reference of the hub to a template has.
func templateUp(reference object) {
	if reference == nil {
		return
	}
	apiVersion, kind, name := reference["apiVersion"], reference["kind"], reference["name"]
	clear(reference)
	reference["apiVersion"], reference["kind"], reference["name"] = apiVersion, kind, name
}

// namespaceOf returns the namespace of an object, or nil.
func namespaceOf(o object) any {
	if namespace, ok := lossless.At(o, "metadata")["namespace"].(string); ok && namespace != "" {
		return namespace
	}
	return nil
}

// qualify sets the namespace of a reference that has none and is not empty.
func qualify(reference object, namespace any) {
	if len(reference) == 0 || namespace == nil || reference["namespace"] != nil && reference["namespace"] != "" {
		return
	}
	for _, name := range []string{"apiVersion", "kind", "name"} {
		if value := reference[name]; value != nil && value != "" {
			reference["namespace"] = namespace
			return
		}
	}
}

// fillNamespaces sets the namespaces of the references in the spec of an object of the spoke, which are that of the object.
func fillNamespaces(o object) { fillNamespacesIn(lossless.At(o, "spec"), namespaceOf(o)) }

func fillNamespacesIn(part object, namespace any) {
	for _, name := range references() {
		qualify(lossless.At(part, name), namespace)
	}
	for name, value := range part {
		if name == "metadata" || name == "variables" || name == "patches" {
			continue // They have what clients define.
		}
		switch typed := value.(type) {
		case object:
			fillNamespacesIn(typed, namespace)
		case []any:
			for _, item := range typed {
				if nested, ok := item.(object); ok {
					fillNamespacesIn(nested, namespace)
				}
			}
		}
	}
}
