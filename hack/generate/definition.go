package generate

import (
	"fmt"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"
)

// contractLabel is the prefix of labels on a CustomResourceDefinition, followed by a contract, such as v1beta1. The value lists the
// versions, joined by underscores, that implement it. The core provider uses them to determine the version of a reference.
const contractLabel = "cluster.x-k8s.io/"

// component is where the definitions of a group belong.
type component struct {
	// group and version of the kinds; every version when empty.
	group, version string
	// dir of the definitions, below the repository root.
	dir string
	// implements are the versions that implement contracts, by contract. Definitions without such a version do not implement it.
	implements map[string]string
}

// components lists every API group; of a group with several components, those with a version first. Core's own kinds have no
// contract label, because core does not look them up by contract.
func components() []component {
	const (
		infrastructure = "infrastructure.cluster.x-k8s.io"
		ipam           = "ipam.cluster.x-k8s.io"
	)
	both := map[string]string{"v1beta1": "v1beta1", "v1beta2": "v1beta2"}
	return []component{
		{group: "cluster.x-k8s.io", dir: "providers/core/config/crd"},
		{group: "addons.cluster.x-k8s.io", dir: "providers/core/config/crd"},
		{group: ipam, version: "v1alpha2", dir: "providers/ipam-in-cluster/config/crd", implements: map[string]string{"v1beta1": "v1alpha2"}},
		{group: ipam, dir: "providers/core/config/crd"},
		{group: "runtime.cluster.x-k8s.io", dir: "providers/core/config/crd"},
		{group: "bootstrap.cluster.x-k8s.io", dir: "providers/bootstrap-kubeadm/config/crd", implements: both},
		{group: "controlplane.cluster.x-k8s.io", dir: "providers/control-plane-kubeadm/config/crd", implements: both},
		{
			group: infrastructure, version: "v1alpha1", dir: "providers/infrastructure-in-memory/config/crd",
			implements: map[string]string{"v1beta1": "v1alpha1"},
		},
		{group: infrastructure, dir: "providers/infrastructure-docker/config/crd", implements: both},
		{group: "clusterctl.cluster.x-k8s.io", dir: "packages/inventory/crd"},
		{group: "operator.cluster.x-k8s.io", dir: "providers/operator/config/crd"},
		{group: "fleet.cluster.x-k8s.io", dir: "providers/fleet/config/crd"},
	}
}

// componentOf finds the component to which a definition belongs.
func componentOf(d *apiextensionsv1.CustomResourceDefinition) (component, error) {
	for _, c := range components() {
		if c.group != d.Spec.Group {
			continue
		}
		if c.version == "" || hasVersion(d, c.version) {
			return c, nil
		}
	}
	return component{}, fmt.Errorf("no component owns group %q: add it to the list of components", d.Spec.Group)
}

// implementing returns the version of a definition that implements a contract; empty if there is none. Kinds that are newer than v1beta1
// implement its contract, too: their only version has the fields of both.
func (c component) implementing(d *apiextensionsv1.CustomResourceDefinition, contract string) string {
	for _, version := range []string{c.implements[contract], c.implements[hubVersion]} {
		if hasVersion(d, version) {
			return version
		}
	}
	return ""
}

// isFileFormat reports whether a kind is a file format, which API servers do not serve.
func isFileFormat(d *apiextensionsv1.CustomResourceDefinition) bool {
	return d.Spec.Group == "clusterctl.cluster.x-k8s.io" && d.Spec.Names.Kind == "Metadata"
}

// definition is a finished CustomResourceDefinition.
type definition struct {
	kind    string
	dir     string
	content []byte
}

// definitionOf completes a raw definition: it chooses versions, sets the labels of contracts and corrects the schemas. It returns nil
// for kinds that are not served.
func definitionOf(raw []byte) (*definition, error) {
	d := &apiextensionsv1.CustomResourceDefinition{}
	if err := yaml.Unmarshal(raw, d); err != nil {
		return nil, fmt.Errorf("read the generator's output: %w", err)
	}
	if chooseVersions(d); isFileFormat(d) || len(d.Spec.Versions) == 0 {
		return nil, nil
	}
	c, err := componentOf(d)
	if err != nil {
		return nil, err
	}
	d.Annotations = nil
	for contract := range c.implements {
		if version := c.implementing(d, contract); version != "" {
			metav1.SetMetaDataLabel(&d.ObjectMeta, contractLabel+contract, version)
		}
	}
	for i := range d.Spec.Versions {
		v := &d.Spec.Versions[i]
		if v.Schema != nil && v.Schema.OpenAPIV3Schema != nil {
			dropEmptyDefaults(v.Schema.OpenAPIV3Schema)
		}
	}
	addUnservedVersions(d)
	addAlikeVersions(d)
	content, err := marshal(d)
	if err != nil {
		return nil, err
	}
	return &definition{kind: d.Spec.Names.Kind, dir: c.dir, content: content}, nil
}

// dropEmptyDefaults removes defaults of the empty string. They come from references of the Kubernetes API, which default
// the name; storing an empty name would add a field that was not set.
func dropEmptyDefaults(s *apiextensionsv1.JSONSchemaProps) {
	eachSchema(s, func(s *apiextensionsv1.JSONSchemaProps) {
		if s.Default != nil && string(s.Default.Raw) == `""` {
			s.Default = nil
		}
	})
}

// eachSchema visits a schema and all schemas in it.
func eachSchema(s *apiextensionsv1.JSONSchemaProps, visit func(*apiextensionsv1.JSONSchemaProps)) {
	visit(s)
	for name, property := range s.Properties {
		eachSchema(&property, visit)
		s.Properties[name] = property
	}
	if s.Items != nil && s.Items.Schema != nil {
		eachSchema(s.Items.Schema, visit)
	}
	if s.AdditionalProperties != nil && s.AdditionalProperties.Schema != nil {
		eachSchema(s.AdditionalProperties.Schema, visit)
	}
}

// marshal writes a definition without the fields that only an API server sets.
func marshal(d *apiextensionsv1.CustomResourceDefinition) ([]byte, error) {
	content, err := yaml.Marshal(d)
	if err != nil {
		return nil, fmt.Errorf("write definition: %w", err)
	}
	tree := map[string]any{}
	if err := yaml.Unmarshal(content, &tree); err != nil {
		return nil, fmt.Errorf("read definition back: %w", err)
	}
	delete(tree, "status")
	if metadata, ok := tree["metadata"].(map[string]any); ok {
		delete(metadata, "creationTimestamp")
	}
	content, err = yaml.Marshal(tree)
	if err != nil {
		return nil, fmt.Errorf("write definition: %w", err)
	}
	return append([]byte("---\n"), content...), nil
}
