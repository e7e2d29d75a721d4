package statemetrics

import (
	"maps"
	"slices"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
)

// older and newer are the versions of which there is a configuration. Kinds that do not have a version are read in the one that they store.
const older, newer = "v1beta1", "v1beta2"

// Files returns the paths of the configurations below the root of the repository, and the version of the API that each reads. Names of
// metrics are the same in all, except for counters that a version does not have.
func Files() map[string]string {
	return map[string]string{
		"release/files/crd-metrics-config.yaml":         newer,
		"release/files/crd-metrics-config-v1beta1.yaml": older,
	}
}

// VersionOf returns a version of a definition, or the one that it stores if there is no such version.
func VersionOf(d *apiextensionsv1.CustomResourceDefinition, name string) apiextensionsv1.CustomResourceDefinitionVersion {
	for _, is := range []func(apiextensionsv1.CustomResourceDefinitionVersion) bool{
		func(v apiextensionsv1.CustomResourceDefinitionVersion) bool { return v.Name == name && v.Served },
		func(v apiextensionsv1.CustomResourceDefinitionVersion) bool { return v.Storage },
	} {
		if i := slices.IndexFunc(d.Spec.Versions, is); i >= 0 {
			return d.Spec.Versions[i]
		}
	}
	return apiextensionsv1.CustomResourceDefinitionVersion{} // Every definition stores one.
}

// moved are the fields that have another path in v1beta2. Without a path, they do not exist.
func moved() map[string]string {
	return map[string]string{
		"spec.topology.class":                         "spec.topology.classRef.name",
		"spec.rolloutStrategy.rollingUpdate.maxSurge": "spec.rollout.strategy.rollingUpdate.maxSurge",
		"spec.strategy.rollingUpdate.maxSurge":        "spec.rollout.strategy.rollingUpdate.maxSurge",
		"spec.strategy.rollingUpdate.maxUnavailable":  "spec.rollout.strategy.rollingUpdate.maxUnavailable",
		"status.unavailableReplicas":                  "status.deprecated.v1beta1.unavailableReplicas",
		"status.updatedReplicas":                      "status.deprecated.v1beta1.updatedReplicas",
		"status.fullyLabeledReplicas":                 "status.deprecated.v1beta1.fullyLabeledReplicas",
		"status.nodeRef.uid":                          "",
	}
}

// inNewer returns the labels and metrics of a kind for v1beta2.
func inNewer(o own) own {
	o.info = labelsInNewer(o.info)
	metrics := slices.Clone(o.metrics)
	for i := range metrics {
		switch e := &metrics[i].Each; {
		case e.Gauge != nil:
			gauge := *e.Gauge
			gauge.Path, _ = pathInNewer(gauge.Path)
			e.Gauge = &gauge
		case e.Info != nil:
			info := *e.Info
			info.LabelsFromPath = labelsInNewer(info.LabelsFromPath)
			e.Info = &info
		}
	}
	if slices.ContainsFunc(metrics, func(m Metric) bool { return m.Name == "status_replicas_ready" }) {
		metrics = append(metrics, number("status_replicas_uptodate", "Number of Machines that are up to date.", "status.upToDateReplicas"))
	}
	o.metrics = metrics
	return o
}

func labelsInNewer(labels map[string][]string) map[string][]string {
	out := maps.Clone(labels)
	for label, path := range labels {
		if to, exists := pathInNewer(path); exists {
			out[label] = to
		} else {
			delete(out, label)
		}
	}
	return out
}

func pathInNewer(path []string) (to []string, exists bool) {
	switch to, ok := moved()[strings.Join(path, ".")]; {
	case !ok:
		return path, true
	case to == "":
		return nil, false
	default:
		return at(to), true
	}
}
