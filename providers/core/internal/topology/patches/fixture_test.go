package patches

import (
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/providers/core/internal/topology/variables"
)

// parse parses YAML into an API type. Unknown fields are errors.
func parse[T any](t testing.TB, source string) T {
	t.Helper()
	var out T
	if err := yaml.UnmarshalStrict([]byte(source), &out); err != nil {
		t.Fatalf("bad test data: %v\n%s", err, source)
	}
	return out
}

// tree parses YAML into a tree of JSON values.
func tree(t testing.TB, source string) any {
	t.Helper()
	out, err := parseValue([]byte(source))
	if err != nil {
		t.Fatalf("bad test data: %v\n%s", err, source)
	}
	return out
}

func object(t testing.TB, apiVersion, kind, name, spec string) *unstructured.Unstructured {
	t.Helper()
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": apiVersion,
		"kind":       kind,
		"metadata":   map[string]any{"name": name, "namespace": "default"},
		"spec":       tree(t, spec),
	}}
}

const (
	infrastructureGroup = "infrastructure.cluster.x-k8s.io/v1beta1"
	bootstrapGroup      = "bootstrap.cluster.x-k8s.io/v1beta1"
	controlPlaneGroup   = "controlplane.cluster.x-k8s.io/v1beta1"
)

// machines returns a machine template and its copy.
func machines(t testing.TB, class, name string) Template {
	t.Helper()
	const spec = `{template: {spec: {extraMounts: [{hostPath: /a}]}}}`
	return Template{
		Source: object(t, infrastructureGroup, "DockerMachineTemplate", class, spec),
		Target: object(t, infrastructureGroup, "DockerMachineTemplate", name, spec),
	}
}

func bootstrap(t testing.TB, class, name string) Template {
	t.Helper()
	const spec = `{template: {spec: {files: [{path: /a}]}}}`
	return Template{
		Source: object(t, bootstrapGroup, "KubeadmConfigTemplate", class, spec),
		Target: object(t, bootstrapGroup, "KubeadmConfigTemplate", name, spec),
	}
}

// fixture returns the Cluster "c" with everything that a topology can have: a control plane with machines, the
// MachineDeployments "small" and "large" of class "default-worker" and "gpu" of class "gpu-worker", and
// the MachinePool "pool" of class "default-pool". It is being upgraded: the control plane has v1.25.0, the
// workers v1.24.0.
func fixture(t testing.TB, definitions, patches, topology string) *Input {
	t.Helper()
	class := &clusterv1.ClusterClass{}
	class.Name, class.Namespace = "class", "default"
	class.Spec.Patches = parse[[]clusterv1.ClusterClassPatch](t, patches)
	class.Spec.Variables = parse[[]clusterv1.ClusterClassVariable](t, definitions)
	status, err := variables.Merge(variables.Source{From: clusterv1.VariableDefinitionFromInline, Variables: class.Spec.Variables})
	if err != nil {
		t.Fatal(err)
	}
	class.Status.Variables = status

	cluster := &clusterv1.Cluster{}
	cluster.Name, cluster.Namespace = "c", "default"
	cluster.Spec.Topology = parse[clusterv1.Topology](t, topology)
	cluster.Spec.Topology.ClassRef.Name, cluster.Spec.Topology.Version = "class", "v1.25.0"

	cpMachines := machines(t, "cp-machines", "c-cp")
	in := &Input{
		Cluster: cluster,
		Class:   class,
		InfrastructureCluster: Template{
			Source: object(t, infrastructureGroup, "DockerClusterTemplate", "infra", `{template: {spec: {loadBalancer: {}}}}`),
			Target: object(t, infrastructureGroup, "DockerCluster", "c-infra", `{loadBalancer: {}}`),
		},
		ControlPlane: ControlPlane{Machines: &cpMachines, Template: Template{
			Source: object(t, controlPlaneGroup, "KubeadmControlPlaneTemplate", "cp", `
template: {spec: {kubeadmConfigSpec: {clusterConfiguration: {apiServer: {certSANs: [localhost]}, controllerManager: {extraArgs: {}}}}}}`),
			Target: object(t, controlPlaneGroup, "KubeadmControlPlane", "c-x", `
version: v1.25.0
replicas: 3
machineTemplate: {metadata: {labels: {a: b}}, nodeDrainTimeout: 10s, infrastructureRef: {kind: DockerMachineTemplate, name: c-cp}}
kubeadmConfigSpec: {clusterConfiguration: {apiServer: {certSANs: [localhost]}, controllerManager: {extraArgs: {}}}}`),
		}},
		MachinePools: []Workers{{
			Class: "default-pool", TopologyName: "pool", Name: "c-pool-x", Version: "v1.24.0", BootstrapName: "c-pool-b", InfrastructureName: "c-pool-i",
			Overrides: overridesOf(&cluster.Spec.Topology, "pool"),
			Bootstrap: Template{
				Source: object(t, bootstrapGroup, "KubeadmConfigTemplate", "pool", `{template: {spec: {files: []}}}`),
				Target: object(t, bootstrapGroup, "KubeadmConfig", "c-pool-b", `{files: []}`),
			},
			Infrastructure: Template{
				Source: object(t, infrastructureGroup, "DockerMachinePoolTemplate", "pool", `{template: {spec: {template: {}}}}`),
				Target: object(t, infrastructureGroup, "DockerMachinePool", "c-pool-i", `{template: {}}`),
			},
		}},
	}
	for _, md := range []struct{ class, name string }{{"default-worker", "small"}, {"default-worker", "large"}, {"gpu-worker", "gpu"}} {
		in.MachineDeployments = append(in.MachineDeployments, Workers{
			Class: md.class, TopologyName: md.name, Name: "c-" + md.name + "-x", Version: "v1.24.0", Replicas: new(int32(2)),
			BootstrapName: "c-" + md.name + "-b", InfrastructureName: "c-" + md.name + "-i",
			Overrides: overridesOf(&cluster.Spec.Topology, md.name),
			Bootstrap: bootstrap(t, md.class, "c-"+md.name+"-b"), Infrastructure: machines(t, md.class, "c-"+md.name+"-i"),
		})
	}
	return in
}

func overridesOf(topology *clusterv1.Topology, name string) []clusterv1.ClusterVariable {
	for i := range topology.Workers.MachineDeployments {
		if md := &topology.Workers.MachineDeployments[i]; md.Name == name {
			return md.Variables.Overrides
		}
	}
	for i := range topology.Workers.MachinePools {
		if mp := &topology.Workers.MachinePools[i]; mp.Name == name {
			return mp.Variables.Overrides
		}
	}
	return nil
}

// targets returns the specs of all targets by "kind name".
func (in *Input) targets() map[string]any {
	out := map[string]any{}
	for _, i := range in.items() {
		out[i.target.GetKind()+" "+i.target.GetName()] = i.target.Object["spec"]
	}
	return out
}

// sources returns copies of all sources.
func (in *Input) sources() []any {
	var out []any
	for _, i := range in.items() {
		out = append(out, i.source.DeepCopy().Object)
	}
	return out
}
