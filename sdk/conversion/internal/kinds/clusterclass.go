package kinds

import (
	clusterv1beta1 "sigs.k8s.io/cluster-api/api/core/v1beta1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/sdk/conversion/internal/lossless"
)

func clusterClass() *lossless.Kind {
	kind := coreKind(at[clusterv1.ClusterClass](clusterv1.GroupVersion, "ClusterClass"),
		at[clusterv1beta1.ClusterClass](clusterv1beta1.GroupVersion, "ClusterClass"))
	status := status{}
	kind.Up = func(o object) {
		classUp(lossless.At(o, "spec"))
		for _, definition := range lossless.Parts(lossless.At(o, "status"), "variables[]", "definitions[]") {
			lossless.Rename(definition, "metadata", deprecatedMetadata)
		}
		status.up(lossless.At(o, "status"))
	}
	kind.Down = func(o object, _ lossless.VersionOf) {
		classDown(lossless.At(o, "spec"), namespaceOf(o))
		for _, definition := range lossless.Parts(lossless.At(o, "status"), "variables[]", "definitions[]") {
			lossless.Rename(definition, deprecatedMetadata, "metadata")
		}
		status.down(lossless.At(o, "status"))
	}
	return kind
}

// deprecatedMetadata is the field of the metadata of variables, in the hub.
const deprecatedMetadata = "deprecatedV1Beta1Metadata"

// class is where the fields of a class are.
func class() rules {
	return rules{fields: [][2]path{{{"infrastructureNamingStrategy"}, {"infrastructure", "naming"}}}}
}

// workersOfClass is where the fields of a class of workers are that its template has in v1beta1.
func workersOfClass() rules {
	return rules{fields: [][2]path{
		{{"template", "metadata"}, {"metadata"}},
		{{"template", "bootstrap"}, {"bootstrap"}},
		{{"template", "infrastructure"}, {"infrastructure"}},
	}}
}

// external is where the fields of an external patch are.
func external() rules {
	return rules{fields: [][2]path{
		{{"generateExtension"}, {"generatePatchesExtension"}},
		{{"validateExtension"}, {"validateTopologyExtension"}},
	}}
}

// templatesOfClass are the paths of the objects with a reference to a template, in the hub.
func templatesOfClass() []path {
	return []path{
		{"infrastructure"},
		{"controlPlane"},
		{"controlPlane", "machineInfrastructure"},
		{"workers", "machineDeployments[]", "bootstrap"},
		{"workers", "machineDeployments[]", "infrastructure"},
		{"workers", "machinePools[]", "bootstrap"},
		{"workers", "machinePools[]", "infrastructure"},
	}
}

// workersOf returns the classes of workers.
func workersOf(spec object) []object {
	return append(lossless.Parts(spec, "workers", "machineDeployments[]"), lossless.Parts(spec, "workers", "machinePools[]")...)
}

func classUp(spec object) {
	if spec == nil {
		return
	}
	class().up(spec)
	for _, worker := range workersOf(spec) {
		workersOfClass().up(worker)
	}
	for _, group := range groups() {
		for _, part := range lossless.Parts(spec, group...) {
			groupUp(part)
		}
	}
	for _, template := range templatesOfClass() {
		for _, part := range lossless.Parts(spec, template...) {
			lossless.Rename(part, "ref", templateRef)
			templateUp(lossless.At(part, templateRef))
		}
	}
	for _, variable := range lossless.Items(spec, "variables") {
		lossless.Rename(variable, "metadata", deprecatedMetadata)
	}
	for _, patch := range lossless.Parts(spec, "patches[]", "external") {
		external().up(patch)
	}
}

func classDown(spec object, namespace any) {
	if spec == nil {
		return
	}
	for _, template := range templatesOfClass() {
		for _, part := range lossless.Parts(spec, template...) {
			lossless.Rename(part, templateRef, "ref")
			qualify(lossless.At(part, "ref"), namespace)
		}
	}
	for _, group := range groups() {
		for _, part := range lossless.Parts(spec, group...) {
			groupDown(part, namespace)
		}
	}
	for _, worker := range workersOf(spec) {
		workersOfClass().down(worker)
	}
	class().down(spec)
	for _, variable := range lossless.Items(spec, "variables") {
		lossless.Rename(variable, deprecatedMetadata, "metadata")
	}
	for _, patch := range lossless.Parts(spec, "patches[]", "external") {
		external().down(patch)
	}
}
