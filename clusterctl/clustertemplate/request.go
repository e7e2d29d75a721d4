// Package clustertemplate makes the YAML of a workload cluster from a template: it finds the template, gives values to
// its variables, puts the objects into a namespace and adds the ClusterClass they need.
//
// Nothing is written to a cluster; one is only read where the user left a choice to it.
package clustertemplate

import (
	"fmt"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"

	"sigs.k8s.io/cluster-api/clusterctl/config"
	"sigs.k8s.io/cluster-api/internal/distribution"
)

// The variables that have flags of their own.
const (
	NamespaceVariable            = "NAMESPACE"
	ClusterNameVariable          = "CLUSTER_NAME"
	KubernetesVersionVariable    = "KUBERNETES_VERSION"
	ControlPlaneMachinesVariable = "CONTROL_PLANE_MACHINE_COUNT"
	WorkerMachinesVariable       = "WORKER_MACHINE_COUNT"
)

// DefaultConfigMapKey is the key of a ConfigMap that holds a template unless another is named.
const DefaultConfigMapKey = "template"

// Request is what a user asks for.
type Request struct {
	ClusterName string
	// TargetNamespace is empty for the kubeconfig's current namespace.
	TargetNamespace string
	// KubernetesVersion and the machine counts are left to variables, then to defaults, when they are empty or nil.
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
	// Location is a https URL, a path, or "-" for standard input.
	Location string
	// ConfigMap is a name; the other two are empty for the current namespace and DefaultConfigMapKey.
	ConfigMap, ConfigMapNamespace, ConfigMapKey string
}

// Validate refuses contradictions.
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
		return fmt.Errorf("--from-config-map-namespace and --from-config-map-key need --from-config-map")
	}
	if len(given) > 1 {
		return fmt.Errorf("%s name different sources of a template: use one of them", strings.Join(given, " and "))
	}
	return nil
}

// variables returns the values of the common variables. c gives those that have no flag.
func (r Request) variables(c *config.Config, namespace string) (map[string]string, error) {
	if msgs := validation.IsDNS1123Subdomain(r.ClusterName); len(msgs) > 0 {
		return nil, fmt.Errorf("cluster name %q is not valid: %s", r.ClusterName, strings.Join(msgs, "; "))
	}
	if msgs := validation.IsDNS1123Label(namespace); len(msgs) > 0 {
		return nil, fmt.Errorf("target namespace %q is not valid: %s", namespace, strings.Join(msgs, "; "))
	}
	values := map[string]string{ClusterNameVariable: r.ClusterName, NamespaceVariable: namespace}
	if version := valueOf(r.KubernetesVersion, c, KubernetesVersionVariable); version != "" {
		if _, err := distribution.ParseVersion(version); err != nil {
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
			return nil, fmt.Errorf("%s (variable %s) is %q: it must be a whole number, at least %d", count.flag, count.variable, text, count.minimum)
		}
		values[count.variable] = text
	}
	return values, nil
}

// valueOf returns what a flag says, otherwise the variable's value.
func valueOf(flag string, c *config.Config, variable string) string {
	if flag != "" {
		return flag
	}
	value, _ := c.Variable(variable)
	return value
}
