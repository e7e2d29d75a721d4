package journey

import (
	"strings"
	"testing"
)

// invalid returns a manifest of object "wrong".
func invalid(apiVersion, kind, spec string) string {
	return "apiVersion: " + apiVersion + "\nkind: " + kind + "\nmetadata: {name: wrong}\nspec: " + spec + "\n"
}

// healthCheckMistakes are invalid MachineHealthChecks.
func healthCheckMistakes() []mistake {
	check := func(spec string) string {
		return invalid("cluster.x-k8s.io/v1beta1", "MachineHealthCheck", "{clusterName: c, "+spec+"}")
	}
	const (
		selector   = "selector: {matchLabels: {a: b}}, "
		conditions = "unhealthyConditions: [{type: Ready, status: Unknown, timeout: 5m}]"
		valid      = selector + conditions
	)
	file := strings.Fields(apply)
	return []mistake{
		{"no Cluster", file, invalid("cluster.x-k8s.io/v1beta1", "MachineHealthCheck", "{"+valid+"}"), []string{"spec.clusterName", "Required"}},
		{"no selector", file, check(conditions), []string{"spec.selector", "Required"}},
		{"an empty selector", file, check("selector: {}, " + conditions), []string{"spec.selector", "must select the Machines to check"}},
		{"an unknown operator", file, check("selector: {matchExpressions: [{key: a, operator: Near}]}, " + conditions), []string{"spec.selector", "Near"}},
		{"Machines of another Cluster", file, check("selector: {matchLabels: {cluster.x-k8s.io/cluster-name: d}}, " + conditions),
			[]string{"spec.selector.matchLabels[cluster.x-k8s.io/cluster-name]", `must be "c"`}},
		{"an unknown status", file, check(selector + "unhealthyConditions: [{type: Ready, status: Bad, timeout: 5m}]"),
			[]string{"spec.checks.unhealthyNodeConditions[0].status", "errors name the fields of MachineHealthCheck as in v1beta2", `"True", "False", "Unknown"`}},
		{"a negative timeout", file, check(selector + "unhealthyConditions: [{type: Ready, status: Unknown, timeout: -5m}]"),
			[]string{"spec.unhealthyConditions[0].timeout", "must not be negative"}},
		{"a timeout without a unit", file, check(selector + "unhealthyConditions: [{type: Ready, status: Unknown, timeout: '300'}]"), []string{"300"}},
		{"a limit that is no number", file, check(valid + ", maxUnhealthy: some"), []string{"spec.remediation.triggerIf.unhealthyLessThanOrEqualTo", "a number or a percentage"}},
		{"a negative limit", file, check(valid + ", maxUnhealthy: -1"), []string{"spec.remediation.triggerIf.unhealthyLessThanOrEqualTo", "must not be negative"}},
		{"a range backwards", file, check(valid + ", unhealthyRange: '[5-3]'"), []string{"spec.remediation.triggerIf.unhealthyInRange", "such as [3-5]"}},
		{"a range that is none", file, check(valid + ", unhealthyRange: all"), []string{"spec.unhealthyRange"}},
		{"a short startup", file, check(valid + ", nodeStartupTimeout: 29s"), []string{"spec.nodeStartupTimeout", "at least 30s, or 0 to disable"}},
		{"a template in another namespace", file, check(valid + ", remediationTemplate: {apiVersion: g/v1, kind: K, name: t, namespace: other}"),
			[]string{"spec.remediationTemplate.namespace", "the namespace of the object"}},
	}
}

// poolOfMachinesMistakes are invalid MachinePools.
func poolOfMachinesMistakes() []mistake {
	pool := func(template, more string) string {
		return invalid("cluster.x-k8s.io/v1beta1", "MachinePool", "{clusterName: c, template: {spec: {clusterName: c, "+template+"}}"+more+"}")
	}
	const (
		data  = "bootstrap: {dataSecretName: d}, "
		infra = "infrastructureRef: {apiVersion: infrastructure.cluster.x-k8s.io/v1alpha1, kind: InMemoryMachinePool, name: p}"
	)
	file := strings.Fields(apply)
	return []mistake{
		{"no bootstrap data", file, pool("bootstrap: {}, "+infra, ""), []string{"spec.template.spec.bootstrap", "either configRef or dataSecretName must be set"}},
		{"no infrastructure", file, pool("bootstrap: {dataSecretName: d}", ""), []string{"spec.template.spec.infrastructureRef", "must reference"}},
		{"a config in another namespace", file, pool("bootstrap: {configRef: {apiVersion: g/v1, kind: K, name: x, namespace: other}}, "+infra, ""),
			[]string{"spec.template.spec.bootstrap.configRef.namespace", "the namespace of the object"}},
		{"infrastructure in another namespace", file, pool(data+"infrastructureRef: {apiVersion: g/v1, kind: K, name: x, namespace: other}", ""),
			[]string{"spec.template.spec.infrastructureRef.namespace", "the namespace of the object"}},
		{"an invalid version", file, pool(data+infra+", version: latest", ""), []string{"spec.template.spec.version", "latest", "such as v1."}},
		{"a negative number of replicas", file, pool(data+infra, ", replicas: -1"), []string{"spec.replicas", "non-negative"}}, // The API server rejects it earlier than the webhook.
		{"a negative time until it is available", file, pool(data+infra, ", minReadySeconds: -1"), []string{"spec.minReadySeconds", "must not be negative"}},
		{"an invalid label", file, invalid("cluster.x-k8s.io/v1beta1", "MachinePool", "{clusterName: c, template: {metadata: {labels: {a: 'b c'}}, spec: {clusterName: c, "+data+infra+"}}}"),
			[]string{"spec.template.metadata.labels", "b c"}},
	}
}

// resourceSetMistakes are invalid ClusterResourceSets.
func resourceSetMistakes() []mistake {
	const api = "addons.cluster.x-k8s.io/v1beta1"
	set := func(spec string) string { return invalid(api, "ClusterResourceSet", spec) }
	const selector = "clusterSelector: {matchLabels: {a: b}}"
	file := strings.Fields(apply)
	patch := func(patch string) []string {
		return []string{"patch", "clusterresourcesets.v1beta1.addons.cluster.x-k8s.io/right", "--type", "merge", "--patch", patch}
	}
	return []mistake{
		{"no selector", file, set("{resources: []}"), []string{"spec.clusterSelector", "Required"}},
		{"an empty selector", file, set("{clusterSelector: {}}"), []string{"spec.clusterSelector", "must select the Clusters"}},
		{"an unknown operator", file, set("{clusterSelector: {matchExpressions: [{key: a, operator: Near}]}}"), []string{"spec.clusterSelector", "Near"}},
		{"an unknown strategy", file, set("{" + selector + ", strategy: Always}"), []string{"spec.strategy", "Always", "ApplyOnce"}},
		{"another kind", file, set("{" + selector + ", resources: [{kind: Pod, name: p}]}"), []string{"spec.resources[0].kind", "Pod", "ConfigMap"}},
		{"a resource without a name", file, set("{" + selector + ", resources: [{kind: Secret, name: ''}]}"), []string{"spec.resources[0].name"}},
		{"a name with a path", file, set("{" + selector + ", resources: [{kind: Secret, name: ../other/s}]}"), []string{"spec.resources[0].name", "../other/s"}},
		{"a resource twice", file, set("{" + selector + ", resources: [{kind: Secret, name: s}, {kind: Secret, name: s}]}"), []string{"spec.resources[1]", "Duplicate", "Secret s"}},
		{"another selector", patch(`{"spec":{"clusterSelector":{"matchLabels":{"a":"c"}}}}`), "", []string{"spec.clusterSelector", "immutable"}},
		{"another strategy", patch(`{"spec":{"strategy":"Reconcile"}}`), "", []string{"spec.strategy", "immutable"}},
		{"the binding of another Cluster", []string{"patch", "clusterresourcesetbindings.v1beta1.addons.cluster.x-k8s.io/right", "--type", "merge", "--patch", `{"spec":{"clusterName":"d"}}`}, "",
			[]string{"spec.clusterName", "immutable"}},
	}
}

// inMemoryMistakes are invalid objects of the in-memory provider.
func inMemoryMistakes() []mistake {
	const api = "infrastructure.cluster.x-k8s.io/v1alpha1"
	vm := func(settings string) string {
		return "{template: {behaviour: {vm: {provisioning: {" + settings + "}}}}"
	}
	file := strings.Fields(apply)
	return []mistake{
		{"a negative number of machines", file, invalid(api, "InMemoryMachinePool", "{replicas: -1, template: {}}"), []string{"spec.replicas", "must not be negative"}},
		{"a negative duration", file, invalid(api, "InMemoryMachinePool", vm("startupDuration: -1s")+"}"), []string{"spec.template.behaviour.vm.provisioning.startupDuration", "must not be negative"}},
		{"a jitter that is no number", file, invalid(api, "InMemoryMachinePool", vm("startupDuration: 1s, startupJitter: some")+"}"),
			[]string{"spec.template.behaviour.vm.provisioning.startupJitter", "such as 0.2"}},
		{"a negative number in a template", file, invalid(api, "InMemoryMachinePoolTemplate", "{template: {spec: {replicas: -1, template: {}}}}"), []string{"spec.template.spec.replicas", "must not be negative"}},
		{"an invalid version of a hosted control plane", file, invalid(api, "InMemoryCluster", "{hostedControlPlane: {version: latest}}"), []string{"spec.hostedControlPlane.version", "such as v1."}},
		{"an invalid failure domain", file, invalid(api, "InMemoryCluster", "{failureDomains: {'rack 1': {controlPlane: true}}}"), []string{"spec.failureDomains[rack 1]", "valid label value"}},
		{"invalid faults", file, "apiVersion: " + api + "\nkind: InMemoryCluster\nmetadata: {name: wrong, annotations: {inmemorycluster.infrastructure.cluster.x-k8s.io/faults: '{'}}\nspec: {}\n",
			[]string{"metadata.annotations[inmemorycluster.infrastructure.cluster.x-k8s.io/faults]"}},
	}
}

// kubeadmMistakes are invalid KubeadmConfigs, as MachinePools use them too, and control planes with external etcd.
func kubeadmMistakes() []mistake {
	config := func(spec string) string { return invalid("bootstrap.cluster.x-k8s.io/v1beta1", "KubeadmConfig", spec) }
	plane := func(etcd string) string {
		return invalid("controlplane.cluster.x-k8s.io/v1beta1", "KubeadmControlPlane", "{version: v1.30.5, machineTemplate: {infrastructureRef: {apiVersion: g/v1, kind: K, name: t}}, "+
			"kubeadmConfigSpec: {clusterConfiguration: {etcd: "+etcd+"}}}")
	}
	const external = "external: {endpoints: ['https://10.0.0.5:2379'], caFile: ca, certFile: c, keyFile: k}"
	file := strings.Fields(apply)
	return []mistake{
		{"a file with two contents", file, config("{files: [{path: /a, content: x, contentFrom: {secret: {name: s, key: k}}}]}"), []string{"spec.files[0]", "mutually exclusive"}},
		{"a file of a Secret without a name", file, config("{files: [{path: /a, contentFrom: {secret: {name: '', key: k}}}]}"), []string{"spec.files[0].contentFrom.secret.name", "Required"}},
		{"a path twice", file, config("{files: [{path: /a}, {path: /a}]}"), []string{"spec.files[1].path", "must be unique"}},
		{"a user with two passwords", file, config("{users: [{name: u, passwd: x, passwdFrom: {secret: {name: s, key: k}}}]}"), []string{"spec.users[0]", "mutually exclusive"}},
		{"an unknown format", file, config("{format: toml}"), []string{"spec.format", "toml", "cloud-config"}},
		{"external etcd without a key", file, plane("{external: {endpoints: ['https://10.0.0.5:2379'], caFile: ca, certFile: c}}"), []string{"etcd.external.keyFile", "Required"}},
		{"external etcd without endpoints", file, plane("{external: {caFile: ca, certFile: c, keyFile: k}}"), []string{"etcd.external.endpoints", "Required"}},
		{"a member of external etcd that is no URL", file, plane("{external: {endpoints: ['10.0.0.5:2379'], caFile: ca, certFile: c, keyFile: k}}"),
			[]string{"spec.kubeadmConfigSpec.clusterConfiguration.etcd.external.endpoints[0]", "such as https://"}},
		{"external and local etcd", file, plane("{local: {}, " + external + "}"), []string{"spec.kubeadmConfigSpec.clusterConfiguration.etcd.local", "cannot have both"}},
	}
}

// topologyMistakes are invalid pools and health checks in the topology of a Cluster.
func topologyMistakes() []mistake {
	file := strings.Fields(apply)
	pools := func(pools string) string {
		return manifest("wrong", topology+"    workers: {machinePools: ["+pools+"]}\n")
	}
	check := func(check string) string {
		return manifest("wrong", topology+"    controlPlane: {machineHealthCheck: {"+check+"}}\n")
	}
	const conditions = "unhealthyConditions: [{type: Ready, status: Unknown, timeout: 5m}]"
	return []mistake{
		{"a pool of an unknown class", file, pools("{class: gpu, name: p}"), []string{"spec.topology.workers.machinePools[0].class", "gpu"}},
		{"a pool without a name", file, pools("{class: default-worker}"), []string{"spec.topology.workers.machinePools[0].name", "Required"}},
		{"a pool twice", file, pools("{class: default-worker, name: p}, {class: default-worker, name: p}"), []string{"spec.topology.workers.machinePools[1].name", "Duplicate"}},
		{"a name that is no label value", file, pools("{class: default-worker, name: 'p q'}"), []string{"spec.topology.workers.machinePools[0].name", "label value"}},
		{"a health check without conditions", file, check("maxUnhealthy: 40%"), []string{"spec.topology.controlPlane.machineHealthCheck.unhealthyConditions", "Required"}},
		{"a limit that is no number", file, check(conditions + ", maxUnhealthy: some"), []string{"spec.topology.controlPlane.healthCheck.remediation.triggerIf.unhealthyLessThanOrEqualTo", "a percentage"}},
		{"a short startup", file, check(conditions + ", nodeStartupTimeout: 1s"), []string{"spec.topology.controlPlane.machineHealthCheck.nodeStartupTimeout", "at least 30s"}},
	}
}

// TestInvalidFieldsAreRejected checks, for every field of these kinds that has rules, that the error names it and says what is valid. Those
// of IPAM are in TestIPAMMistakesAreRejected.
func TestInvalidFieldsAreRejected(t *testing.T) {
	t.Parallel()
	w := shared.World(t)
	w.Class(w.Tools.ProjectTemplate())
	kubectl := func(input string, args ...string) Result {
		return w.Tools.Kubectl(t.Context(), input, append([]string{"--kubeconfig", w.Kubeconfig, "--namespace", w.Namespace}, args...)...)
	}
	right := kubectl(`
apiVersion: addons.cluster.x-k8s.io/v1beta1
kind: ClusterResourceSet
metadata: {name: right}
spec: {clusterSelector: {matchLabels: {a: b}}}
---
apiVersion: addons.cluster.x-k8s.io/v1beta1
kind: ClusterResourceSetBinding
metadata: {name: right}
spec: {clusterName: right}
`, strings.Fields(apply)...)
	if right.Failed {
		t.Fatal(right)
	}
	for kind, mistakes := range map[string][]mistake{
		"MachineHealthCheck": healthCheckMistakes(), "MachinePool": poolOfMachinesMistakes(), "ClusterResourceSet": resourceSetMistakes(),
		"in-memory": inMemoryMistakes(), "kubeadm": kubeadmMistakes(), "topology": topologyMistakes(),
	} {
		for _, tc := range mistakes {
			t.Run(kind+": "+tc.reason, func(t *testing.T) { rejected(t, kubectl(tc.input, tc.args...), tc.words...) })
		}
	}
	left := kubectl("", "get", "machinehealthchecks,machinepools,clusterresourcesets,inmemorymachinepools,inmemorymachinepooltemplates,inmemoryclusters,"+
		"kubeadmconfigs,kubeadmcontrolplanes,clusters", "--output", "name")
	if left.Failed || strings.Contains(left.Out, "/wrong") {
		t.Errorf("mistakes created objects: %s", left)
	}
}
