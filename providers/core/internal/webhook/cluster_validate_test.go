package webhook

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
)

const clusterInvalid = `Cluster.cluster.x-k8s.io "c" is invalid: `

// clusterWith returns a Cluster with a topology.
func clusterWith(annotations, topology string) string {
	return `{metadata: {name: c, namespace: default, annotations: {` + annotations + `}}, spec: {topology: {` + topology + `}}}`
}

const (
	repositoryVariable = `variables: [{name: imageRepository, value: a}]`
	topologyBefore     = `classRef: {name: a}, version: v1.30.0, ` + repositoryVariable
)

const minSize = clusterv1.AutoscalerMinSizeAnnotation + `: "1"`

// autoscaled returns workers with fields and annotations, to be added to a topology.
func autoscaled(fields, annotations string) string {
	return `, workers: {machineDeployments: [{class: default-worker, name: md, ` + fields + `metadata: {annotations: {` + annotations + `}}}]}`
}

func immutable(c *clusterv1.ClusterClass) {
	c.Status.Variables[0].Definitions[0].Schema.OpenAPIV3Schema.XValidations = []clusterv1.ValidationRule{{Rule: "self == oldSelf", Message: "cannot be changed"}}
}

func TestClusterValidate(t *testing.T) {
	for _, tt := range []admissionCase{
		{reason: "a Cluster without topology", cluster: `{metadata: {name: c, namespace: default}, spec: {infrastructureRef: {name: a}, clusterNetwork: {pods: {cidrBlocks: [10.0.0.0/16]}}}}`},
		{reason: "all errors are reported together", cluster: `
metadata: {name: a/b, namespace: default}
spec:
  clusterNetwork: {pods: {cidrBlocks: [10.0.0.0/16, x]}, services: {cidrBlocks: [10.0.0.0]}}`,
			want: `Cluster.cluster.x-k8s.io "a/b" is invalid: [` +
				`metadata.name: Invalid value: "a/b": must be a valid label value: a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?'), ` +
				`spec.clusterNetwork.services.cidrBlocks[0]: Invalid value: "10.0.0.0": must be a range of IP addresses in CIDR notation, such as 10.0.0.0/16, ` +
				`spec.clusterNetwork.pods.cidrBlocks[1]: Invalid value: "x": must be a range of IP addresses in CIDR notation, such as 10.0.0.0/16]`},
		{reason: "a valid topology", classes: []client.Object{reconciledClass(t, "a")}, cluster: clusterWith("", topologyBefore)},
		{reason: "a class is required", cluster: clusterWith("", `classRef: {name: ""}, version: v1.30.0`), want: clusterInvalid + `spec.topology.classRef.name: Required value: the name of a ClusterClass is required`},
		{reason: "the version must be valid", classes: []client.Object{reconciledClass(t, "a")}, cluster: clusterWith("", `classRef: {name: a}, version: v1.30, `+repositoryVariable),
			want: clusterInvalid + `spec.topology.version: Invalid value: "v1.30": must be a semantic version with a leading "v", such as v1.30.2`},
		{reason: "the upgrade concurrency must be valid", classes: []client.Object{reconciledClass(t, "a")}, cluster: clusterWith(`topology.cluster.x-k8s.io/upgrade-concurrency: "0"`, topologyBefore),
			want: clusterInvalid + `metadata.annotations[topology.cluster.x-k8s.io/upgrade-concurrency]: Invalid value: "0": must be an integer of at least 1`},
		{reason: "the topology is validated against the class", classes: []client.Object{reconciledClass(t, "a")}, cluster: clusterWith("", `classRef: {name: a}, version: v1.30.0, workers: {machineDeployments: [{class: x, name: a}]}`),
			want: clusterInvalid + `spec.topology.workers.machineDeployments[0].class: Invalid value: "x": ClusterClass "a" does not define this class of workers`},
		{reason: "a required variable", classes: []client.Object{reconciledClass(t, "a", func(c *clusterv1.ClusterClass) {
			c.Status.Variables[0].Definitions[0].Schema.OpenAPIV3Schema.Default = nil
		})}, cluster: clusterWith("", `classRef: {name: a}, version: v1.30.0`),
			want: clusterInvalid + `spec.topology.variables: Required value: variable "imageRepository" is required: set a value for it`},
		{reason: "a new Cluster can be created before its class", cluster: clusterWith("", topologyBefore),
			warnings: []string{`The topology of Cluster default/c could not be validated against its ClusterClass and will not be reconciled until it can be: clusterclasses.cluster.x-k8s.io "a" not found`}},
		{reason: "a new Cluster can be created before its class is reconciled", classes: []client.Object{reconciledClass(t, "a", unreconciledClass)}, cluster: clusterWith("", topologyBefore),
			warnings: []string{`The topology of Cluster default/c could not be validated against its ClusterClass and will not be reconciled until it can be: ClusterClass default/a has changed and has not been reconciled yet`}},

		{reason: "a class that was reconciled after the variables were defaulted", cluster: clusterWith("", `classRef: {name: a}, version: v1.30.0`),
			classes: []client.Object{reconciledClass(t, "a")}},
		{reason: "an unchanged topology is validated, because the class may have changed", old: clusterWith("", topologyBefore), cluster: clusterWith(`a: b`, topologyBefore),
			classes: []client.Object{reconciledClass(t, "a", func(c *clusterv1.ClusterClass) {
				c.Status.Variables[0].Definitions[0].Schema.OpenAPIV3Schema = clusterv1.JSONSchemaProps{Type: "integer"}
			})},
			want: clusterInvalid + `spec.topology.variables[0].value: Invalid value: "string": variable "imageRepository": must be of type integer: "string"`},
		{reason: "an unreconciled class does not block writes of other fields", classes: []client.Object{reconciledClass(t, "a", unreconciledClass)}, old: clusterWith("", topologyBefore), cluster: clusterWith(`a: b`, topologyBefore)},
		{reason: "health checks and pools are accepted", cluster: clusterWith("", topologyBefore+`, controlPlane: {healthCheck: {enabled: true}}, workers: {machinePools: [{class: p, name: p}]}`),
			classes: []client.Object{reconciledClass(t, "a", func(c *clusterv1.ClusterClass) {
				c.Spec.ControlPlane.MachineInfrastructure.TemplateRef = clusterv1.ClusterClassTemplateReference{Name: "a"}
				c.Spec.ControlPlane.HealthCheck.Checks.NodeStartupTimeoutSeconds = new(int32)
				c.Spec.Workers.MachinePools = []clusterv1.MachinePoolClass{{Class: "p"}}
			})},
		},
		{reason: "a deleted class does not block writes of other fields", old: clusterWith("", topologyBefore), cluster: clusterWith(`a: b`, topologyBefore)},
		{reason: "a changed topology requires the class", old: clusterWith("", topologyBefore), cluster: clusterWith("", `classRef: {name: a}, version: v1.30.1, `+repositoryVariable),
			want: clusterInvalid + `spec.topology.classRef.name: Invalid value: "a": the ClusterClass does not exist in namespace "default": create it first`},
		{reason: "a changed topology is accepted with a warning while the class is not reconciled", classes: []client.Object{reconciledClass(t, "a", unreconciledClass)}, old: clusterWith("", topologyBefore), cluster: clusterWith("", `classRef: {name: a}, version: v1.30.1, `+repositoryVariable),
			warnings: []string{`The topology of Cluster default/c could not be validated against its ClusterClass and will not be reconciled until it can be: ClusterClass default/a has changed and has not been reconciled yet`}},
		{reason: "a topology cannot be removed", old: clusterWith("", topologyBefore), cluster: `{metadata: {name: c, namespace: default}, spec: {}}`,
			want: clusterInvalid + `spec.topology: Forbidden: the topology of a Cluster cannot be removed`},
		{reason: "a topology cannot be added", classes: []client.Object{reconciledClass(t, "a")}, old: `{metadata: {name: c, namespace: default}, spec: {}}`, cluster: clusterWith("", topologyBefore),
			want: clusterInvalid + `spec.topology.classRef.name: Forbidden: a class cannot be added to an existing Cluster; if you know the consequences for its objects, set annotation unsafe.topology.cluster.x-k8s.io/disable-update-class-name-check`},
		{reason: "a topology can be added with the unsafe annotation", classes: []client.Object{reconciledClass(t, "a")}, old: `{metadata: {name: c, namespace: default}, spec: {}}`,
			cluster: clusterWith(`unsafe.topology.cluster.x-k8s.io/disable-update-class-name-check: ""`, topologyBefore)},
		{reason: "rebase", classes: []client.Object{reconciledClass(t, "a"), reconciledClass(t, "b")}, old: clusterWith("", topologyBefore), cluster: clusterWith("", `classRef: {name: b}, version: v1.30.0, `+repositoryVariable)},
		{reason: "rebase to another provider", classes: []client.Object{reconciledClass(t, "a"), reconciledClass(t, "b", aws)}, old: clusterWith("", topologyBefore), cluster: clusterWith("", `classRef: {name: b}, version: v1.30.0, `+repositoryVariable),
			want: clusterInvalid + `spec.topology.classRef.name: Invalid value: "b": not compatible with the current ClusterClass "a": spec.infrastructure.templateRef.kind: the kind cannot be changed from "DockerClusterTemplate" to "AWSClusterTemplate": the objects of Clusters would have to be replaced`},
		{reason: "rebase without the current class", classes: []client.Object{reconciledClass(t, "b")}, old: clusterWith("", topologyBefore), cluster: clusterWith("", `classRef: {name: b}, version: v1.30.0, `+repositoryVariable),
			want: clusterInvalid + `spec.topology.classRef.name: Forbidden: the change to ClusterClass "b" cannot be validated without the current ClusterClass "a": clusterclasses.cluster.x-k8s.io "a" not found`},
		{reason: "finalizers of a Cluster that is being deleted can be removed without its class", old: clusterWith("", topologyBefore),
			cluster: `{metadata: {name: c, namespace: default, deletionTimestamp: "2026-01-01T00:00:00Z"}, spec: {topology: {classRef: {name: a}, version: v1.30.1}}}`},
	} {
		t.Run(tt.reason, tt.run)
	}
}

func TestClusterValidateAgainstSharedClasses(t *testing.T) {
	for _, tt := range []admissionCase{
		{reason: "a class in another namespace", classes: []client.Object{classIn(t, "shared")}, cluster: clusterWith("", `classRef: {name: a, namespace: shared}, version: v1.30.0, `+repositoryVariable)},
		{reason: "a class in another namespace that does not exist", classes: []client.Object{reconciledClass(t, "a")}, old: clusterWith("", topologyBefore), cluster: clusterWith("", `classRef: {name: a, namespace: shared}, version: v1.30.0, `+repositoryVariable),
			want: clusterInvalid + `spec.topology.classRef.name: Invalid value: "a": the ClusterClass does not exist in namespace "shared": create it first`},
		{reason: "the namespace of the Cluster may be named", classes: []client.Object{reconciledClass(t, "a")}, old: clusterWith("", topologyBefore), cluster: clusterWith("", `classRef: {name: a, namespace: default}, version: v1.30.0, `+repositoryVariable)},
		{reason: "rebase to a class with the same name in another namespace", classes: []client.Object{reconciledClass(t, "a"), classIn(t, "shared")}, old: clusterWith("", topologyBefore), cluster: clusterWith("", `classRef: {name: a, namespace: shared}, version: v1.30.0, `+repositoryVariable)},
		{reason: "rebase to another provider in another namespace", old: clusterWith("", topologyBefore), cluster: clusterWith("", `classRef: {name: a, namespace: shared}, version: v1.30.0, `+repositoryVariable),
			classes: []client.Object{reconciledClass(t, "a"), reconciledClass(t, "a", aws, func(c *clusterv1.ClusterClass) { c.Namespace = "shared" })},
			want:    clusterInvalid + `spec.topology.classRef.name: Invalid value: "a": not compatible with the current ClusterClass "default/a": spec.infrastructure.templateRef.kind: the kind cannot be changed from "DockerClusterTemplate" to "AWSClusterTemplate": the objects of Clusters would have to be replaced`},
		{reason: "replicas of an autoscaler", classes: []client.Object{reconciledClass(t, "a")}, cluster: clusterWith("", topologyBefore+autoscaled(`replicas: 3, `, minSize)),
			want: clusterInvalid + `spec.topology.workers.machineDeployments[0].replicas: Invalid value: 3: must not be set together with the annotations of the autoscaler (cluster.x-k8s.io/cluster-api-autoscaler-node-group-min-size, cluster.x-k8s.io/cluster-api-autoscaler-node-group-max-size) in metadata.annotations: remove one of them`},
		{reason: "an autoscaler without replicas", classes: []client.Object{reconciledClass(t, "a")}, cluster: clusterWith("", topologyBefore+autoscaled("", minSize))},
		{reason: "a Cluster from before the rule can be changed", classes: []client.Object{reconciledClass(t, "a")}, old: clusterWith("", topologyBefore+autoscaled(`replicas: 3, `, minSize)), cluster: clusterWith("", topologyBefore+autoscaled(`replicas: 3, minReadySeconds: 1, `, minSize))},
		{reason: "an autoscaler according to the class", classes: []client.Object{reconciledClass(t, "a", func(c *clusterv1.ClusterClass) {
			c.Spec.Workers.MachineDeployments[0].Metadata.Annotations = map[string]string{clusterv1.AutoscalerMaxSizeAnnotation: "5"}
		})}, cluster: clusterWith("", topologyBefore+autoscaled(`replicas: 3, `, "")),
			want: clusterInvalid + `spec.topology.workers.machineDeployments[0].replicas: Invalid value: 3: must not be set together with the annotations of the autoscaler (cluster.x-k8s.io/cluster-api-autoscaler-node-group-min-size, cluster.x-k8s.io/cluster-api-autoscaler-node-group-max-size) in the metadata of its class in ClusterClass a: remove one of them`},
		{reason: "a rule about changes of a variable", classes: []client.Object{reconciledClass(t, "a", immutable)}, old: clusterWith("", topologyBefore), cluster: clusterWith("", `classRef: {name: a}, version: v1.30.0, variables: [{name: imageRepository, value: b}]`),
			want: clusterInvalid + `spec.topology.variables[0].value: Invalid value: "b": variable "imageRepository": cannot be changed`},
	} {
		t.Run(tt.reason, tt.run)
	}
}

// admissionCase is a case of the validation of Clusters.
type admissionCase struct {
	reason       string
	classes      []client.Object
	old, cluster string
	want         string
	warnings     []string
}

func (tt admissionCase) run(t *testing.T) {
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
}

// aws changes the provider of a class.
func aws(c *clusterv1.ClusterClass) { c.Spec.Infrastructure.TemplateRef.Kind = "AWSClusterTemplate" }

func TestClusterValidateDelete(t *testing.T) {
	if _, err := newWorld(t).webhook(t).ValidateDelete(t.Context(), &clusterv1.Cluster{}); err != nil {
		t.Errorf("a Cluster can always be deleted: %v", err)
	}
}

// ownedLabels are the labels of all objects of the topology of Cluster "c".
const ownedLabels = `cluster.x-k8s.io/cluster-name: c, topology.cluster.x-k8s.io/owned: ""`

func ownedDeployment(t *testing.T, name, version string) client.Object {
	t.Helper()
	return new(parse[clusterv1.MachineDeployment](t, `
metadata: {name: c-`+name+`, namespace: default, labels: {`+ownedLabels+`, topology.cluster.x-k8s.io/deployment-name: `+name+`}}
spec: {clusterName: c, selector: {}, template: {spec: {clusterName: c, version: `+version+`, bootstrap: {}, infrastructureRef: {}}}}`))
}

func ownedMachine(t *testing.T, name, deployment, version string) client.Object {
	t.Helper()
	return new(parse[clusterv1.Machine](t, `
metadata: {name: `+name+`, namespace: default, labels: {`+ownedLabels+`, topology.cluster.x-k8s.io/deployment-name: `+deployment+`}}
spec: {clusterName: c, version: `+version+`, bootstrap: {}, infrastructureRef: {}}`))
}

func ownedPool(t *testing.T, version string) client.Object {
	t.Helper()
	return new(parse[clusterv1.MachinePool](t, `
metadata: {name: c-pool, namespace: default, labels: {`+ownedLabels+`}}
spec: {clusterName: c, template: {spec: {clusterName: c, version: `+version+`, bootstrap: {}, infrastructureRef: {}}}}
status: {nodeRefs: [{name: node-1}]}`))
}

func TestClusterUpgrade(t *testing.T) {
	const (
		stable       = `{kind: KubeadmControlPlane, metadata: {name: cp}, spec: {version: v1.30.0}, status: {version: v1.30.0}}`
		notAtVersion = clusterInvalid + `spec.topology.version: Invalid value: "v1.31.0": all parts of the Cluster must have version v1.30.0 before the upgrade: `
		unsafe       = `Accepted because annotation unsafe.topology.cluster.x-k8s.io/disable-update-version-check is set: spec.topology.version: `
	)
	listing := func(versions ...string) func(*clusterv1.ClusterClass) {
		return func(c *clusterv1.ClusterClass) { c.Spec.KubernetesVersions = versions }
	}
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
		class        func(*clusterv1.ClusterClass)
	}{
		{reason: "all parts have the old version", controlPlane: stable, node: "v1.30.0", version: "v1.31.0", lists: 3,
			objects: []client.Object{ownedDeployment(t, "md", "v1.30.0"), ownedMachine(t, "m", "md", "v1.30.0"), ownedPool(t, "v1.30.0")}},
		{reason: "two minor versions", version: "v1.32.0",
			want: clusterInvalid + `spec.topology.version: Invalid value: "v1.32.0": a Cluster at v1.30.0 can be upgraded by one minor version at a time: upgrade to v1.31 first`},
		{reason: "downgrade", version: "v1.29.9", want: clusterInvalid + `spec.topology.version: Invalid value: "v1.29.9": must not be lower than the previous version v1.30.0`},
		{reason: "back from an upgrade that has not reached the control plane", version: "v1.29.9",
			controlPlane: `{kind: KubeadmControlPlane, metadata: {name: cp}, spec: {version: v1.29.9}, status: {version: v1.29.9}}`,
			want: clusterInvalid + `spec.topology.version: Invalid value: "v1.29.9": must not be lower than the previous version v1.30.0. ` +
				`KubeadmControlPlane cp still has version v1.29.9: if it rejects v1.30.0, go back with annotation unsafe.topology.cluster.x-k8s.io/disable-update-version-check`},
		{reason: "two minor versions with the unsafe annotation", version: "v1.32.0", annotations: `unsafe.topology.cluster.x-k8s.io/disable-update-version-check: ""`,
			warnings: []string{unsafe + `Invalid value: "v1.32.0": a Cluster at v1.30.0 can be upgraded by one minor version at a time: upgrade to v1.31 first`}},
		{reason: "two minor versions of a class that lists those in between", version: "v1.32.0", controlPlane: stable, lists: 2, class: listing("v1.30.0", "v1.31.0", "v1.32.0")},
		{reason: "two minor versions of a class with an extension that plans upgrades", version: "v1.32.0", controlPlane: stable, lists: 2, class: func(c *clusterv1.ClusterClass) {
			c.Spec.Upgrade.External.GenerateUpgradePlanExtension = "plan.x"
		}},
		{reason: "a version that the class does not list", version: "v1.31.1", controlPlane: stable, class: listing("v1.30.0", "v1.31.0"),
			want: clusterInvalid + `spec.topology.version: Invalid value: "v1.31.1": must be one of spec.kubernetesVersions of ClusterClass a: v1.30.0, v1.31.0`},
		{reason: "the same with the unsafe annotation", version: "v1.31.1", controlPlane: stable, class: listing("v1.30.0", "v1.31.0"),
			annotations: `unsafe.topology.cluster.x-k8s.io/disable-update-version-check: ""`,
			warnings:    []string{unsafe + `Invalid value: "v1.31.1": must be one of spec.kubernetesVersions of ClusterClass a: v1.30.0, v1.31.0`}},
		{reason: "patch versions can change at any time", version: "v1.30.1", controlPlane: `{kind: KubeadmControlPlane, metadata: {name: cp}, spec: {version: v1.29.0}}`,
			objects: []client.Object{ownedDeployment(t, "md", "v1.29.0")}},
		{reason: "the unsafe annotation counts also if a part cannot be read", version: "v1.31.0", controlPlane: stable, lists: 2,
			annotations: `unsafe.topology.cluster.x-k8s.io/disable-update-version-check: ""`, objects: []client.Object{ownedPool(t, "v1.30.0")},
			warnings: []string{unsafe + `Invalid value: "v1.31.0": all parts of the Cluster must have version v1.30.0 before the upgrade: ` +
				`reading Node node-1 of MachinePool c-pool: nodes "node-1" not found`}},
		{reason: "a hook waits for the end of the previous upgrade", version: "v1.31.0", controlPlane: stable, lists: 2,
			annotations: `runtime.cluster.x-k8s.io/pending-hooks: AfterClusterUpgrade`, want: notAtVersion + `hook AfterClusterUpgrade is still to be called`},
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
			objects: []client.Object{ownedDeployment(t, "b", "v1.29.0"), ownedDeployment(t, "a", "v1.30.0"), ownedMachine(t, "m", "a", "v1.29.0"), ownedDeployment(t, "c", "v1.30.0")},
			want:    notAtVersion + `MachineDeployment c-a has Machines with another version, MachineDeployment c-b has version v1.29.0`},
		{reason: "a MachinePool with an older version", version: "v1.31.0", controlPlane: stable, objects: []client.Object{ownedPool(t, "v1.29.0")}, lists: 2,
			want: notAtVersion + `MachinePool c-pool has version v1.29.0`},
		{reason: "Nodes of a MachinePool with an older version", version: "v1.31.0", controlPlane: stable, objects: []client.Object{ownedPool(t, "v1.30.0")}, node: "v1.29.0", lists: 2,
			want: notAtVersion + `MachinePool c-pool: Node node-1 has version v1.29.0`},
		{reason: "build metadata of kubelets is ignored", version: "v1.31.0", controlPlane: stable, objects: []client.Object{ownedPool(t, "v1.30.0")}, node: "v1.30.0+vendor", lists: 2},
		{reason: "a Node that cannot be read is an error", version: "v1.31.0", controlPlane: stable, objects: []client.Object{ownedPool(t, "v1.30.0")}, lists: 2,
			want: `Internal error occurred: reading Node node-1 of MachinePool c-pool: nodes "node-1" not found`},
	}
	for _, tt := range tests {
		t.Run(tt.reason, func(t *testing.T) {
			class := reconciledClass(t, "a")
			if tt.class != nil {
				tt.class(class)
			}
			w := newWorld(t, append(tt.objects, class)...)
			w.controlPlane = tt.controlPlane
			if tt.node != "" {
				w.nodes = map[string]string{"node-1": tt.node}
			}
			old, cluster := parse[clusterv1.Cluster](t, clusterWith("", topologyBefore)), parse[clusterv1.Cluster](t, clusterWith(tt.annotations, `classRef: {name: a}, version: `+tt.version+`, `+repositoryVariable))
			cluster.Spec.ControlPlaneRef = new(parse[clusterv1.Cluster](t, `{spec: {controlPlaneRef: {kind: KubeadmControlPlane, name: cp}}}`)).Spec.ControlPlaneRef
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

// TestClusterUpgradeToFrozenRegistry checks that a version that the KubeadmControlPlane will most likely reject is a warning: only the class
// knows, whose patches may set the repository.
func TestClusterUpgradeToFrozenRegistry(t *testing.T) {
	const warning = "kubeadm of v1.22.0 pulls from the registry k8s.gcr.io, which is frozen: KubeadmControlPlane cp rejects the version " +
		"unless ClusterClass a sets clusterConfiguration.imageRepository. Use a newer patch version, such as v1.22.17"
	for _, tt := range []struct {
		reason, version, controlPlane string
		want                          []string
	}{
		{"images of this version are in the frozen registry", "v1.22.0", `{kind: KubeadmControlPlane, metadata: {name: cp}, spec: {version: v1.21.2}, status: {version: v1.21.2}}`, []string{warning}},
		{"the control plane has a repository", "v1.22.0",
			`{kind: KubeadmControlPlane, metadata: {name: cp}, spec: {version: v1.21.2, kubeadmConfigSpec: {clusterConfiguration: {imageRepository: mine}}}, status: {version: v1.21.2}}`, nil},
		{"the last patch version has another default", "v1.22.17", `{kind: KubeadmControlPlane, metadata: {name: cp}, spec: {version: v1.21.2}, status: {version: v1.21.2}}`, nil},
		{"another kind of control plane", "v1.22.0", `{kind: HostedControlPlane, metadata: {name: cp}, spec: {version: v1.21.2}, status: {version: v1.21.2}}`, nil},
	} {
		t.Run(tt.reason, func(t *testing.T) {
			w := newWorld(t, reconciledClass(t, "a"))
			w.controlPlane = tt.controlPlane
			old := parse[clusterv1.Cluster](t, clusterWith("", `classRef: {name: a}, version: v1.21.2, `+repositoryVariable))
			cluster := parse[clusterv1.Cluster](t, clusterWith("", `classRef: {name: a}, version: `+tt.version+`, `+repositoryVariable))
			cluster.Spec.ControlPlaneRef = new(parse[clusterv1.Cluster](t, `{spec: {controlPlaneRef: {kind: KubeadmControlPlane, name: cp}}}`)).Spec.ControlPlaneRef
			warnings, err := w.webhook(t).ValidateUpdate(t.Context(), &old, &cluster)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tt.want, []string(warnings)); diff != "" {
				t.Errorf("%s: warnings (-want +got):\n%s", tt.reason, diff)
			}
		})
	}
}

func TestNewClusterRequiresReaders(t *testing.T) {
	if _, err := NewCluster(Options{}); err == nil {
		t.Error("New without readers must fail")
	}
}
