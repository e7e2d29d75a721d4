// Package statemetrics writes the kube-state-metrics configuration for the product's objects:
// release/files/crd-metrics-config.yaml.
//
// Metrics common to all kinds derive from their definitions (kinds.go), so that new kinds are covered; those of specific
// kinds are in a table (own.go). Metrics of the managers themselves do not belong here.
package statemetrics

// Config is a configuration of kube-state-metrics for custom resources.
type Config struct {
	// Kind is always CustomResourceStateMetrics.
	Kind string `json:"kind"`
	Spec Spec   `json:"spec"`
}

// Spec lists the kinds.
type Spec struct {
	Resources []Resource `json:"resources"`
}

// Resource has the metrics of a kind.
type Resource struct {
	GroupVersionKind GroupVersionKind `json:"groupVersionKind"`
	// MetricNamePrefix comes before the names of all metrics, with an underscore.
	MetricNamePrefix string `json:"metricNamePrefix"`
	// ResourcePlural is the name of the resource.
	ResourcePlural string `json:"resourcePlural"`
	// LabelsFromPath are labels that all metrics have.
	LabelsFromPath map[string][]string `json:"labelsFromPath"`
	Metrics        []Metric            `json:"metrics"`
}

// GroupVersionKind identifies a kind.
type GroupVersionKind struct {
	Group   string `json:"group"`
	Version string `json:"version"`
	Kind    string `json:"kind"`
}

// Metric is a metric family.
type Metric struct {
	Name string `json:"name"`
	Help string `json:"help"`
	Each Each   `json:"each"`
}

// Each is the definition of a metric. The field named by Type is set.
type Each struct {
	Type     string    `json:"type"`
	Gauge    *Gauge    `json:"gauge,omitempty"`
	Info     *Info     `json:"info,omitempty"`
	StateSet *StateSet `json:"stateSet,omitempty"`
}

// Gauge is a number. If Path is a list, there is one per item, at ValueFrom.
type Gauge struct {
	Path           []string            `json:"path,omitempty"`
	LabelsFromPath map[string][]string `json:"labelsFromPath,omitempty"`
	ValueFrom      []string            `json:"valueFrom,omitempty"`
	NilIsZero      bool                `json:"nilIsZero,omitempty"`
}

// Info is always 1, with labels.
type Info struct {
	Path           []string            `json:"path,omitempty"`
	LabelsFromPath map[string][]string `json:"labelsFromPath,omitempty"`
}

// StateSet is 1 for the value that a field has and 0 for all others in List.
type StateSet struct {
	Path           []string            `json:"path,omitempty"`
	LabelsFromPath map[string][]string `json:"labelsFromPath,omitempty"`
	ValueFrom      []string            `json:"valueFrom,omitempty"`
	LabelName      string              `json:"labelName"`
	List           []string            `json:"list"`
}
