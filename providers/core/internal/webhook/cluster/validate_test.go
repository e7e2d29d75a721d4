package cluster

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta1"
)

const invalidPrefix = `Cluster.cluster.x-k8s.io "c" is invalid: `

// of returns a Cluster with a topology.
func of(annotations, topology string) string {
	return `{metadata: {name: c, namespace: default, annotations: {` + annotations + `}}, spec: {topology: {` + topology + `}}}`
}

const (
	repository = `variables: [{name: imageRepository, value: a}]`
	before     = `class: a, version: v1.30.0, ` + repository
)

func TestValidate(t *testing.T) {
	aws := func(c *clusterv1.ClusterClass) { c.Spec.Infrastructure.Ref.Kind = "AWSClusterTemplate" }
	tests := []struct {
		reason       string
		classes      []client.Object
		old, cluster string
		want         string
		warnings     []string
	}{
		{reason: "a Cluster without topology", cluster: `{metadata: {name: c, namespace: default}, spec: {infrastructureRef: {namespace: default}, clusterNetwork: {pods: {cidrBlocks: [10.0.0.0/16]}}}}`},
		{reason: "all errors are reported together", cluster: `
metadata: {name: a/b, namespace: default}
spec:
  infrastructureRef: {namespace: other}
  controlPlaneRef: {namespace: other}
  clusterNetwork: {pods: {cidrBlocks: [10.0.0.0/16, x]}, services: {cidrBlocks: [10.0.0.0]}}`,
			want: `Cluster.cluster.x-k8s.io "a/b" is invalid: [` +
				`metadata.name: Invalid value: "a/b": must be a valid label value: a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?'), ` +
				`spec.infrastructureRef.namespace: Invalid value: "other": must be "default", the namespace of the Cluster, ` +
				`spec.controlPlaneRef.namespace: Invalid value: "other": must be "default", the namespace of the Cluster, ` +
				`spec.clusterNetwork.services.cidrBlocks[0]: Invalid value: "10.0.0.0": must be a range of IP addresses in CIDR notation, such as 10.0.0.0/16, ` +
				`spec.clusterNetwork.pods.cidrBlocks[1]: Invalid value: "x": must be a range of IP addresses in CIDR notation, such as 10.0.0.0/16]`},
		{reason: "a valid topology", classes: []client.Object{class(t, "a")}, cluster: of("", before)},
		{reason: "a class is required", cluster: of("", `class: "", version: v1.30.0`), want: invalidPrefix + `spec.topology.class: Required value: the name of a ClusterClass is required`},
		{reason: "the version must be valid", classes: []client.Object{class(t, "a")}, cluster: of("", `class: a, version: v1.30, `+repository),
			want: invalidPrefix + `spec.topology.version: Invalid value: "v1.30": must be a semantic version with a leading "v", such as v1.30.2`},
		{reason: "the upgrade concurrency must be valid", classes: []client.Object{class(t, "a")}, cluster: of(`topology.cluster.x-k8s.io/upgrade-concurrency: "0"`, before),
			want: invalidPrefix + `metadata.annotations[topology.cluster.x-k8s.io/upgrade-concurrency]: Invalid value: "0": must be an integer of at least 1`},
		{reason: "the topology is validated against the class", classes: []client.Object{class(t, "a")}, cluster: of("", `class: a, version: v1.30.0, workers: {machineDeployments: [{class: x, name: a}]}`),
			want: invalidPrefix + `[spec.topology.workers.machineDeployments[0].class: Invalid value: "x": ClusterClass "a" does not define this class of workers, ` +
				`spec.topology.variables: Required value: variable "imageRepository" is required: set a value for it]`},
		{reason: "a new Cluster can be created before its class", cluster: of("", before),
			warnings: []string{`The topology of Cluster default/c could not be validated against its ClusterClass and will not be reconciled until it can be: clusterclasses.cluster.x-k8s.io "a" not found`}},
		{reason: "a new Cluster can be created before its class is reconciled", classes: []client.Object{class(t, "a", unreconciled)}, cluster: of("", before),
			warnings: []string{`The topology of Cluster default/c could not be validated against its ClusterClass and will not be reconciled until it can be: ClusterClass default/a has changed and has not been reconciled yet`}},

		{reason: "an unchanged topology is validated, because the class may have changed", old: of("", before), cluster: of(`a: b`, before),
			classes: []client.Object{class(t, "a", func(c *clusterv1.ClusterClass) {
				c.Status.Variables[0].Definitions[0].Schema.OpenAPIV3Schema = clusterv1.JSONSchemaProps{Type: "integer"}
			})},
			want: invalidPrefix + `spec.topology.variables[0].value: Invalid value: "string": variable "imageRepository": must be of type integer: "string"`},
		{reason: "an unreconciled class does not block writes of other fields", classes: []client.Object{class(t, "a", unreconciled)}, old: of("", before), cluster: of(`a: b`, before)},
		{reason: "health checks and pools are accepted", cluster: of("", before+`, controlPlane: {machineHealthCheck: {enable: true}}, workers: {machinePools: [{class: p, name: p}]}`),
			classes: []client.Object{class(t, "a", func(c *clusterv1.ClusterClass) {
				c.Spec.ControlPlane.MachineInfrastructure = &clusterv1.LocalObjectTemplate{}
				c.Spec.ControlPlane.MachineHealthCheck = &clusterv1.MachineHealthCheckClass{}
				c.Spec.Workers.MachinePools = []clusterv1.MachinePoolClass{{Class: "p"}}
			})},
		},
		{reason: "a deleted class does not block writes of other fields", old: of("", before), cluster: of(`a: b`, before)},
		{reason: "a changed topology requires the class", old: of("", before), cluster: of("", `class: a, version: v1.30.1, `+repository),
			want: invalidPrefix + `spec.topology.class: Invalid value: "a": the ClusterClass does not exist in namespace "default": create it first`},
		{reason: "a changed topology is accepted with a warning while the class is not reconciled", classes: []client.Object{class(t, "a", unreconciled)}, old: of("", before), cluster: of("", `class: a, version: v1.30.1, `+repository),
			warnings: []string{`The topology of Cluster default/c could not be validated against its ClusterClass and will not be reconciled until it can be: ClusterClass default/a has changed and has not been reconciled yet`}},
		{reason: "a topology cannot be removed", old: of("", before), cluster: `{metadata: {name: c, namespace: default}, spec: {}}`,
			want: invalidPrefix + `spec.topology: Forbidden: the topology of a Cluster cannot be removed`},
		{reason: "a topology cannot be added", classes: []client.Object{class(t, "a")}, old: `{metadata: {name: c, namespace: default}, spec: {}}`, cluster: of("", before),
			want: invalidPrefix + `spec.topology.class: Forbidden: a class cannot be added to an existing Cluster; if you know the consequences for its objects, set annotation unsafe.topology.cluster.x-k8s.io/disable-update-class-name-check`},
		{reason: "a topology can be added with the unsafe annotation", classes: []client.Object{class(t, "a")}, old: `{metadata: {name: c, namespace: default}, spec: {}}`,
			cluster: of(`unsafe.topology.cluster.x-k8s.io/disable-update-class-name-check: ""`, before)},
		{reason: "rebase", classes: []client.Object{class(t, "a"), class(t, "b")}, old: of("", before), cluster: of("", `class: b, version: v1.30.0, `+repository)},
		{reason: "rebase to another provider", classes: []client.Object{class(t, "a"), class(t, "b", aws)}, old: of("", before), cluster: of("", `class: b, version: v1.30.0, `+repository),
			want: invalidPrefix + `spec.topology.class: Invalid value: "b": not compatible with the current ClusterClass "a": spec.infrastructure.ref.kind: the kind cannot be changed from "DockerClusterTemplate" to "AWSClusterTemplate": the objects of Clusters would have to be replaced`},
		{reason: "rebase without the current class", classes: []client.Object{class(t, "b")}, old: of("", before), cluster: of("", `class: b, version: v1.30.0, `+repository),
			want: invalidPrefix + `spec.topology.class: Forbidden: the change to ClusterClass "b" cannot be validated without the current ClusterClass "a": clusterclasses.cluster.x-k8s.io "a" not found`},
		{reason: "finalizers of a Cluster that is being deleted can be removed without its class", old: of("", before),
			cluster: `{metadata: {name: c, namespace: default, deletionTimestamp: "2026-01-01T00:00:00Z"}, spec: {topology: {class: a, version: v1.30.1}}}`},
	}
	for _, tt := range tests {
		t.Run(tt.reason, func(t *testing.T) {
			w := newWorld(t, tt.classes...).webhook(t)
			cluster := parse[clusterv1.Cluster](t, tt.cluster)
			warnings, err := w.ValidateCreate(t.Context(), &cluster)
			if tt.old != "" {
				old := parse[clusterv1.Cluster](t, tt.old)
				warnings, err = w.ValidateUpdate(t.Context(), &old, &cluster)
			}
			if text(err) != tt.want {
				t.Errorf("%s: error\n%s\nwant\n%s", tt.reason, text(err), tt.want)
			}
			if diff := cmp.Diff(tt.warnings, []string(warnings)); diff != "" {
				t.Errorf("%s: warnings (-want +got):\n%s", tt.reason, diff)
			}
		})
	}
}

func TestValidateDelete(t *testing.T) {
	if _, err := newWorld(t).webhook(t).ValidateDelete(t.Context(), &clusterv1.Cluster{}); err != nil {
		t.Errorf("a Cluster can always be deleted: %v", err)
	}
}

// owned are the labels of all objects of the topology of Cluster "c".
const owned = `cluster.x-k8s.io/cluster-name: c, topology.cluster.x-k8s.io/owned: ""`

func deployment(t *testing.T, name, version string) client.Object {
	t.Helper()
	return new(parse[clusterv1.MachineDeployment](t, `
metadata: {name: c-`+name+`, namespace: default, labels: {`+owned+`, topology.cluster.x-k8s.io/deployment-name: `+name+`}}
spec: {clusterName: c, selector: {}, template: {spec: {clusterName: c, version: `+version+`, bootstrap: {}, infrastructureRef: {}}}}`))
}

func machine(t *testing.T, name, deployment, version string) client.Object {
	t.Helper()
	return new(parse[clusterv1.Machine](t, `
metadata: {name: `+name+`, namespace: default, labels: {`+owned+`, topology.cluster.x-k8s.io/deployment-name: `+deployment+`}}
spec: {clusterName: c, version: `+version+`, bootstrap: {}, infrastructureRef: {}}`))
}

func pool(t *testing.T, version string) client.Object {
	t.Helper()
	return new(parse[clusterv1.MachinePool](t, `
metadata: {name: c-pool, namespace: default, labels: {`+owned+`}}
spec: {clusterName: c, template: {spec: {clusterName: c, version: `+version+`, bootstrap: {}, infrastructureRef: {}}}}
status: {nodeRefs: [{name: node-1}]}`))
}

func TestUpgrade(t *testing.T) {
	const (
		stable       = `{kind: KubeadmControlPlane, metadata: {name: cp}, spec: {version: v1.30.0}, status: {version: v1.30.0}}`
		notAtVersion = invalidPrefix + `spec.topology.version: Invalid value: "v1.31.0": all parts of the Cluster must have version v1.30.0 before the upgrade: `
	)
	tests := []struct {
		reason       string
		objects      []client.Object
		controlPlane string
		node         string
		version      string
		annotations  string
		want         string
		warnings     []string
		lists        int
	}{
		{reason: "all parts have the old version", controlPlane: stable, node: "v1.30.0", version: "v1.31.0", lists: 3,
			objects: []client.Object{deployment(t, "md", "v1.30.0"), machine(t, "m", "md", "v1.30.0"), pool(t, "v1.30.0")}},
		{reason: "two minor versions", version: "v1.32.0",
			want: invalidPrefix + `spec.topology.version: Invalid value: "v1.32.0": a Cluster at v1.30.0 can be upgraded by one minor version at a time: upgrade to v1.31 first`},
		{reason: "downgrade", version: "v1.29.9", want: invalidPrefix + `spec.topology.version: Invalid value: "v1.29.9": must not be lower than the previous version v1.30.0`},
		{reason: "two minor versions with the unsafe annotation", version: "v1.32.0", annotations: `unsafe.topology.cluster.x-k8s.io/disable-update-version-check: ""`,
			warnings: []string{`The change of version from v1.30.0 to v1.32.0 was not validated because annotation unsafe.topology.cluster.x-k8s.io/disable-update-version-check is set`}},
		{reason: "patch versions can change at any time", version: "v1.30.1", controlPlane: `{kind: KubeadmControlPlane, metadata: {name: cp}, spec: {version: v1.29.0}}`,
			objects: []client.Object{deployment(t, "md", "v1.29.0")}},
		{reason: "the control plane has another version", version: "v1.31.0", lists: 2,
			controlPlane: `{kind: KubeadmControlPlane, metadata: {name: cp}, spec: {version: v1.29.0}, status: {version: v1.29.0}}`,
			want:         notAtVersion + `KubeadmControlPlane cp has version v1.29.0`},
		{reason: "the control plane is being provisioned", version: "v1.31.0", lists: 2,
			controlPlane: `{kind: KubeadmControlPlane, metadata: {name: cp}, spec: {version: v1.30.0}}`,
			want:         notAtVersion + `KubeadmControlPlane cp is being provisioned`},
		{reason: "the control plane is being upgraded", version: "v1.31.0", lists: 2,
			controlPlane: `{kind: KubeadmControlPlane, metadata: {name: cp}, spec: {version: v1.30.0}, status: {version: v1.29.0}}`,
			want:         notAtVersion + `KubeadmControlPlane cp is being upgraded`},
		{reason: "MachineDeployments with an older version", version: "v1.31.0", controlPlane: stable, lists: 3,
			objects: []client.Object{deployment(t, "b", "v1.29.0"), deployment(t, "a", "v1.30.0"), machine(t, "m", "a", "v1.29.0"), deployment(t, "c", "v1.30.0")},
			want:    notAtVersion + `MachineDeployment c-a has Machines with another version, MachineDeployment c-b has version v1.29.0`},
		{reason: "a MachinePool with an older version", version: "v1.31.0", controlPlane: stable, objects: []client.Object{pool(t, "v1.29.0")}, lists: 2,
			want: notAtVersion + `MachinePool c-pool has version v1.29.0`},
		{reason: "Nodes of a MachinePool with an older version", version: "v1.31.0", controlPlane: stable, objects: []client.Object{pool(t, "v1.30.0")}, node: "v1.29.0", lists: 2,
			want: notAtVersion + `MachinePool c-pool: Node node-1 has version v1.29.0`},
		{reason: "build metadata of kubelets is ignored", version: "v1.31.0", controlPlane: stable, objects: []client.Object{pool(t, "v1.30.0")}, node: "v1.30.0+vendor", lists: 2},
		{reason: "a Node that cannot be read is an error", version: "v1.31.0", controlPlane: stable, objects: []client.Object{pool(t, "v1.30.0")}, lists: 2,
			want: `Internal error occurred: reading Node node-1 of MachinePool c-pool: nodes "node-1" not found`},
	}
	for _, tt := range tests {
		t.Run(tt.reason, func(t *testing.T) {
			w := newWorld(t, append(tt.objects, class(t, "a"))...)
			w.controlPlane = tt.controlPlane
			if tt.node != "" {
				w.nodes = map[string]string{"node-1": tt.node}
			}
			old, cluster := parse[clusterv1.Cluster](t, of("", before)), parse[clusterv1.Cluster](t, of(tt.annotations, `class: a, version: `+tt.version+`, `+repository))
			cluster.Spec.ControlPlaneRef = new(parse[clusterv1.Cluster](t, `{spec: {controlPlaneRef: {kind: KubeadmControlPlane, name: cp, namespace: default}}}`)).Spec.ControlPlaneRef
			warnings, err := w.webhook(t).ValidateUpdate(t.Context(), &old, &cluster)
			if text(err) != tt.want {
				t.Errorf("%s: error\n%s\nwant\n%s", tt.reason, text(err), tt.want)
			}
			if diff := cmp.Diff(tt.warnings, []string(warnings)); diff != "" {
				t.Errorf("%s: warnings (-want +got):\n%s", tt.reason, diff)
			}
			if w.reader.lists != tt.lists {
				t.Errorf("%s: %d lists, want %d", tt.reason, w.reader.lists, tt.lists)
			}
		})
	}
}

func TestNewRequiresReaders(t *testing.T) {
	if _, err := New(Options{}); err == nil {
		t.Error("New without readers must fail")
	}
}
