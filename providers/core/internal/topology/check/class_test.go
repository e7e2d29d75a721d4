package check

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/yaml"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta1"
)

// parseYAML parses YAML into an API type. Unknown fields are errors.
func parseYAML[T any](t testing.TB, source string) T {
	t.Helper()
	var out T
	if err := yaml.UnmarshalStrict([]byte(source), &out); err != nil {
		t.Fatalf("bad test data: %v\n%s", err, source)
	}
	return out
}

func texts(errs field.ErrorList) []string {
	var out []string
	for _, err := range errs {
		out = append(out, err.Error())
	}
	return out
}

// valid is a class that uses every feature.
const valid = `
metadata: {name: class, namespace: default}
spec:
  infrastructure: {ref: {apiVersion: infrastructure.cluster.x-k8s.io/v1beta1, kind: DockerClusterTemplate, name: a, namespace: default}}
  controlPlane:
    metadata: {labels: {a: b}}
    ref: {apiVersion: controlplane.cluster.x-k8s.io/v1beta1, kind: KubeadmControlPlaneTemplate, name: a, namespace: default}
    machineInfrastructure: {ref: {apiVersion: infrastructure.cluster.x-k8s.io/v1beta1, kind: DockerMachineTemplate, name: a, namespace: default}}
    machineHealthCheck:
      maxUnhealthy: 33%
      nodeStartupTimeout: 15m
      unhealthyConditions: [{type: Ready, status: Unknown, timeout: 300s}]
    namingStrategy: {template: "{{ .cluster.name }}-cp-{{ .random }}"}
  workers:
    machineDeployments:
    - class: default-worker
      template:
        metadata: {annotations: {a: b}}
        bootstrap: {ref: {apiVersion: bootstrap.cluster.x-k8s.io/v1beta1, kind: KubeadmConfigTemplate, name: a, namespace: default}}
        infrastructure: {ref: {apiVersion: infrastructure.cluster.x-k8s.io/v1beta1, kind: DockerMachineTemplate, name: a, namespace: default}}
      machineHealthCheck:
        unhealthyRange: "[0-2]"
        unhealthyConditions: [{type: Ready, status: Unknown, timeout: 300s}]
      namingStrategy: {template: "{{ .machineDeployment.topologyName }}"}
    machinePools:
    - class: default-pool
      template:
        bootstrap: {ref: {apiVersion: bootstrap.cluster.x-k8s.io/v1beta1, kind: KubeadmConfigTemplate, name: a, namespace: default}}
        infrastructure: {ref: {apiVersion: infrastructure.cluster.x-k8s.io/v1beta1, kind: DockerMachinePoolTemplate, name: a, namespace: default}}
      namingStrategy: {template: "{{ .machinePool.topologyName }}"}
`

func TestClass(t *testing.T) {
	const (
		cp = "spec.controlPlane"
		md = "spec.workers.machineDeployments[0]"
		mp = "spec.workers.machinePools[0]"
	)
	tests := []struct {
		reason string
		change func(*clusterv1.ClusterClassSpec)
		want   []string
	}{
		{"a class that uses every feature is valid", func(*clusterv1.ClusterClassSpec) {}, nil},
		{"references are required", func(s *clusterv1.ClusterClassSpec) {
			s.Infrastructure.Ref = nil
			s.ControlPlane.Ref = nil
			s.ControlPlane.MachineInfrastructure.Ref = nil
			s.Workers.MachineDeployments[0].Template.Bootstrap.Ref = nil
			s.Workers.MachinePools[0].Template.Infrastructure.Ref = nil
		}, []string{
			"spec.infrastructure.ref: Required value: a reference to a template is required",
			cp + ".ref: Required value: a reference to a template is required",
			cp + ".machineInfrastructure.ref: Required value: a reference to a template is required",
			md + ".template.bootstrap.ref: Required value: a reference to a template is required",
			mp + ".template.infrastructure.ref: Required value: a reference to a template is required",
		}},
		{"references are complete and in the class's namespace", func(s *clusterv1.ClusterClassSpec) {
			*s.Infrastructure.Ref = *s.ControlPlane.Ref.DeepCopy()
			s.Infrastructure.Ref.Name, s.Infrastructure.Ref.Namespace = "", "other"
			s.Infrastructure.Ref.Kind, s.Infrastructure.Ref.APIVersion = "Template", "a/b/c"
		}, []string{
			"spec.infrastructure.ref.name: Required value: the name of the template is required",
			`spec.infrastructure.ref.namespace: Invalid value: "other": must be "default": a ClusterClass and its templates must be in the same namespace`,
			`spec.infrastructure.ref.kind: Invalid value: "Template": must be the kind of a template, which ends in "Template"`,
			`spec.infrastructure.ref.apiVersion: Invalid value: "a/b/c": must be an API version: <group>/<version>`,
		}},
		{"a reference must be to a template", func(s *clusterv1.ClusterClassSpec) { s.ControlPlane.Ref.Kind = "KubeadmControlPlane" },
			[]string{cp + `.ref.kind: Invalid value: "KubeadmControlPlane": must be the kind of a template, which ends in "Template"`}},
		{"names of worker classes are unique per kind", func(s *clusterv1.ClusterClassSpec) {
			s.Workers.MachineDeployments = append(s.Workers.MachineDeployments, s.Workers.MachineDeployments[0])
			s.Workers.MachinePools[0].Class = "default-worker"
		}, []string{`spec.workers.machineDeployments[1].class: Duplicate value: "default-worker"`}},
		{"worker classes require names", func(s *clusterv1.ClusterClassSpec) { s.Workers.MachinePools[0].Class = "" },
			[]string{mp + ".class: Required value: the name of the class is required"}},
		{"labels and annotations are validated", func(s *clusterv1.ClusterClassSpec) {
			s.ControlPlane.Metadata.Labels = map[string]string{"a": "-"}
			s.Workers.MachineDeployments[0].Template.Metadata.Annotations = map[string]string{"a b": ""}
		}, []string{
			cp + `.metadata.labels: Invalid value: "-": a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')`,
			md + `.template.metadata.annotations: Invalid value: "a b": name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')`,
		}},
		{"health checks of the control plane require Machines", func(s *clusterv1.ClusterClassSpec) { s.ControlPlane.MachineInfrastructure = nil },
			[]string{cp + ".machineHealthCheck: Forbidden: requires machineInfrastructure: a control plane without it has no Machines to check"}},
		{"health checks are validated", func(s *clusterv1.ClusterClassSpec) {
			c := s.Workers.MachineDeployments[0].MachineHealthCheck
			*c = parseYAML[clusterv1.MachineHealthCheckClass](t, `{nodeStartupTimeout: 29s, maxUnhealthy: x, remediationTemplate: {namespace: other}}`)
		}, []string{
			md + `.machineHealthCheck.nodeStartupTimeout: Invalid value: "29s": must be at least 30s, or 0 to disable the timeout`,
			md + `.machineHealthCheck.maxUnhealthy: Invalid value: "x": must be a number or a percentage`,
			md + `.machineHealthCheck.remediationTemplate.namespace: Invalid value: "other": must be "default", the namespace of the object that refers to it`,
		}},
		{"a health check checks something", func(s *clusterv1.ClusterClassSpec) {
			*s.Workers.MachineDeployments[0].MachineHealthCheck = parseYAML[clusterv1.MachineHealthCheckClass](t, `{maxUnhealthy: 1}`)
		}, []string{md + ".machineHealthCheck.unhealthyConditions: Required value: at least one condition or nodeStartupTimeout is required"}},
		{"conditions of Machines are sufficient", func(s *clusterv1.ClusterClassSpec) {
			*s.Workers.MachineDeployments[0].MachineHealthCheck = parseYAML[clusterv1.MachineHealthCheckClass](t,
				`{unhealthyMachineConditions: [{type: NodeReady, status: "False", timeout: 0s}]}`)
		}, nil},
		{"conditions of Machines must not depend on health checks", func(s *clusterv1.ClusterClassSpec) {
			*s.Workers.MachineDeployments[0].MachineHealthCheck = parseYAML[clusterv1.MachineHealthCheckClass](t,
				`{unhealthyMachineConditions: [{type: NodeReady, status: "False", timeout: -1s}, {type: OwnerRemediated, status: "False", timeout: 1s}]}`)
		}, []string{
			md + `.machineHealthCheck.unhealthyMachineConditions[0].timeout: Invalid value: "-1s": must not be negative`,
			md + `.machineHealthCheck.unhealthyMachineConditions[1].type: Invalid value: "OwnerRemediated": must not be one of: Ready, Available, HealthCheckSucceeded, OwnerRemediated, ExternallyRemediated: they depend on the health check`,
		}},
		{"a startup timeout of 0 disables it", func(s *clusterv1.ClusterClassSpec) {
			s.ControlPlane.MachineHealthCheck.NodeStartupTimeout.Duration = 0
		}, nil},
		{"naming strategies are validated by a sample", func(s *clusterv1.ClusterClassSpec) {
			s.ControlPlane.NamingStrategy.Template = new("{{ .cluster.name }}_{{ .random }}")
			s.Workers.MachineDeployments[0].NamingStrategy.Template = new("{{ .machinePool.topologyName }}")
			s.Workers.MachinePools[0].NamingStrategy.Template = new("{{")
		}, []string{
			cp + `.namingStrategy.template: Invalid value: "{{ .cluster.name }}_{{ .random }}": yields invalid names such as "cluster_bcdfg": a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')`,
			md + `.namingStrategy.template: Invalid value: "{{ .machinePool.topologyName }}": naming strategy: template: name:1:15: executing "name" at <.machinePool.topologyName>: map has no entry for key "machinePool"`,
			mp + `.namingStrategy.template: Invalid value: "{{": naming strategy: not a valid Go template: template: name:1: unclosed action`,
		}},
	}
	for _, tt := range tests {
		t.Run(tt.reason, func(t *testing.T) {
			class := parseYAML[clusterv1.ClusterClass](t, valid)
			tt.change(&class.Spec)
			if diff := cmp.Diff(tt.want, texts(Class(&class))); diff != "" {
				t.Errorf("%s: errors (-want +got):\n%s", tt.reason, diff)
			}
		})
	}
}

func TestCompatibleClasses(t *testing.T) {
	tests := []struct {
		reason string
		change func(*clusterv1.ClusterClassSpec)
		want   []string
	}{
		{"names and API versions can change", func(s *clusterv1.ClusterClassSpec) {
			s.Infrastructure.Ref.Name = "b"
			s.Infrastructure.Ref.APIVersion = "infrastructure.cluster.x-k8s.io/v1beta2"
			s.Workers.MachineDeployments[0].Template.Infrastructure.Ref.Name = "b"
		}, nil},
		{"bootstrap templates can change", func(s *clusterv1.ClusterClassSpec) {
			s.Workers.MachineDeployments[0].Template.Bootstrap.Ref.Kind = "OtherConfigTemplate"
			s.Workers.MachinePools[0].Template.Bootstrap.Ref.APIVersion = "other.io/v1"
		}, nil},
		{"machineInfrastructure can be removed", func(s *clusterv1.ClusterClassSpec) { s.ControlPlane.MachineInfrastructure = nil }, nil},
		{"worker classes can be added and removed", func(s *clusterv1.ClusterClassSpec) {
			s.Workers.MachineDeployments[0].Class = "other"
			s.Workers.MachineDeployments[0].Template.Infrastructure.Ref.Kind = "AWSMachineTemplate"
		}, nil},
		{"another provider", func(s *clusterv1.ClusterClassSpec) {
			s.Infrastructure.Ref.Kind = "AWSClusterTemplate"
			s.ControlPlane.Ref.APIVersion = "other.io/v1beta1"
			s.ControlPlane.MachineInfrastructure.Ref.Kind = "AWSMachineTemplate"
			s.Workers.MachineDeployments[0].Template.Infrastructure.Ref.Kind = "AWSMachineTemplate"
			s.Workers.MachinePools[0].Template.Infrastructure.Ref.Namespace = "other"
		}, []string{
			`spec.infrastructure.ref.kind: Forbidden: the kind cannot be changed from "DockerClusterTemplate" to "AWSClusterTemplate": the objects of Clusters would have to be replaced`,
			`spec.controlPlane.ref.apiVersion: Forbidden: the group cannot be changed from "controlplane.cluster.x-k8s.io" to "other.io": the objects of Clusters would have to be replaced`,
			`spec.controlPlane.machineInfrastructure.ref.kind: Forbidden: the kind cannot be changed from "DockerMachineTemplate" to "AWSMachineTemplate": the objects of Clusters would have to be replaced`,
			`spec.workers.machineDeployments[0].template.infrastructure.ref.kind: Forbidden: the kind cannot be changed from "DockerMachineTemplate" to "AWSMachineTemplate": the objects of Clusters would have to be replaced`,
			`spec.workers.machinePools[0].template.infrastructure.ref.namespace: Forbidden: the namespace cannot be changed from "default" to "other"`,
		}},
	}
	for _, tt := range tests {
		t.Run(tt.reason, func(t *testing.T) {
			old, class := parseYAML[clusterv1.ClusterClass](t, valid), parseYAML[clusterv1.ClusterClass](t, valid)
			tt.change(&class.Spec)
			if diff := cmp.Diff(tt.want, texts(CompatibleClasses(&old, &class))); diff != "" {
				t.Errorf("%s: errors (-want +got):\n%s", tt.reason, diff)
			}
		})
	}
}

func TestReady(t *testing.T) {
	tests := []struct{ reason, class, want string }{
		{"reconciled", `{generation: 2, status: {observedGeneration: 2, conditions: [{type: VariablesReconciled, status: "True"}]}}`, ""},
		{"the generation is not observed", `{generation: 3, status: {observedGeneration: 2, conditions: [{type: VariablesReconciled, status: "True"}]}}`,
			"ClusterClass default/class has changed and has not been reconciled yet"},
		{"the condition is not set", `{generation: 2, status: {observedGeneration: 2}}`, "ClusterClass default/class has not been reconciled yet"},
		{"variables could not be discovered", `{generation: 2, status: {observedGeneration: 2, conditions: [{type: VariablesReconciled, status: "False", reason: VariableDiscoveryFailed, message: boom}]}}`,
			"ClusterClass default/class: its variables could not be discovered: VariableDiscoveryFailed: boom"},
		{"the condition has no message", `{generation: 2, status: {observedGeneration: 2, conditions: [{type: VariablesReconciled, status: "False", reason: VariableDiscoveryFailed}]}}`,
			"ClusterClass default/class: its variables could not be discovered: VariableDiscoveryFailed"},
	}
	for _, tt := range tests {
		t.Run(tt.reason, func(t *testing.T) {
			in := parseYAML[struct {
				Generation int64                        `json:"generation"`
				Status     clusterv1.ClusterClassStatus `json:"status"`
			}](t, tt.class)
			class := &clusterv1.ClusterClass{Status: in.Status}
			class.Namespace, class.Name, class.Generation = "default", "class", in.Generation
			got := ""
			if err := Ready(class); err != nil {
				got = err.Error()
			}
			if got != tt.want {
				t.Errorf("%s: %q, want %q", tt.reason, got, tt.want)
			}
		})
	}
}
