// Package clustertemplate generates the YAML of a workload cluster from a template: it finds the template, replaces its
// variables, sets the namespace of the objects, and adds the required ClusterClass.
//
// It does not write to clusters, and reads the management cluster only for what the request leaves open.
package clustertemplate

import (
	"fmt"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"

	"sigs.k8s.io/cluster-api/packages"
	"sigs.k8s.io/cluster-api/packages/config"
)

// Variables that can be set with flags.
const (
	NamespaceVariable            = "NAMESPACE"
	ClusterNameVariable          = "CLUSTER_NAME"
	KubernetesVersionVariable    = "KUBERNETES_VERSION"
	ControlPlaneMachinesVariable = "CONTROL_PLANE_MACHINE_COUNT"
	WorkerMachinesVariable       = "WORKER_MACHINE_COUNT"
)

// DefaultConfigMapKey is the default key of a template in a ConfigMap.
const DefaultConfigMapKey = "template"

// Request describes the cluster to generate.
type Request struct {
	ClusterName string
	// TargetNamespace is empty for the kubeconfig's current namespace.
	TargetNamespace string
	// KubernetesVersion and the machine counts fall back to variables, then to defaults, if they are empty or nil.
	KubernetesVersion    string
	ControlPlaneMachines *int64
	WorkerMachines       *int64
	Source               Source
}

// Source is where a template comes from. At most one of Infrastructure (with or without Flavor), Location and ConfigMap
// is set; none means the only infrastructure provider of the management cluster.
type Source struct {
	// Infrastructure is name or name:version.
	Infrastructure string
	Flavor         string
	// Location is an https URL, a path, or "-" for standard input.
	Location string
	// ConfigMap is a name; the other two default to the current namespace and DefaultConfigMapKey.
	ConfigMap, ConfigMapNamespace, ConfigMapKey string
}

// Validate rejects contradictory settings.
func (s Source) Validate() error {
	var given []string
	if s.Infrastructure != "" || s.Flavor != "" {
		given = append(given, "--infrastructure/--flavor")
	}
	if s.Location != "" {
		given = append(given, "--from")
	}
	switch {
	case s.ConfigMap != "":
		given = append(given, "--from-config-map")
	case s.ConfigMapNamespace != "" || s.ConfigMapKey != "":
		return fmt.Errorf("--from-config-map-namespace and --from-config-map-key require --from-config-map")
	}
	if len(given) > 1 {
		return fmt.Errorf("%s are mutually exclusive: use one of them", strings.Join(given, " and "))
	}
	return nil
}

// variables returns the values of the common variables. c has the values of those that are not set by flags.
func (r Request) variables(c *config.Config, namespace string) (map[string]string, error) {
	if msgs := validation.IsDNS1123Subdomain(r.ClusterName); len(msgs) > 0 {
		return nil, fmt.Errorf("invalid cluster name %q: %s", r.ClusterName, strings.Join(msgs, "; "))
	}
	if msgs := validation.IsDNS1123Label(namespace); len(msgs) > 0 {
		return nil, fmt.Errorf("invalid target namespace %q: %s", namespace, strings.Join(msgs, "; "))
	}
	values := map[string]string{ClusterNameVariable: r.ClusterName, NamespaceVariable: namespace}
	if version := valueOf(r.KubernetesVersion, c, KubernetesVersionVariable); version != "" {
		if _, err := packages.ParseVersion(version); err != nil {
			return nil, fmt.Errorf("--kubernetes-version (variable %s): %w", KubernetesVersionVariable, err)
		}
		values[KubernetesVersionVariable] = version
	}
	for _, count := range []struct {
		variable, flag    string
		given             *int64
		fallback, minimum int64
	}{
		{ControlPlaneMachinesVariable, "--control-plane-machine-count", r.ControlPlaneMachines, 1, 1},
		{WorkerMachinesVariable, "--worker-machine-count", r.WorkerMachines, 0, 0},
	} {
		text := ""
		if count.given != nil {
			text = strconv.FormatInt(*count.given, 10)
		}
		text = valueOf(text, c, count.variable)
		if text == "" {
			text = strconv.FormatInt(count.fallback, 10)
		}
		if n, err := strconv.ParseInt(text, 10, 32); err != nil || n < count.minimum {
			return nil, fmt.Errorf("%s (variable %s) is %q: it must be an integer, at least %d", count.flag, count.variable, text, count.minimum)
		}
		values[count.variable] = text
	}
	return values, nil
}

// valueOf returns the flag's value, or the variable's if the flag is not set.
func valueOf(flag string, c *config.Config, variable string) string {
	if flag != "" {
		return flag
	}
	value, _ := c.Variable(variable)
	return value
}
