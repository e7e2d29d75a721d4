package statemetrics

import (
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/yaml"
)

const header = `# Configuration of kube-state-metrics for the kinds of Cluster API: --custom-resource-state-config-file.
# It is written by "make generate" from the definitions and hack/statemetrics/own.go.
`

// Write writes the configurations of a repository, and returns the paths of the files that have changed.
func Write(root string) (changed []string, err error) {
	for file, version := range Files() {
		config, err := New(root, version)
		if err != nil {
			return nil, err
		}
		text, err := yaml.Marshal(config)
		if err != nil {
			return nil, err
		}
		path := filepath.Join(root, file)
		text = append([]byte(header), text...)
		if before, err := os.ReadFile(path); err == nil && string(before) == string(text) {
			continue
		}
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return nil, err
		}
		if err := os.WriteFile(path, text, 0o600); err != nil {
			return nil, err
		}
		changed = append(changed, path)
	}
	return changed, nil
}

// New returns the configuration for all kinds of the components of a repository, in a version of the API.
func New(root, version string) (Config, error) {
	definitions, err := Definitions(root)
	if err != nil {
		return Config{}, err
	}
	c := Config{Kind: "CustomResourceStateMetrics"}
	all := owns()
	for _, d := range definitions {
		c.Spec.Resources = append(c.Spec.Resources, resource(d, VersionOf(d, version), all[d.Spec.Names.Kind]))
	}
	return c, nil
}

// Definitions returns the CRDs of the released components, sorted by kind.
func Definitions(root string) ([]*apiextensionsv1.CustomResourceDefinition, error) {
	components, err := filepath.Glob(filepath.Join(root, "providers", "*", "config", "component.yaml"))
	if err != nil {
		return nil, err
	}
	var out []*apiextensionsv1.CustomResourceDefinition
	for _, component := range components {
		files, err := filepath.Glob(filepath.Join(filepath.Dir(component), "crd", "*.yaml"))
		if err != nil {
			return nil, err
		}
		for _, file := range files {
			raw, err := os.ReadFile(file)
			if err != nil {
				return nil, err
			}
			d := &apiextensionsv1.CustomResourceDefinition{}
			if err := yaml.Unmarshal(raw, d); err != nil {
				return nil, fmt.Errorf("%s: %w", file, err)
			}
			out = append(out, d)
		}
	}
	slices.SortFunc(out, func(a, b *apiextensionsv1.CustomResourceDefinition) int {
		return cmp.Compare(a.Spec.Names.Kind, b.Spec.Names.Kind)
	})
	return out, nil
}

func resource(d *apiextensionsv1.CustomResourceDefinition, version apiextensionsv1.CustomResourceDefinitionVersion, own own) Resource {
	kind := d.Spec.Names.Kind
	if version.Name == newer {
		own = inNewer(own)
	}
	labels := map[string][]string{"name": at("metadata.name"), "namespace": at("metadata.namespace"), "uid": at("metadata.uid")}
	if d.Spec.Scope == apiextensionsv1.ClusterScoped {
		delete(labels, "namespace")
	}
	if path := clusterName(kind, version); path != nil {
		labels["cluster_name"] = path
	}
	r := Resource{
		GroupVersionKind: GroupVersionKind{Group: d.Spec.Group, Version: version.Name, Kind: kind},
		MetricNamePrefix: "capi_" + strings.ToLower(kind), ResourcePlural: d.Spec.Names.Plural, LabelsFromPath: labels,
		// An Info without labels would not be exported.
		Metrics: []Metric{
			{Name: "info", Help: "Information about the object.", Each: Each{Type: "Info", Info: &Info{
				LabelsFromPath: join(map[string][]string{"name": at("metadata.name")}, own.info),
			}}},
			number("created", "Creation time, in seconds since 1970.", "metadata.creationTimestamp"),
			{Name: "annotation_paused", Help: "Present if the object is paused by its annotation.", Each: Each{Type: "Info", Info: &Info{
				Path: []string{"metadata", "annotations", "cluster.x-k8s.io/paused"}, LabelsFromPath: map[string][]string{"paused_value": {}},
			}}},
		},
	}
	if kind != "Cluster" {
		r.Metrics = append(r.Metrics, owner())
	}
	r.Metrics = append(r.Metrics, own.metrics...)
	if schema := version.Schema.OpenAPIV3Schema.Properties["status"]; schema.Properties["conditions"].Type != "" {
		r.Metrics = append(r.Metrics, conditions()...)
	}
	return r
}

// clusterName returns the path of the Cluster's name in objects of a kind, or nil.
func clusterName(kind string, version apiextensionsv1.CustomResourceDefinitionVersion) []string {
	without := []string{"Cluster", "ClusterClass", "ExtensionConfig", "ClusterResourceSet", "MachineDrainRule"}
	if slices.Contains(without, kind) || strings.HasSuffix(kind, "Template") {
		return nil
	}
	// Claims have the label; consumers may set the field, too.
	if _, has := version.Schema.OpenAPIV3Schema.Properties["spec"].Properties["clusterName"]; has && kind != "IPAddressClaim" {
		return at("spec.clusterName")
	}
	if kind == "KubeadmControlPlane" {
		return []string{"metadata", "ownerReferences", "[kind=Cluster]", "name"}
	}
	return []string{"metadata", "labels", "cluster.x-k8s.io/cluster-name"}
}

func owner() Metric {
	return Metric{Name: "owner", Help: "Owner references.", Each: Each{Type: "Info", Info: &Info{
		Path: at("metadata.ownerReferences"),
		LabelsFromPath: map[string][]string{
			"owner_kind": {"kind"}, "owner_name": {"name"}, "owner_uid": {"uid"}, "owner_is_controller": {"controller"},
		},
	}}}
}

func conditions() []Metric {
	return []Metric{
		{Name: "status_condition", Help: "Conditions.", Each: Each{Type: "StateSet", StateSet: &StateSet{
			Path: at("status.conditions"), LabelsFromPath: map[string][]string{"type": {"type"}}, ValueFrom: at("status"),
			LabelName: "status", List: []string{"True", "False", "Unknown"},
		}}},
		{Name: "status_condition_last_transition_time", Help: "Last transition time of conditions, in seconds since 1970.", Each: Each{
			Type: "Gauge", Gauge: &Gauge{
				Path: at("status.conditions"), ValueFrom: at("lastTransitionTime"),
				LabelsFromPath: map[string][]string{"type": {"type"}, "status": {"status"}},
			},
		}},
	}
}
