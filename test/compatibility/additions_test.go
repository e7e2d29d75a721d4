package compatibility

import (
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// loosened returns fields that v1.14 requires or limits less than v1.7, and why. Ours are as in v1.14.
func loosened() map[kindKey]map[string]string {
	const endpoint = "the host may be known before the port, and the other way round"
	const combined = "schemas that are combined with others, or are int-or-string, have no type"
	const machines = "a health check may have conditions of Machines only"
	const generated = "the controller generates a token if there is none"
	const unlabeled = "file systems without a label exist"
	const docker, bootstrap, controlPlane = "infrastructure.cluster.x-k8s.io/v1beta1", "bootstrap.cluster.x-k8s.io/v1beta1", "controlplane.cluster.x-k8s.io/v1beta1"
	const token, label = "joinConfiguration.discovery.bootstrapToken.token", "diskSetup.filesystems[].label"
	return map[kindKey]map[string]string{
		{"KubeadmConfig", bootstrap}:         {"spec." + token: generated, "spec." + label: unlabeled},
		{"KubeadmConfigTemplate", bootstrap}: {"spec.template.spec." + token: generated, "spec.template.spec." + label: unlabeled},
		{"KubeadmControlPlane", controlPlane}: {
			"spec.kubeadmConfigSpec." + token: generated, "spec.kubeadmConfigSpec." + label: unlabeled,
		},
		{"KubeadmControlPlaneTemplate", controlPlane}: {
			"spec.template.spec.kubeadmConfigSpec." + token: generated, "spec.template.spec.kubeadmConfigSpec." + label: unlabeled,
		},
		{"Cluster", "cluster.x-k8s.io/v1beta1"}: {"spec.controlPlaneEndpoint.host": endpoint, "spec.controlPlaneEndpoint.port": endpoint},
		{"ClusterClass", "cluster.x-k8s.io/v1beta1"}: {
			"spec.variables[].schema.openAPIV3Schema.type":                 combined,
			"status.variables[].definitions[].schema.openAPIV3Schema.type": combined,
		},
		{"MachineHealthCheck", "cluster.x-k8s.io/v1beta1"}: {"spec.unhealthyConditions": machines},
		{"DockerCluster", docker}:                          {"spec.controlPlaneEndpoint.host": endpoint, "spec.controlPlaneEndpoint.port": endpoint},
		{"DockerClusterTemplate", docker}: {
			"spec.template.spec.controlPlaneEndpoint.host": endpoint, "spec.template.spec.controlPlaneEndpoint.port": endpoint,
		},
	}
}

// removed returns fields that v1.14 removed from a version that it still serves, and why we have them.
func removed() map[kindKey]map[string]string {
	const restarted = "objects of v1.7 have it; without it, the bootstrap data would run again"
	const docker = "infrastructure.cluster.x-k8s.io/v1beta1"
	return map[kindKey]map[string]string{
		{"DockerMachine", docker}:         {"spec.bootstrapped": restarted},
		{"DockerMachineTemplate", docker}: {"spec.template.spec.bootstrapped": restarted},
	}
}

// backported returns fields, with all fields below them, that patch releases of v1.7 have, too, without the limits of v1.14. The
// reference of v1.7 is v1.7.0.
func backported() map[kindKey][]string {
	const kubeconfig = "joinConfiguration.discovery.file.kubeConfig"
	return map[kindKey][]string{
		{"Cluster", "cluster.x-k8s.io/v1beta1"}: {
			"spec.topology.controlPlane.variables", "spec.topology.workers.machineDeployments[].strategy.remediation",
		},
		{"ClusterClass", "cluster.x-k8s.io/v1beta1"}:                             {"spec.workers.machineDeployments[].strategy.remediation"},
		{"MachineDeployment", "cluster.x-k8s.io/v1beta1"}:                        {"spec.strategy.remediation"},
		{"KubeadmConfig", "bootstrap.cluster.x-k8s.io/v1beta1"}:                  {"spec." + kubeconfig},
		{"KubeadmConfigTemplate", "bootstrap.cluster.x-k8s.io/v1beta1"}:          {"spec.template.spec." + kubeconfig},
		{"KubeadmControlPlane", "controlplane.cluster.x-k8s.io/v1beta1"}:         {"spec.kubeadmConfigSpec." + kubeconfig},
		{"KubeadmControlPlaneTemplate", "controlplane.cluster.x-k8s.io/v1beta1"}: {"spec.template.spec.kubeadmConfigSpec." + kubeconfig},
	}
}

// limits returns the keywords with which v1.14 limits fields that v1.7 has without limits. Ours are as in v1.7: objects that either
// accepts are valid. Lists stay atomic, so that server-side apply has the result it had.
func limits() []string {
	return []string{
		"minLength", "maxLength", "minItems", "maxItems", "enum", "x-kubernetes-list-type", "x-kubernetes-list-map-keys",
	}
}

// replacedRules returns ends of paths whose CEL rules in v1.14 are checked differently, with what the schema has, and why.
func replacedRules() map[string]replacedRule {
	const cost = "the API server rejects the rule, because the lists around it have no limits here"
	return map[string]replacedRule{
		"unhealthyMachineConditions[].type": {reason: cost + "; admission checks it"},
		"diskLayout[].partitionType": {
			pattern: "^(Linux|LinuxSwap|LinuxRAID|LVM|Fat32|NTFS|LinuxExtended|[0-9A-Fa-f]{8}(-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12})$",
			reason:  cost + "; a pattern has the same result",
		},
	}
}

// replacedRule is what the schema has in place of a rule.
type replacedRule struct{ pattern, reason string }

// supersets returns the fields that our CRDs must have, by version: those of v1.7 with their limits, and those that v1.14 added with
// its limits. It reports every other difference between the two that is in no table.
func supersets(t *testing.T) map[kindKey]map[string]field {
	t.Helper()
	older := fieldsOf(t, readDefinitions(t, filepath.Join(facts(t, "crds-v1.7"), "*", "*.yaml")))
	newer := fieldsOf(t, readDefinitions(t, filepath.Join(facts(t, "crds-v1.14"), "*", "*.yaml")))
	all := map[kindKey]map[string]field{}
	for key, fields := range older {
		all[key] = fields
		if _, ok := notServed()[key]; ok {
			continue
		}
		if later, ok := newer[key]; ok {
			all[key] = superset(t, key, fields, later)
		}
	}
	for key, fields := range newer {
		if _, ok := older[key]; ok {
			continue
		}
		all[key] = fields
	}
	return all
}

// superset returns the fields of one version.
func superset(t *testing.T, key kindKey, older, newer map[string]field) map[string]field {
	t.Helper()
	for path := range loosened()[key] {
		if _, ok := older[path]; !ok {
			t.Errorf("%s: %s is listed in loosened, but not in v1.7", key, path)
		}
	}
	fields := map[string]field{}
	for path, was := range older {
		is, ok := newer[path]
		if _, gone := removed()[key][path]; ok == gone {
			t.Errorf("%s: %s is in v1.14: %t, listed in removed: %t", key, path, ok, gone)
		}
		fields[path] = was
		if !ok {
			continue
		}
		looser := was.Required && !is.Required
		for keyword, value := range was.Constraints {
			if now, kept := is.Constraints[keyword]; !kept {
				looser = true
			} else if now != value {
				t.Errorf("%s: %s of %s is %s in v1.7, and %s in v1.14", key, keyword, path, value, now)
			}
		}
		if _, listed := loosened()[key][path]; looser != listed {
			t.Errorf("%s: v1.14 requires or limits %s less: %t, listed in loosened: %t", key, path, looser, listed)
		} else if listed {
			fields[path] = withoutLimits(is)
		}
		if is.Type != was.Type || is.Default != was.Default || is.Required && !was.Required {
			t.Errorf("%s: %s is %v in v1.7, and %v in v1.14", key, path, was, is)
		}
		for keyword := range is.Constraints {
			if _, had := was.Constraints[keyword]; !had && !slices.Contains(limits(), keyword) {
				t.Errorf("%s: v1.14 limits %s by %s, which is in no table", key, path, keyword)
			}
		}
	}
	for path, is := range newer {
		if _, ok := older[path]; ok {
			continue
		}
		fields[path] = withoutRule(path, is)
		for _, above := range backported()[key] {
			if isBelow(path, above) {
				fields[path] = withoutLimits(is)
			}
		}
	}
	return fields
}

// withoutRule returns a field with what replaces its rule.
func withoutRule(path string, f field) field {
	for end, replaced := range replacedRules() {
		if !strings.HasSuffix(path, end) {
			continue
		}
		f.Constraints = maps.Clone(f.Constraints)
		delete(f.Constraints, "x-kubernetes-validations")
		if replaced.pattern != "" {
			f.Constraints["pattern"] = replaced.pattern
		}
	}
	return f
}

// withoutLimits returns a field without the keywords that v1.14 added.
func withoutLimits(f field) field {
	f.Constraints = maps.Clone(f.Constraints)
	maps.DeleteFunc(f.Constraints, func(keyword, _ string) bool { return slices.Contains(limits(), keyword) })
	if len(f.Constraints) == 0 {
		f.Constraints = nil
	}
	return f
}

// isOurKind reports whether a kind is of no published API that is compared here.
func isOurKind(key kindKey) bool {
	group, _, _ := strings.Cut(key.GroupVersion, "/")
	return group == "operator.cluster.x-k8s.io" || group == "fleet.cluster.x-k8s.io" ||
		strings.HasPrefix(key.GroupVersion, "ipam.cluster.x-k8s.io/v1alpha2") ||
		strings.HasPrefix(key.Kind, "InMemoryMachinePool")
}
