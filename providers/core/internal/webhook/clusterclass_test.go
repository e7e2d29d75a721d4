package webhook

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/providers/core/internal/topology/classes"
)

const classYAML = `
metadata: {name: class, namespace: default}
spec:
  infrastructure: {templateRef: {apiVersion: infrastructure.cluster.x-k8s.io/v1beta1, kind: DockerClusterTemplate, name: a}}
  controlPlane:
    templateRef: {apiVersion: controlplane.cluster.x-k8s.io/v1beta1, kind: KubeadmControlPlaneTemplate, name: a}
    machineInfrastructure: {templateRef: {apiVersion: infrastructure.cluster.x-k8s.io/v1beta1, kind: DockerMachineTemplate, name: a}}
    healthCheck:
      checks: {unhealthyNodeConditions: [{type: Ready, status: Unknown, timeoutSeconds: 300}]}
      remediation: {templateRef: {apiVersion: remediation.example.com/v1, kind: RemediationTemplate, name: a}}
  workers:
    machineDeployments:
    - class: default-worker
      bootstrap: {templateRef: {apiVersion: bootstrap.cluster.x-k8s.io/v1beta1, kind: KubeadmConfigTemplate, name: a}}
      infrastructure: {templateRef: {apiVersion: infrastructure.cluster.x-k8s.io/v1beta1, kind: DockerMachineTemplate, name: a}}
    machinePools:
    - class: default-pool
      bootstrap: {templateRef: {apiVersion: bootstrap.cluster.x-k8s.io/v1beta1, kind: KubeadmConfigTemplate, name: a}}
      infrastructure: {templateRef: {apiVersion: infrastructure.cluster.x-k8s.io/v1beta1, kind: DockerMachinePoolTemplate, name: a}}
  variables:
  - {name: imageRepository, required: true, schema: {openAPIV3Schema: {type: string, default: registry.k8s.io}}}
  patches:
  - name: imageRepository
    definitions:
    - selector: {apiVersion: controlplane.cluster.x-k8s.io/v1beta1, kind: KubeadmControlPlaneTemplate, matchResources: {controlPlane: true}}
      jsonPatches: [{op: add, path: /spec/template/spec/kubeadmConfigSpec/clusterConfiguration/imageRepository, valueFrom: {variable: imageRepository}}]
`

func validClass(t *testing.T) *clusterv1.ClusterClass {
	t.Helper()
	return new(parse[clusterv1.ClusterClass](t, classYAML))
}

// countingLists counts lists, and fails them with err if it is set.
type countingLists struct {
	client.Reader
	reads int
	err   error
}

func (c *countingLists) List(ctx context.Context, list client.ObjectList, opts ...client.ListOption) error {
	c.reads++
	if c.err != nil {
		return c.err
	}
	return c.Reader.List(ctx, list, opts...)
}

func newClassWebhook(t *testing.T, clusters string) (*ClusterClass, *countingLists) {
	t.Helper()
	scheme := runtime.NewScheme()
	if err := clusterv1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	b := fake.NewClientBuilder().WithScheme(scheme).WithIndex(&clusterv1.Cluster{}, classes.IndexName(), classes.ClassOf)
	for _, cluster := range parse[[]clusterv1.Cluster](t, clusters) {
		b = b.WithObjects(&cluster)
	}
	reader := &countingLists{Reader: b.Build()}
	return NewClusterClass(Options{Reader: reader, ClusterTopology: true}), reader
}

func TestClusterClassValidateCreate(t *testing.T) {
	tests := []struct {
		reason  string
		change  func(*clusterv1.ClusterClass)
		gateOff bool
		want    string
	}{
		{reason: "a valid class", change: func(*clusterv1.ClusterClass) {}},
		{reason: "the feature gate is disabled", change: func(*clusterv1.ClusterClass) {}, gateOff: true,
			want: `ClusterClass.cluster.x-k8s.io "class" is invalid: spec: Forbidden: ClusterClasses require the feature gate ClusterTopology`},
		{reason: "the class is validated", change: func(c *clusterv1.ClusterClass) { c.Spec.Infrastructure.TemplateRef.Name = "" },
			want: `ClusterClass.cluster.x-k8s.io "class" is invalid: spec.infrastructure.templateRef.name: Required value: the name of the template is required`},
		{reason: "variables are validated", change: func(c *clusterv1.ClusterClass) { c.Spec.Variables[0].Schema.OpenAPIV3Schema.Type = "integer" },
			want: `ClusterClass.cluster.x-k8s.io "class" is invalid: spec.variables[0].schema.openAPIV3Schema.default: Invalid value: "string": must be of type integer: "string"`},
		{reason: "patches are validated", change: func(c *clusterv1.ClusterClass) { c.Spec.Variables[0].Name = "other" },
			want: `ClusterClass.cluster.x-k8s.io "class" is invalid: spec.patches[0].definitions[0].jsonPatches[0].valueFrom.variable: Invalid value: "imageRepository": variable "imageRepository" is not defined in spec.variables`},
		{reason: "external patches require the feature gate RuntimeSDK", change: func(c *clusterv1.ClusterClass) {
			c.Spec.Patches[0].Definitions = nil
			c.Spec.Patches[0].External = &clusterv1.ExternalPatchDefinition{GeneratePatchesExtension: "x"}
		}, want: `ClusterClass.cluster.x-k8s.io "class" is invalid: spec.patches[0].external: Forbidden: external patches require the feature gate RuntimeSDK`},
		{reason: "an extension that plans upgrades requires it, too", change: func(c *clusterv1.ClusterClass) {
			c.Spec.Upgrade.External.GenerateUpgradePlanExtension = "plan.x"
		}, want: `ClusterClass.cluster.x-k8s.io "class" is invalid: spec.upgrade.external.generateUpgradePlanExtension: Forbidden: requires the feature gate RuntimeSDK`},
	}
	for _, tt := range tests {
		t.Run(tt.reason, func(t *testing.T) {
			w, reader := newClassWebhook(t, "[]")
			c := validClass(t)
			tt.change(c)
			w.options.ClusterTopology = !tt.gateOff
			_, err := w.ValidateCreate(t.Context(), c)
			if text(err) != tt.want {
				t.Errorf("%s: error\n%s\nwant\n%s", tt.reason, text(err), tt.want)
			}
			if reader.reads > 0 {
				t.Errorf("%s: Clusters must not be listed for a new class", tt.reason)
			}
		})
	}
}

func TestClusterClassValidateUpdate(t *testing.T) {
	const clusters = `
- metadata: {name: c, namespace: default}
  spec: {topology: {classRef: {name: class}, version: v1, workers: {machineDeployments: [{class: default-worker, name: a}]}}}
- metadata: {name: elsewhere, namespace: other}
  spec: {topology: {classRef: {name: class}, version: v1, workers: {machinePools: [{class: default-pool, name: a}]}}}
- metadata: {name: shared, namespace: other}
  spec: {topology: {classRef: {name: class, namespace: default}, version: v1, workers: {machineDeployments: [{class: default-worker, name: a, replicas: 1}]}}}
`
	tests := []struct {
		reason string
		change func(*clusterv1.ClusterClass)
		want   string
		reads  int
	}{
		{"changes of labels only are not validated", func(c *clusterv1.ClusterClass) { c.Labels = map[string]string{"a": "b"} }, "", 0},
		{"a change without removals reads nothing", func(c *clusterv1.ClusterClass) { c.Spec.Infrastructure.TemplateRef.Name = "b" }, "", 0},
		{"another provider", func(c *clusterv1.ClusterClass) { c.Spec.Infrastructure.TemplateRef.Kind = "AWSClusterTemplate" },
			`ClusterClass.cluster.x-k8s.io "class" is invalid: spec.infrastructure.templateRef.kind: Forbidden: the kind cannot be changed from "DockerClusterTemplate" to "AWSClusterTemplate": the objects of Clusters would have to be replaced`, 0},
		{"a class of workers in use", func(c *clusterv1.ClusterClass) { c.Spec.Workers.MachineDeployments = nil },
			`ClusterClass.cluster.x-k8s.io "class" is invalid: spec.workers.machineDeployments: Forbidden: class "default-worker" cannot be removed: Clusters use it: c, other/shared`, 1},
		{"annotations of the autoscaler", func(c *clusterv1.ClusterClass) {
			c.Spec.Workers.MachineDeployments[0].Metadata.Annotations = map[string]string{clusterv1.AutoscalerMinSizeAnnotation: "1"}
		}, `ClusterClass.cluster.x-k8s.io "class" is invalid: spec.workers.machineDeployments[0].metadata.annotations: Forbidden: annotations of the autoscaler cannot be added: Clusters set replicas of this class: other/shared`, 1},
		{"Clusters of a class with the same name in another namespace do not matter", func(c *clusterv1.ClusterClass) { c.Spec.Workers.MachinePools = nil }, "", 1},
	}
	for _, tt := range tests {
		t.Run(tt.reason, func(t *testing.T) {
			w, reader := newClassWebhook(t, clusters)
			old, c := validClass(t), validClass(t)
			tt.change(c)
			_, err := w.ValidateUpdate(t.Context(), old, c)
			if text(err) != tt.want {
				t.Errorf("%s: error\n%s\nwant\n%s", tt.reason, text(err), tt.want)
			}
			if reader.reads != tt.reads {
				t.Errorf("%s: %d reads, want %d", tt.reason, reader.reads, tt.reads)
			}
		})
	}
}

func TestClusterClassValidateUpdateWithoutClusters(t *testing.T) {
	w, reader := newClassWebhook(t, "[]")
	reader.err = errors.New("boom")
	old, c := validClass(t), validClass(t)
	c.Spec.Workers.MachinePools = nil
	if _, err := w.ValidateUpdate(t.Context(), old, c); !apierrors.IsInternalError(err) || !strings.Contains(err.Error(), "boom") {
		t.Errorf("err = %v, want an error if Clusters cannot be listed", err)
	}
}

func TestClusterClassValidateDelete(t *testing.T) {
	w, _ := newClassWebhook(t, `[{metadata: {name: c, namespace: default}, spec: {topology: {classRef: {name: class}, version: v1}}}]`)
	c := validClass(t)
	want := `clusterclasses.cluster.x-k8s.io "class" is forbidden: the ClusterClass cannot be deleted: Clusters use it: c; delete them or change them to another class first`
	if _, err := w.ValidateDelete(t.Context(), c); text(err) != want || !apierrors.IsForbidden(err) {
		t.Errorf("in use: error\n%s\nwant\n%s", text(err), want)
	}
	c.Namespace = "shared"
	if _, err := w.ValidateDelete(t.Context(), c); err != nil {
		t.Errorf("a class with the same name in another namespace: %v", err)
	}
	w, _ = newClassWebhook(t, `[{metadata: {name: c, namespace: default}, spec: {topology: {classRef: {name: class, namespace: shared}, version: v1}}}]`)
	if _, err := w.ValidateDelete(t.Context(), c); !strings.Contains(text(err), "Clusters use it: default/c;") {
		t.Errorf("in use in another namespace: error %v", err)
	}
	c.Name = "other"
	if _, err := w.ValidateDelete(t.Context(), c); err != nil {
		t.Errorf("not in use: %v", err)
	}
}

// Defaults inside an object have no effect without the object, which class authors do not expect.
func TestWarningOfDefaults(t *testing.T) {
	const object, inner = `type: object, properties: {enabled: {type: boolean, default: true}}`, `properties: {a: {type: object, properties: {b: {type: string, default: x}}}}`
	for _, tc := range []struct {
		reason, variables string
		want              []string
	}{
		{"a default of a property of an optional variable", `[{name: pss, required: false, schema: {openAPIV3Schema: {` + object + `}}}]`, []string{`spec.variables[0].schema.openAPIV3Schema: the defaults inside have no effect in Clusters that do not set variable "pss": add "default: {}" beside "type: object"`}},
		{"a variable with a default", `[{name: pss, required: false, schema: {openAPIV3Schema: {default: {}, ` + object + `}}}]`, nil},
		{"a required variable is always set", `[{name: pss, required: true, schema: {openAPIV3Schema: {` + object + `}}}]`, nil},
		{"an object in an object", `[{name: v, required: false, schema: {openAPIV3Schema: {type: object, default: {}, ` + inner + `}}}]`, []string{`spec.variables[0].schema.openAPIV3Schema.properties[a]: the defaults inside have no effect in Clusters that do not set a of variable "v": add "default: {}" beside "type: object"`}},
		{"an object that is required in its object", `[{name: v, required: false, schema: {openAPIV3Schema: {type: object, default: {a: {}}, required: [a], ` + inner + `}}}]`, nil},
		{"no defaults", `[{name: v, required: false, schema: {openAPIV3Schema: {type: object, properties: {a: {type: string}}}}}]`, nil},
	} {
		classes, _ := newClassWebhook(t, "")
		class := validClass(t)
		class.Spec.Patches = nil
		class.Spec.Variables = parse[[]clusterv1.ClusterClassVariable](t, tc.variables)
		warnings, err := classes.ValidateCreate(t.Context(), class)
		if diff := cmp.Diff(tc.want, []string(warnings)); diff != "" || err != nil {
			t.Errorf("%s: %v; -want +got:\n%s", tc.reason, err, diff)
		}
		if warnings, err := classes.ValidateUpdate(t.Context(), class, class); err != nil || warnings != nil {
			t.Errorf("%s: unchanged variables: %v, %v", tc.reason, warnings, err)
		}
	}
}
