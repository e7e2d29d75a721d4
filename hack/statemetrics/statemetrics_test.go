package statemetrics

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/yaml"
)

const root = "../.."

// load parses a file of the repository strictly.
func load(t *testing.T, file string) Config {
	t.Helper()
	raw, err := os.ReadFile(filepath.Join(root, file))
	if err != nil {
		t.Fatal(err)
	}
	c := Config{}
	if err := yaml.UnmarshalStrict(raw, &c); err != nil {
		t.Fatal(err)
	}
	if c.Kind != "CustomResourceStateMetrics" {
		t.Errorf("kind is %q", c.Kind)
	}
	return c
}

// documented returns the metrics that existing dashboards and alerts use, as they are scraped.
func documented() map[string][]string {
	const common = "info created annotation_paused status_condition status_condition_last_transition_time"
	with := func(more string) []string { return strings.Fields(common + " owner " + more) }
	return map[string][]string{
		"capi_cluster": strings.Fields(common + " spec_paused status_phase"),
		"capi_kubeadmcontrolplane": with(`spec_replicas spec_strategy_rollingupdate_max_surge status_replicas status_replicas_ready
			status_replicas_unavailable status_replicas_updated`),
		"capi_machine": with("addresses status_certificatesexpirydate status_noderef status_phase"),
		"capi_machinedeployment": with(`spec_paused spec_replicas spec_strategy_rollingupdate_max_surge
			spec_strategy_rollingupdate_max_unavailable status_phase status_replicas status_replicas_available status_replicas_ready
			status_replicas_unavailable status_replicas_updated`),
		"capi_machineset": with("spec_replicas status_replicas status_replicas_available status_replicas_fully_labeled status_replicas_ready"),
		"capi_machinepool": with(`spec_replicas status_replicas status_replicas_ready status_replicas_available
			status_replicas_unavailable status_phase`),
		"capi_machinehealthcheck": with("status_current_healthy status_expected_machines status_remediations_allowed"),
		"capi_clusterclass":       with(""),
		"capi_kubeadmconfig":      with(""),
	}
}

// labels returns the labels of the metrics "info" that existing dashboards use, without the common ones.
func labels() map[string]string {
	return map[string]string{
		"capi_cluster": `topology_version topology_class control_plane_endpoint_host control_plane_endpoint_port
			control_plane_reference_kind control_plane_reference_name infrastructure_reference_kind infrastructure_reference_name`,
		"capi_kubeadmcontrolplane": "version",
		"capi_machine": `container_runtime_version failure_domain kernel_version kubelet_version kube_proxy_version os_image provider_id
			version bootstrap_reference_kind bootstrap_reference_name infrastructure_reference_kind infrastructure_reference_name
			control_plane_name`,
		"capi_machinedeployment": `version bootstrap_reference_kind bootstrap_reference_name infrastructure_reference_kind
			infrastructure_reference_name`,
		"capi_machinepool": `bootstrap_configuration_reference_kind bootstrap_configuration_reference_name
			infrastructure_reference_kind infrastructure_reference_name failure_domain version`,
	}
}

// phasesOf returns the values of the metrics "status_phase" that existing dashboards use.
func phasesOf() map[string]string {
	return map[string]string{
		"capi_cluster":           "Pending Provisioning Provisioned Deleting Failed Unknown",
		"capi_machinedeployment": "ScalingUp ScalingDown Running Failed Unknown",
	}
}

func TestPhases(t *testing.T) {
	found := 0
	for _, r := range load(t, "release/files/crd-metrics-config.yaml").Spec.Resources {
		want, documented := phasesOf()[r.MetricNamePrefix]
		for _, m := range r.Metrics {
			if m.Name == "status_phase" && documented {
				found++
				if got := strings.Join(m.Each.StateSet.List, " "); got != want || m.Each.StateSet.LabelName != "phase" {
					t.Errorf("%s_status_phase has %s %q", r.MetricNamePrefix, m.Each.StateSet.LabelName, got)
				}
			}
		}
	}
	if found != len(phasesOf()) {
		t.Errorf("%d kinds have phases", found)
	}
}

func TestDocumentedMetrics(t *testing.T) {
	for file, version := range Files() {
		t.Run(file, func(t *testing.T) { testDocumented(t, load(t, file), version) })
	}
}

func testDocumented(t *testing.T, config Config, version string) {
	t.Helper()
	found := map[string][]string{}
	info := map[string]map[string][]string{}
	for _, r := range config.Spec.Resources {
		for _, m := range r.Metrics {
			found[r.MetricNamePrefix] = append(found[r.MetricNamePrefix], m.Name)
			if m.Name == "info" {
				info[r.MetricNamePrefix] = m.Each.Info.LabelsFromPath
			}
		}
		for _, label := range []string{"name", "uid"} {
			if r.LabelsFromPath[label] == nil {
				t.Errorf("%s has no label %s", r.MetricNamePrefix, label)
			}
		}
		if has := r.LabelsFromPath["cluster_name"] != nil; documented()[r.MetricNamePrefix] != nil &&
			has != !slices.Contains([]string{"capi_cluster", "capi_clusterclass"}, r.MetricNamePrefix) {
			t.Errorf("%s has a label cluster_name: %t", r.MetricNamePrefix, has)
		}
	}
	for prefix, names := range documented() {
		if version == newer && slices.Contains(names, "status_replicas_ready") {
			names = append(names, "status_replicas_uptodate")
		}
		slices.Sort(names)
		slices.Sort(found[prefix])
		if !slices.Equal(names, found[prefix]) {
			t.Errorf("%s has the metrics\n%q, want\n%q", prefix, found[prefix], names)
		}
		for label := range strings.FieldsSeq(labels()[prefix]) {
			if info[prefix][label] == nil {
				t.Errorf("%s_info has no label %s", prefix, label)
			}
		}
	}
}

// TestEveryKind checks that every kind has metrics, in a served version, and that every path exists in its schema.
func TestEveryKind(t *testing.T) {
	definitions, err := Definitions(root)
	if err != nil {
		t.Fatal(err)
	}
	for file, version := range Files() {
		t.Run(file, func(t *testing.T) { testKinds(t, load(t, file).Spec.Resources, definitions, version) })
	}
}

func testKinds(t *testing.T, resources []Resource, definitions []*apiextensionsv1.CustomResourceDefinition, name string) {
	t.Helper()
	if len(resources) != len(definitions) || len(definitions) < 20 {
		t.Errorf("%d kinds have metrics, %d are defined", len(resources), len(definitions))
	}
	for _, d := range definitions {
		version := VersionOf(d, name)
		want := GroupVersionKind{Group: d.Spec.Group, Version: version.Name, Kind: d.Spec.Names.Kind}
		i := slices.IndexFunc(resources, func(r Resource) bool { return r.GroupVersionKind == want })
		if i < 0 || !version.Served {
			t.Errorf("%+v has no metrics, or is not served (%t)", want, version.Served)
			continue
		}
		if resources[i].ResourcePlural != d.Spec.Names.Plural {
			t.Errorf("the resource of %s is %s", want.Kind, resources[i].ResourcePlural)
		}
		checkPaths(t, resources[i], version.Schema.OpenAPIV3Schema)
	}
}

func checkPaths(t *testing.T, r Resource, schema *apiextensionsv1.JSONSchemaProps) {
	t.Helper()
	check := func(what string, base, path []string) {
		t.Helper()
		if whole := slices.Concat(base, path); !exists(schema, whole) {
			t.Errorf("%s_%s: no field %q", r.MetricNamePrefix, what, whole)
		}
	}
	for label, path := range r.LabelsFromPath {
		check("* "+label, nil, path)
	}
	for _, m := range r.Metrics {
		var path, value []string
		var labels map[string][]string
		switch e := m.Each; {
		case e.Type == "Gauge" && e.Gauge != nil:
			path, value, labels = e.Gauge.Path, e.Gauge.ValueFrom, e.Gauge.LabelsFromPath
		case e.Type == "Info" && e.Info != nil && len(e.Info.LabelsFromPath) > 0:
			path, labels = e.Info.Path, e.Info.LabelsFromPath
		case e.Type == "StateSet" && e.StateSet != nil && e.StateSet.LabelName != "" && len(e.StateSet.List) > 0:
			path, value, labels = e.StateSet.Path, e.StateSet.ValueFrom, e.StateSet.LabelsFromPath
		default:
			t.Errorf("%s_%s is invalid: %+v", r.MetricNamePrefix, m.Name, e)
		}
		if m.Help == "" {
			t.Errorf("%s_%s has no help", r.MetricNamePrefix, m.Name)
		}
		check(m.Name, path, value)
		for label, relative := range labels {
			check(m.Name+" "+label, path, relative)
		}
	}
}

// exists reports whether a path leads to a field. Items of a list are passed through, as kube-state-metrics does.
func exists(schema *apiextensionsv1.JSONSchemaProps, path []string) bool {
	if len(path) == 0 {
		return true
	}
	if path[0] == "metadata" {
		return metadata(path[1:])
	}
	if schema.Type == "array" {
		schema = schema.Items.Schema
	}
	if strings.HasPrefix(path[0], "[") {
		return exists(schema, path[1:])
	}
	next, ok := schema.Properties[path[0]]
	return ok && exists(&next, path[1:])
}

// metadata reports whether a path exists in metadata, which definitions do not have.
func metadata(path []string) bool {
	switch path[0] {
	case "name", "namespace", "uid", "creationTimestamp":
		return len(path) == 1
	case "labels", "annotations":
		return len(path) == 2
	case "ownerReferences":
		rest := slices.DeleteFunc(slices.Clone(path[1:]), func(p string) bool { return strings.HasPrefix(p, "[kind=") })
		return len(rest) == 0 || len(rest) == 1 && slices.Contains([]string{"kind", "name", "uid", "controller"}, rest[0])
	}
	return false
}

func TestPathsThatDoNotExist(t *testing.T) {
	schema := &apiextensionsv1.JSONSchemaProps{Properties: map[string]apiextensionsv1.JSONSchemaProps{
		"status": {Properties: map[string]apiextensionsv1.JSONSchemaProps{"list": {Type: "array", Items: &apiextensionsv1.JSONSchemaPropsOrArray{
			Schema: &apiextensionsv1.JSONSchemaProps{Properties: map[string]apiextensionsv1.JSONSchemaProps{"field": {Type: "string"}}},
		}}}},
	}}
	for path, want := range map[string]bool{
		"status.list": true, "status.list.field": true, "status.list.other": false, "spec": false, "metadata.uid": true, "metadata.other": false,
		"metadata.ownerReferences.kind": true, "metadata.ownerReferences.other": false,
	} {
		if got := exists(schema, at(path)); got != want {
			t.Errorf("%s exists: %t", path, got)
		}
	}
}

// TestUpToDate fails if make generate was not run.
func TestUpToDate(t *testing.T) {
	for file, version := range Files() {
		want, err := New(root, version)
		if err != nil {
			t.Fatal(err)
		}
		text, err := yaml.Marshal(want)
		if err != nil {
			t.Fatal(err)
		}
		raw, err := os.ReadFile(filepath.Join(root, file))
		if err != nil {
			t.Fatal(err)
		}
		if string(raw) != header+string(text) {
			t.Errorf("%s is outdated: run make generate", file)
		}
	}
}
