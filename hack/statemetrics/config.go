// Package statemetrics writes the configuration by which kube-state-metrics makes metrics of the product's objects:
// config/metrics/crd-metrics-config.yaml.
//
// What all kinds have in common follows from their definitions (kinds.go), so that a new kind is not forgotten; what is
// special about a kind is a table (own.go). Metrics of the managers themselves do not belong here.
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

// GroupVersionKind names a kind.
type GroupVersionKind struct {
	Group   string `json:"group"`
	Version string `json:"version"`
	Kind    string `json:"kind"`
}

// Metric is one family of metrics.
type Metric struct {
	Name string `json:"name"`
	Help string `json:"help"`
	Each Each   `json:"each"`
}

// Each says how a metric is made. One of its fields is set, the one that Type names.
type Each struct {
	Type     string    `json:"type"`
	Gauge    *Gauge    `json:"gauge,omitempty"`
	Info     *Info     `json:"info,omitempty"`
	StateSet *StateSet `json:"stateSet,omitempty"`
}

// Gauge is a number. Where Path leads to a list, every item is one, at ValueFrom in it.
type Gauge struct {
	Path           []string            `json:"path,omitempty"`
	LabelsFromPath map[string][]string `json:"labelsFromPath,omitempty"`
	ValueFrom      []string            `json:"valueFrom,omitempty"`
	NilIsZero      bool                `json:"nilIsZero,omitempty"`
}

// Info is always 1: it is there for its labels.
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
