package webhook

import (
	"encoding/json"
	"strings"
	"testing"

	applypatch "github.com/evanphx/json-patch/v5"
	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"
)

// written returns an object of v1beta1 as a client writes it.
func written(kind, spec string) string { return writtenWith("", kind, spec) }

// writtenWith is written with more metadata.
func writtenWith(metadata, kind, spec string) string {
	return "{apiVersion: cluster.x-k8s.io/v1beta1, kind: " + kind + ", metadata: {name: x, namespace: ns" + metadata + "}, spec: " + spec + "}"
}

// machineSpec returns the spec of a Machine of v1beta1, with more fields.
func machineSpec(more string) string {
	return "{clusterName: c, bootstrap: {configRef: {apiVersion: g.io/v1, kind: C, name: b}}, infrastructureRef: {apiVersion: g.io/v1, kind: I, name: i}" + more + "}"
}

// templateSpec returns a spec with a template of Machines of v1beta1, with more fields.
func templateSpec(machine, more string) string {
	return "{clusterName: c, selector: {}, template: {spec: " + machineSpec(machine) + "}" + more + "}"
}

const (
	checkSpec = "clusterName: c, selector: {matchLabels: {a: b}}"
	condition = "unhealthyConditions: [{type: Ready, status: Unknown, timeout: 5m}]"
	// otherwhere is a reference to another namespace.
	otherwhere = "{apiVersion: g.io/v1, kind: KTemplate, name: t, namespace: other}"
)

// classSpec returns the spec of a ClusterClass of v1beta1. namespace is part of all references; worker is part of the workers.
func classSpec(namespace, worker string) string {
	ref := func(kind string) string {
		return "{apiVersion: g.io/v1, kind: " + kind + ", name: a" + namespace + "}"
	}
	return "{infrastructure: {ref: " + ref("CTemplate") + "}, controlPlane: {ref: " + ref("PTemplate") + ", machineInfrastructure: {ref: " + ref("MTemplate") + "}}," +
		"workers: {machineDeployments: [{class: w, template: {bootstrap: {ref: " + ref("BTemplate") + "}, infrastructure: {ref: " + ref("MTemplate") + "}}" + worker + "}]}}"
}

// defaulted calls the defaulting webhook, and returns its patches as lines.
func defaulted(t *testing.T, r registered, object, old string) (patches []string, after string) {
	t.Helper()
	response := r.call(t, "mutate", object, old)
	if !response.Allowed {
		t.Fatalf("refused: %s", response.Result.Message)
	}
	raw, err := yaml.YAMLToJSON([]byte(object))
	if err != nil || len(response.Patch) == 0 {
		return nil, object
	}
	var operations []struct {
		Op, Path string
		Value    json.RawMessage
	}
	if err := json.Unmarshal(response.Patch, &operations); err != nil {
		t.Fatal(err)
	}
	for _, o := range operations {
		patches = append(patches, o.Op+" "+strings.TrimPrefix(o.Path, "/spec/")+" "+string(o.Value))
	}
	patch, err := applypatch.DecodePatch(response.Patch)
	if err != nil {
		t.Fatal(err)
	}
	if raw, err = patch.Apply(raw); err != nil {
		t.Fatal(err)
	}
	return patches, string(raw)
}

// Objects of v1beta1 have the defaults that they always had. Nothing else changes: no field that conversion writes in another form, and no
// annotation.
func TestDefaultsOfV1Beta1(t *testing.T) {
	const label = `add /metadata/labels {"cluster.x-k8s.io/cluster-name":"c"}`
	template := func(name string) string {
		return `add template/metadata {"labels":{"cluster.x-k8s.io/cluster-name":"c","cluster.x-k8s.io/` + name + `":"x"}}`
	}
	for _, tc := range []struct {
		reason, object, old string
		want                []string
	}{
		{"a Machine", written("Machine", machineSpec(", version: 1.30.0, nodeDrainTimeout: 60s")), "", []string{
			label, `add bootstrap/configRef/namespace "ns"`, `add infrastructureRef/namespace "ns"`, `add nodeDeletionTimeout "10s"`, `replace version "v1.30.0"`}},
		{"a timeout that is less than a second", written("Machine", machineSpec(", nodeDeletionTimeout: 500ms")), "", []string{
			label, `add bootstrap/configRef/namespace "ns"`, `add infrastructureRef/namespace "ns"`}},
		{"a Machine with fields of v1beta2 in an annotation", writtenWith(`, annotations: {cluster.x-k8s.io/conversion-data: '{"apiVersion":"cluster.x-k8s.io/v1beta2","kind":"Machine",`+
			`"spec":{"clusterName":"c","taints":[{"key":"a","effect":"NoSchedule","propagation":"Always"}]}}'}`, "Machine", machineSpec("")), "", []string{
			label, `add bootstrap/configRef/namespace "ns"`, `add infrastructureRef/namespace "ns"`, `add nodeDeletionTimeout "10s"`}},
		{"a MachineSet", written("MachineSet", templateSpec("", ", minReadySeconds: 5")), "", []string{
			label, `add deletePolicy "Random"`, `add replicas 1`, `add selector/matchLabels {"cluster.x-k8s.io/set-name":"x"}`,
			`add template/metadata {"labels":{"cluster.x-k8s.io/set-name":"x"}}`}},
		{"a MachineDeployment", written("MachineDeployment", templateSpec("", ", strategy: {}")), "", []string{
			label, `add minReadySeconds 0`, `add progressDeadlineSeconds 600`, `add replicas 1`, `add revisionHistoryLimit 1`,
			`add selector/matchLabels {"cluster.x-k8s.io/cluster-name":"c","cluster.x-k8s.io/deployment-name":"x"}`,
			`add strategy/rollingUpdate {"maxSurge":1,"maxUnavailable":0}`, `add strategy/type "RollingUpdate"`, template("deployment-name")}},
		{"what is set is kept", written("MachineDeployment", templateSpec(", nodeDrainTimeout: 90s", ", replicas: 0, minReadySeconds: 2, revisionHistoryLimit: 3, progressDeadlineSeconds: 4,"+
			"strategy: {type: OnDelete, rollingUpdate: {deletePolicy: Oldest}}, selector: {matchLabels: {a: b}}")), "", []string{
			label, `add selector/matchLabels/cluster.x-k8s.io~1cluster-name "c"`, `add template/metadata {"labels":{"cluster.x-k8s.io/cluster-name":"c"}}`}},
		{"replicas of the cluster autoscaler", writtenWith(", annotations: {cluster.x-k8s.io/cluster-api-autoscaler-node-group-min-size: '2', cluster.x-k8s.io/cluster-api-autoscaler-node-group-max-size: '4'}",
			"MachineSet", templateSpec("", ", deletePolicy: Newest, selector: {matchLabels: {a: b}}")), written("MachineSet", templateSpec("", ", replicas: 3")), []string{
			label, `add replicas 3`}},
		{"a MachinePool", written("MachinePool", templateSpec("", "")), "", []string{
			label, `add minReadySeconds 0`, `add replicas 1`, `add template/spec/bootstrap/configRef/namespace "ns"`, `add template/spec/infrastructureRef/namespace "ns"`}},
		{"a MachineHealthCheck", written("MachineHealthCheck", "{"+checkSpec+", remediationTemplate: {name: r}, unhealthyConditions: [{type: Ready, status: Unknown, timeout: 90s}]}"), "", []string{
			label, `add maxUnhealthy "100%"`, `add nodeStartupTimeout "10m0s"`, `add remediationTemplate/namespace "ns"`}},
		{"no startup timeout", written("MachineHealthCheck", "{"+checkSpec+", maxUnhealthy: 1, nodeStartupTimeout: 0s}"), "", []string{label}},
		{"a Cluster", written("Cluster", "{infrastructureRef: {name: i}, controlPlaneRef: {name: c, namespace: other}, paused: false}"), "", []string{
			`add infrastructureRef/namespace "ns"`}},
		{"a topology", written("Cluster", "{topology: {class: a, version: 1.30.0, workers: {machineDeployments: [{class: default-worker, name: w, strategy: {}, nodeDrainTimeout: 60s}]}}}"), "", []string{
			`add topology/variables [{"name":"imageRepository","value":"registry.k8s.io"}]`, `replace topology/version "v1.30.0"`}},
		{"a class", written("ClusterClass", classSpec("", "")), "", []string{
			`add controlPlane/machineInfrastructure/ref/namespace "ns"`, `add controlPlane/ref/namespace "ns"`, `add infrastructure/ref/namespace "ns"`,
			`replace workers/machineDeployments [{"class":"w","template":{"bootstrap":{"ref":{"apiVersion":"g.io/v1","kind":"BTemplate","name":"a","namespace":"ns"}},` +
				`"infrastructure":{"ref":{"apiVersion":"g.io/v1","kind":"MTemplate","name":"a","namespace":"ns"}}}}]`}},
	} {
		t.Run(tc.reason, func(t *testing.T) {
			r := register(t, newWorld(t, classIn(t, "ns")))
			got, after := defaulted(t, r, tc.object, tc.old)
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("patches (-want +got):\n%s", diff)
			}
			if again, _ := defaulted(t, r, after, tc.old); again != nil {
				t.Errorf("the second time: %v", again)
			}
		})
	}
}

// What only v1beta1 can express is validated as it was written.
func TestRulesOfV1Beta1(t *testing.T) {
	topology := func(spec string) string {
		return written("Cluster", "{topology: {class: a, version: v1.30.0, "+spec+"}}")
	}
	check := func(more string) string { return written("MachineHealthCheck", "{"+checkSpec+", "+more+"}") }
	const here = `.namespace: Invalid value: "other": must be "ns", the namespace of the object that refers to it`
	for _, tc := range []struct{ reason, object, want string }{
		{"a config in another namespace", written("Machine", "{clusterName: c, bootstrap: {configRef: "+otherwhere+"}, infrastructureRef: {}}"), "spec.bootstrap.configRef" + here},
		{"a machine in another namespace", written("Machine", "{clusterName: c, bootstrap: {dataSecretName: d}, infrastructureRef: "+otherwhere+"}"), "spec.infrastructureRef" + here},
		{"no bootstrap data", written("Machine", "{clusterName: c, bootstrap: {}, infrastructureRef: {apiVersion: g.io/v1, kind: K, name: i}}"), "spec.bootstrap: Required value: either configRef or dataSecretName must be set"},
		{"an empty version", written("MachineSet", templateSpec(", version: ''", "")), `spec.template.spec.version: Invalid value: "": must be a Kubernetes version`},
		{"a negative limit", written("MachineDeployment", templateSpec("", ", revisionHistoryLimit: -1")), "spec.revisionHistoryLimit: Invalid value: -1: must not be negative"},
		{"a MachinePool without infrastructure", written("MachinePool", "{clusterName: c, template: {spec: {clusterName: c, bootstrap: {dataSecretName: d}, infrastructureRef: {kind: K, name: i}}}}"), "spec.template.spec.infrastructureRef: Required value: must reference an infrastructure machine pool, with apiVersion, kind and name"},
		{"a MachinePool without data", written("MachinePool", "{clusterName: c, template: {spec: {clusterName: c, bootstrap: {}, infrastructureRef: {apiVersion: g.io/v1, kind: K, name: i}}}}"), "spec.template.spec.bootstrap: Required value"},
		{"a pool in another namespace", written("MachinePool", "{clusterName: c, template: {spec: {clusterName: c, bootstrap: {dataSecretName: d}, infrastructureRef: "+otherwhere+"}}}"), "spec.template.spec.infrastructureRef" + here},
		{"a startup that is too short", check("nodeStartupTimeout: 29900ms"), `spec.nodeStartupTimeout: Invalid value: "29.9s": must be at least 30s, or 0 to disable the timeout`},
		{"a startup that is hardly negative", check("nodeStartupTimeout: -1ms"), `spec.nodeStartupTimeout: Invalid value: "-1ms": must be at least 30s`},
		{"a timeout that is hardly negative", check("unhealthyConditions: [{type: Ready, status: Unknown, timeout: -1ms}]"), `spec.unhealthyConditions[0].timeout: Invalid value: "-1ms": must not be negative`},
		{"a negative timeout of a Machine's condition", check("unhealthyMachineConditions: [{type: NodeReady, status: Unknown, timeout: -5m}]"), `spec.unhealthyMachineConditions[0].timeout: Invalid value: "-5m0s": must not be negative`},
		{"remediation in another namespace", check(condition + ", remediationTemplate: " + otherwhere), "spec.remediationTemplate" + here},
		{"infrastructure in another namespace", written("Cluster", "{infrastructureRef: "+otherwhere+"}"), "spec.infrastructureRef" + here},
		{"a control plane in another namespace", written("Cluster", "{controlPlaneRef: "+otherwhere+"}"), "spec.controlPlaneRef" + here},
		{"an empty topology", written("Cluster", "{topology: {class: '', version: ''}}"), "spec.topology.class: Required value: the name of a ClusterClass is required"},
		{"a check of the control plane", topology("controlPlane: {machineHealthCheck: {nodeStartupTimeout: 1s}}"), `spec.topology.controlPlane.machineHealthCheck.nodeStartupTimeout: Invalid value: "1s": must be at least 30s`},
		{"a check of workers", topology("workers: {machineDeployments: [{class: default-worker, name: w, machineHealthCheck: {" + condition + ", remediationTemplate: " + otherwhere + "}}]}"),
			"spec.topology.workers.machineDeployments[0].machineHealthCheck.remediationTemplate" + here},
		{"templates in another namespace", written("ClusterClass", classSpec(", namespace: other", "")), "spec.workers.machineDeployments[0].template.bootstrap.ref" + here},
		{"a check of a class", written("ClusterClass", classSpec("", ", machineHealthCheck: {nodeStartupTimeout: 1s}")), `spec.workers.machineDeployments[0].machineHealthCheck.nodeStartupTimeout: Invalid value: "1s"`},
		{"a check without conditions", written("ClusterClass", classSpec("", ", machineHealthCheck: {}")), "spec.workers.machineDeployments[0].machineHealthCheck.unhealthyConditions: Required value: at least one condition or nodeStartupTimeout"},
		{"names without a text", written("ClusterClass", classSpec("", ", namingStrategy: {template: ''}")), `spec.workers.machineDeployments[0].namingStrategy.template: Invalid value: "": must not be empty`},
		{"an empty URL", "{apiVersion: runtime.cluster.x-k8s.io/v1alpha1, kind: ExtensionConfig, metadata: {name: x}, spec: {clientConfig: {url: '', service: {name: s, namespace: ns}}}}", `spec.clientConfig.url: Invalid value: "": must be a URL`},
		{"an empty path", "{apiVersion: runtime.cluster.x-k8s.io/v1alpha1, kind: ExtensionConfig, metadata: {name: x}, spec: {clientConfig: {service: {name: s, namespace: ns, path: ''}}}}", `spec.clientConfig.service.path: Invalid value: "": must be the path of a URL`},
		{"a prefix that would be 24 in 32 bits", "{apiVersion: ipam.cluster.x-k8s.io/v1beta1, kind: IPAddress, metadata: {name: x, namespace: ns}, spec: {claimRef: {name: c}, poolRef: {apiGroup: g, kind: K, name: p}, address: 10.0.0.5, prefix: 4294967320}}",
			"spec.prefix: Invalid value: 4294967320: must be between 0 and 128"},
		{"the oldest version of the same", "{apiVersion: ipam.cluster.x-k8s.io/v1alpha1, kind: IPAddress, metadata: {name: x, namespace: ns}, spec: {claimRef: {name: c}, poolRef: {apiGroup: g, kind: K, name: p}, address: 10.0.0.5, prefix: 4294967320}}",
			"spec.prefix: Invalid value: 4294967320: must be between 0 and 128"},
		{"what v1beta2 has, too", written("MachineHealthCheck", "{"+checkSpec+", maxUnhealthy: some}"), "unhealthyLessThanOrEqualTo: Invalid value: \"some\""},
	} {
		t.Run(tc.reason, func(t *testing.T) {
			r := register(t, newWorld(t, classIn(t, "ns")))
			object := tc.object
			if !strings.Contains(object, "IPAddress") { // They have no defaults.
				_, object = defaulted(t, r, object, "")
			}
			response := r.call(t, "validate", object, "")
			if response.Allowed || !strings.Contains(response.Result.Message, tc.want) {
				t.Errorf("%t, %s; want %s", response.Allowed, response.Result.Message, tc.want)
			}
			if response := r.call(t, "validate", object, object); strings.Contains(tc.want, "namespace:") && !response.Allowed {
				t.Errorf("what is stored prevents other changes: %s", response.Result.Message)
			}
		})
	}
}

// A value that is no text has a clear error, before the object is converted.
func TestWrongTypesOfV1Beta1(t *testing.T) {
	r := register(t, newWorld(t))
	for object, want := range map[string]string{
		written("Machine", machineSpec(", version: 1.30")):                                                                        "spec.version of type string: the value must be a text: quote it",
		written("Machine", machineSpec(", nodeDrainTimeout: soon")):                                                               `invalid duration "soon"`,
		"{apiVersion: addons.cluster.x-k8s.io/v1beta1, kind: ClusterResourceSet, metadata: {name: x}, spec: {strategy: [Apply]}}": "decoding ClusterResourceSet ns/x: json: cannot unmarshal array into Go struct field ClusterResourceSetSpec.spec.strategy",
	} {
		response := r.call(t, "mutate", object, "")
		if response.Allowed || !strings.Contains(response.Result.Message, want) {
			t.Errorf("%s: %s, want %s", object, response.Result.Message, want)
		}
	}
}
