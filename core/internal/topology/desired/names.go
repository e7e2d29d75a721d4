package desired

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"text/template"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/validation"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta1"
	"sigs.k8s.io/cluster-api/internal/naming"
)

// The naming templates of classes that have none.
const (
	controlPlaneNaming      = "{{ .cluster.name }}-{{ .random }}"
	machineDeploymentNaming = "{{ .cluster.name }}-{{ .machineDeployment.topologyName }}-{{ .random }}"
	machinePoolNaming       = "{{ .cluster.name }}-{{ .machinePool.topologyName }}-{{ .random }}"
)

// What suffixes of names are derived from, besides the UID of the Cluster.
const (
	forInfrastructureCluster = "InfrastructureCluster"
	forControlPlane          = "ControlPlane"
	forMachines              = "Machines"
	forBootstrap             = "Bootstrap"
	forInfrastructure        = "Infrastructure"
)

// InfrastructureClusterName is the name of the Cluster's infrastructure object: the one it has, or a derived one.
func InfrastructureClusterName(cluster *clusterv1.Cluster) string {
	if ref := cluster.Spec.InfrastructureRef; ref != nil {
		return ref.Name
	}
	return naming.WithSuffix(cluster.Name, suffix(cluster, forInfrastructureCluster))
}

// ControlPlaneName is the name of the Cluster's control plane object: the one it has, or the one that the class wants.
func ControlPlaneName(cluster *clusterv1.Cluster, class *clusterv1.ClusterClass) (string, error) {
	if ref := cluster.Spec.ControlPlaneRef; ref != nil {
		return ref.Name, nil
	}
	var strategy *string
	if s := class.Spec.ControlPlane.NamingStrategy; s != nil {
		strategy = s.Template
	}
	return render(strategy, controlPlaneNaming, suffix(cluster, forControlPlane), map[string]any{"cluster": named(cluster.Name)})
}

func named(name string) map[string]any { return map[string]any{"name": name} }

func suffix(cluster *clusterv1.Cluster, parts ...string) string {
	return naming.Suffix(append([]string{string(cluster.UID)}, parts...)...)
}

// naming of the object of workers.
type workersNaming struct {
	kind         string // of the object
	variable     string // its name in templates
	topologyName string
	strategy     *string
	fallback     string
}

// name is a name that no object which is being deleted still has; ok is false if the class leaves no other.
func (w workersNaming) name(cluster *clusterv1.Cluster, leaving func(string) bool) (name string, ok bool, err error) {
	data := map[string]any{"cluster": named(cluster.Name), w.variable: map[string]any{"topologyName": w.topologyName}}
	previous := ""
	for ordinal := 0; ; ordinal++ {
		parts := []string{w.kind, w.topologyName}
		if ordinal > 0 {
			parts = append(parts, strconv.Itoa(ordinal))
		}
		name, err = render(w.strategy, w.fallback, suffix(cluster, parts...), data)
		if err != nil || !leaving(name) {
			return name, err == nil, err
		}
		if name == previous {
			return "", false, nil
		}
		previous = name
	}
}

// render makes a name from a naming template. A name that is too long is cut and gets the suffix.
func render(strategy *string, fallback, suffix string, data map[string]any) (string, error) {
	source := fallback
	if strategy != nil && *strategy != "" {
		source = *strategy
	}
	t, err := template.New("name").Option("missingkey=error").Parse(source)
	if err != nil {
		return "", fmt.Errorf("naming template %q of the class: %w", source, err)
	}
	data["random"] = suffix
	var out strings.Builder
	if err := t.Execute(&out, data); err != nil {
		return "", fmt.Errorf("naming template %q of the class: %w", source, err)
	}
	name := out.String()
	if len(name) > validation.LabelValueMaxLength {
		name = naming.Limit(name, suffix)
	}
	return name, nil
}

// rotatedName is the name of a template with new content. Several attempts give different names.
func rotatedName(cluster *clusterv1.Cluster, prefix, place string, template *unstructured.Unstructured, attempt int) (string, error) {
	encoded, err := json.Marshal(template.Object["spec"])
	if err != nil {
		return "", fmt.Errorf("encoding the spec of %s %s: %w", template.GetKind(), template.GetName(), err)
	}
	sum := sha256.Sum256(encoded)
	return naming.WithSuffix(prefix, suffix(cluster, place, hex.EncodeToString(sum[:]), strconv.Itoa(attempt))), nil
}
