package check

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/yaml"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
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
  infrastructure: {templateRef: {apiVersion: infrastructure.cluster.x-k8s.io/v1beta1, kind: DockerClusterTemplate, name: a}}
  controlPlane:
    metadata: {labels: {a: b}}
    templateRef: {apiVersion: controlplane.cluster.x-k8s.io/v1beta1, kind: KubeadmControlPlaneTemplate, name: a}
    machineInfrastructure: {templateRef: {apiVersion: infrastructure.cluster.x-k8s.io/v1beta1, kind: DockerMachineTemplate, name: a}}
    healthCheck:
      remediation: {triggerIf: {unhealthyLessThanOrEqualTo: 33%}}
      checks: {nodeStartupTimeoutSeconds: 900, unhealthyNodeConditions: [{type: Ready, status: Unknown, timeoutSeconds: 300}]}
    naming: {template: "{{ .cluster.name }}-cp-{{ .random }}"}
  workers:
    machineDeployments:
    - class: default-worker
      metadata: {annotations: {a: b}}
      bootstrap: {templateRef: {apiVersion: bootstrap.cluster.x-k8s.io/v1beta1, kind: KubeadmConfigTemplate, name: a}}
      infrastructure: {templateRef: {apiVersion: infrastructure.cluster.x-k8s.io/v1beta1, kind: DockerMachineTemplate, name: a}}
      healthCheck:
        remediation: {maxInFlight: 1, triggerIf: {unhealthyInRange: "[0-2]"}}
        checks: {unhealthyNodeConditions: [{type: Ready, status: Unknown, timeoutSeconds: 300}]}
      naming: {template: "{{ .machineDeployment.topologyName }}"}
    machinePools:
    - class: default-pool
      bootstrap: {templateRef: {apiVersion: bootstrap.cluster.x-k8s.io/v1beta1, kind: KubeadmConfigTemplate, name: a}}
      infrastructure: {templateRef: {apiVersion: infrastructure.cluster.x-k8s.io/v1beta1, kind: DockerMachinePoolTemplate, name: a}}
      naming: {template: "{{ .machinePool.topologyName }}"}
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
			s.Infrastructure.TemplateRef = clusterv1.ClusterClassTemplateReference{}
			s.ControlPlane.TemplateRef = clusterv1.ClusterClassTemplateReference{}
			s.ControlPlane.MachineInfrastructure.TemplateRef.Name = ""
			s.Workers.MachineDeployments[0].Bootstrap.TemplateRef = clusterv1.ClusterClassTemplateReference{}
			s.Workers.MachinePools[0].Infrastructure.TemplateRef = clusterv1.ClusterClassTemplateReference{}
		}, []string{
			"spec.infrastructure.templateRef: Required value: a reference to a template is required",
			cp + ".templateRef: Required value: a reference to a template is required",
			cp + ".machineInfrastructure.templateRef.name: Required value: the name of the template is required",
			md + ".bootstrap.templateRef: Required value: a reference to a template is required",
			mp + ".infrastructure.templateRef: Required value: a reference to a template is required",
		}},
		{"references are complete", func(s *clusterv1.ClusterClassSpec) {
			s.Infrastructure.TemplateRef = clusterv1.ClusterClassTemplateReference{Kind: "Template", APIVersion: "a/b/c"}
		}, []string{
			"spec.infrastructure.templateRef.name: Required value: the name of the template is required",
			`spec.infrastructure.templateRef.kind: Invalid value: "Template": must be the kind of a template, which ends in "Template"`,
			`spec.infrastructure.templateRef.apiVersion: Invalid value: "a/b/c": must be an API version: <group>/<version>`,
		}},
		{"a reference must be to a template", func(s *clusterv1.ClusterClassSpec) { s.ControlPlane.TemplateRef.Kind = "KubeadmControlPlane" },
			[]string{cp + `.templateRef.kind: Invalid value: "KubeadmControlPlane": must be the kind of a template, which ends in "Template"`}},
		{"names of worker classes are unique per kind", func(s *clusterv1.ClusterClassSpec) {
			s.Workers.MachineDeployments = append(s.Workers.MachineDeployments, s.Workers.MachineDeployments[0])
			s.Workers.MachinePools[0].Class = "default-worker"
		}, []string{`spec.workers.machineDeployments[1].class: Duplicate value: "default-worker"`}},
		{"worker classes require names", func(s *clusterv1.ClusterClassSpec) { s.Workers.MachinePools[0].Class = "" },
			[]string{mp + ".class: Required value: the name of the class is required"}},
		{"labels and annotations are validated", func(s *clusterv1.ClusterClassSpec) {
			s.ControlPlane.Metadata.Labels = map[string]string{"a": "-"}
			s.Workers.MachineDeployments[0].Metadata.Annotations = map[string]string{"a b": ""}
		}, []string{
			cp + `.metadata.labels: Invalid value: "-": a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')`,
			md + `.metadata.annotations: Invalid value: "a b": name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')`,
		}},
		{"health checks of the control plane require Machines", func(s *clusterv1.ClusterClassSpec) {
			s.ControlPlane.MachineInfrastructure = clusterv1.ControlPlaneClassMachineInfrastructureTemplate{}
		},
			[]string{cp + ".healthCheck: Forbidden: requires machineInfrastructure: a control plane without it has no Machines to check"}},
		{"health checks are validated", func(s *clusterv1.ClusterClassSpec) {
			s.Workers.MachineDeployments[0].HealthCheck = parseYAML[clusterv1.MachineDeploymentClassHealthCheck](t,
				`{checks: {nodeStartupTimeoutSeconds: 29}, remediation: {triggerIf: {unhealthyLessThanOrEqualTo: x, unhealthyInRange: 1-2}}}`)
		}, []string{
			md + `.healthCheck.checks.nodeStartupTimeoutSeconds: Invalid value: 29: must be at least 30, or 0 to disable the timeout`,
			md + `.healthCheck.remediation.triggerIf.unhealthyLessThanOrEqualTo: Invalid value: "x": must be a number or a percentage`,
			md + `.healthCheck.remediation.triggerIf.unhealthyInRange: Invalid value: "1-2": must be two numbers in brackets, the first not greater than the second, such as [3-5]`,
		}},
		{"a health check checks something", func(s *clusterv1.ClusterClassSpec) {
			s.Workers.MachineDeployments[0].HealthCheck = parseYAML[clusterv1.MachineDeploymentClassHealthCheck](t,
				`{remediation: {triggerIf: {unhealthyLessThanOrEqualTo: 1}}}`)
		}, []string{md + ".healthCheck.checks.unhealthyNodeConditions: Required value: at least one condition or nodeStartupTimeoutSeconds is required"}},
		{"a limit of remediations is no health check", func(s *clusterv1.ClusterClassSpec) {
			s.Workers.MachineDeployments[0].HealthCheck = parseYAML[clusterv1.MachineDeploymentClassHealthCheck](t, `{remediation: {maxInFlight: 1}}`)
		}, nil},
		{"conditions of Machines are sufficient", func(s *clusterv1.ClusterClassSpec) {
			s.Workers.MachineDeployments[0].HealthCheck = parseYAML[clusterv1.MachineDeploymentClassHealthCheck](t,
				`{checks: {unhealthyMachineConditions: [{type: NodeReady, status: "False", timeoutSeconds: 0}]}}`)
		}, nil},
		{"conditions of Machines must not depend on health checks", func(s *clusterv1.ClusterClassSpec) {
			s.Workers.MachineDeployments[0].HealthCheck = parseYAML[clusterv1.MachineDeploymentClassHealthCheck](t,
				`{checks: {unhealthyMachineConditions: [{type: NodeReady, status: "False", timeoutSeconds: -1}, {type: OwnerRemediated, status: "False", timeoutSeconds: 1}]}}`)
		}, []string{
			md + `.healthCheck.checks.unhealthyMachineConditions[0].timeoutSeconds: Invalid value: -1: must not be negative`,
			md + `.healthCheck.checks.unhealthyMachineConditions[1].type: Invalid value: "OwnerRemediated": must not be one of: Ready, Available, HealthCheckSucceeded, OwnerRemediated, ExternallyRemediated: they depend on the health check`,
		}},
		{"a startup timeout of 0 disables it", func(s *clusterv1.ClusterClassSpec) {
			s.ControlPlane.HealthCheck.Checks.NodeStartupTimeoutSeconds = new(int32(0))
		}, nil},
		{"naming strategies are validated by a sample", func(s *clusterv1.ClusterClassSpec) {
			s.ControlPlane.Naming.Template = "{{ .cluster.name }}_{{ .random }}"
			s.Workers.MachineDeployments[0].Naming.Template = "{{ .machinePool.topologyName }}"
			s.Workers.MachinePools[0].Naming.Template = "{{"
		}, []string{
			cp + `.naming.template: Invalid value: "{{ .cluster.name }}_{{ .random }}": yields invalid names such as "cluster_bcdfg": a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')`,
			md + `.naming.template: Invalid value: "{{ .machinePool.topologyName }}": naming strategy: template: name:1:15: executing "name" at <.machinePool.topologyName>: map has no entry for key "machinePool"`,
			mp + `.naming.template: Invalid value: "{{": naming strategy: not a valid Go template: template: name:1: unclosed action`,
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
			s.Infrastructure.TemplateRef.Name = "b"
			s.Infrastructure.TemplateRef.APIVersion = "infrastructure.cluster.x-k8s.io/v1beta2"
			s.Workers.MachineDeployments[0].Infrastructure.TemplateRef.Name = "b"
		}, nil},
		{"bootstrap templates can change", func(s *clusterv1.ClusterClassSpec) {
			s.Workers.MachineDeployments[0].Bootstrap.TemplateRef.Kind = "OtherConfigTemplate"
			s.Workers.MachinePools[0].Bootstrap.TemplateRef.APIVersion = "other.io/v1"
		}, nil},
		{"machineInfrastructure can be removed", func(s *clusterv1.ClusterClassSpec) {
			s.ControlPlane.MachineInfrastructure = clusterv1.ControlPlaneClassMachineInfrastructureTemplate{}
		}, nil},
		{"worker classes can be added and removed", func(s *clusterv1.ClusterClassSpec) {
			s.Workers.MachineDeployments[0].Class = "other"
			s.Workers.MachineDeployments[0].Infrastructure.TemplateRef.Kind = "AWSMachineTemplate"
		}, nil},
		{"another provider", func(s *clusterv1.ClusterClassSpec) {
			s.Infrastructure.TemplateRef.Kind = "AWSClusterTemplate"
			s.ControlPlane.TemplateRef.APIVersion = "other.io/v1beta1"
			s.ControlPlane.MachineInfrastructure.TemplateRef.Kind = "AWSMachineTemplate"
			s.Workers.MachineDeployments[0].Infrastructure.TemplateRef.Kind = "AWSMachineTemplate"
			s.Workers.MachinePools[0].Infrastructure.TemplateRef.Kind = "AWSMachinePoolTemplate"
		}, []string{
			`spec.infrastructure.templateRef.kind: Forbidden: the kind cannot be changed from "DockerClusterTemplate" to "AWSClusterTemplate": the objects of Clusters would have to be replaced`,
			`spec.controlPlane.templateRef.apiVersion: Forbidden: the group cannot be changed from "controlplane.cluster.x-k8s.io" to "other.io": the objects of Clusters would have to be replaced`,
			`spec.controlPlane.machineInfrastructure.templateRef.kind: Forbidden: the kind cannot be changed from "DockerMachineTemplate" to "AWSMachineTemplate": the objects of Clusters would have to be replaced`,
			`spec.workers.machineDeployments[0].infrastructure.templateRef.kind: Forbidden: the kind cannot be changed from "DockerMachineTemplate" to "AWSMachineTemplate": the objects of Clusters would have to be replaced`,
			`spec.workers.machinePools[0].infrastructure.templateRef.kind: Forbidden: the kind cannot be changed from "DockerMachinePoolTemplate" to "AWSMachinePoolTemplate": the objects of Clusters would have to be replaced`,
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
		{"reconciled", `{generation: 2, status: {observedGeneration: 2, deprecated: {v1beta1: {conditions: [{type: VariablesReconciled, status: "True"}]}}}}`, ""},
		{"the generation is not observed", `{generation: 3, status: {observedGeneration: 2, deprecated: {v1beta1: {conditions: [{type: VariablesReconciled, status: "True"}]}}}}`,
			"ClusterClass default/class has changed and has not been reconciled yet"},
		{"the condition is not set", `{generation: 2, status: {observedGeneration: 2}}`, "ClusterClass default/class has not been reconciled yet"},
		{"variables could not be discovered", `{generation: 2, status: {observedGeneration: 2, deprecated: {v1beta1: {conditions: [{type: VariablesReconciled, status: "False", reason: VariableDiscoveryFailed, message: boom}]}}}}`,
			"ClusterClass default/class: its variables could not be discovered: VariableDiscoveryFailed: boom"},
		{"the condition has no message", `{generation: 2, status: {observedGeneration: 2, deprecated: {v1beta1: {conditions: [{type: VariablesReconciled, status: "False", reason: VariableDiscoveryFailed}]}}}}`,
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
