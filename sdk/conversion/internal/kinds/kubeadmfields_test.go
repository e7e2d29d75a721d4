package kinds

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"

	bootstrapv1beta1 "sigs.k8s.io/cluster-api/api/bootstrap/v1beta1"
	bootstrapv1 "sigs.k8s.io/cluster-api/api/bootstrap/v1beta2"
	"sigs.k8s.io/cluster-api/sdk/conversion/internal/lossless"
)

// parse reads an object, with int64 as numbers.
func parse(t *testing.T, kind, document string) object {
	t.Helper()
	tree := object{}
	if err := yaml.Unmarshal([]byte(document), &tree); err != nil {
		t.Fatal(err)
	}
	tree["metadata"] = object{"name": "a", "namespace": "b"}
	return normal(t, tree, byName(nil)[kind].Spoke.New())
}

// conversion is how fields of v1beta1 become those of v1beta2, and back.
type conversion struct {
	kind       string
	spoke, hub string
	// lossy is set if clients of v1beta1 would not get back what they wrote, if it were not kept.
	lossy bool
}

func conversionsOfConfigs() map[string]conversion {
	return map[string]conversion{
		"flags are sorted, and may have no value": {
			kind: "KubeadmConfig",
			spoke: `{spec: {clusterConfiguration: {apiServer: {extraArgs: {v: "4", a: ""}}, etcd: {local: {extraArgs: {b: c}}}},
				joinConfiguration: {nodeRegistration: {kubeletExtraArgs: {k2: "1", k1: "2"}}}}}`,
			hub: `{spec: {clusterConfiguration: {apiServer: {extraArgs: [{name: a, value: ""}, {name: v, value: "4"}]},
				etcd: {local: {extraArgs: [{name: b, value: c}]}}},
				joinConfiguration: {nodeRegistration: {kubeletExtraArgs: [{name: k1, value: "2"}, {name: k2, value: "1"}]}}}}`,
		},
		"the timeout of the control plane is that of init and join": {
			kind:  "KubeadmConfig",
			spoke: `{spec: {clusterConfiguration: {apiServer: {timeoutForControlPlane: 5m}}}}`,
			hub: `{spec: {initConfiguration: {timeouts: {controlPlaneComponentHealthCheckSeconds: 300}},
				joinConfiguration: {timeouts: {controlPlaneComponentHealthCheckSeconds: 300}}}}`,
		},
		"the timeout of the discovery is that of the TLS bootstrap": {
			kind:  "KubeadmConfig",
			spoke: `{spec: {joinConfiguration: {discovery: {timeout: 1m30s}}}}`,
			hub:   `{spec: {joinConfiguration: {timeouts: {tlsBootstrapSeconds: 90}}}}`,
		},
		"durations are whole seconds": {
			kind:  "KubeadmConfig",
			spoke: `{spec: {initConfiguration: {bootstrapTokens: [{token: abcdef.0123456789abcdef, ttl: 1h0m1.9s}]}}}`,
			hub:   `{spec: {initConfiguration: {bootstrapTokens: [{token: abcdef.0123456789abcdef, ttlSeconds: 3601}]}}}`,
			lossy: true,
		},
		"what kubeadm gets from the Cluster is dropped": {
			kind: "KubeadmConfig",
			spoke: `{spec: {clusterConfiguration: {apiVersion: kubeadm.k8s.io/v1beta3, kind: ClusterConfiguration, clusterName: x,
				kubernetesVersion: v1.30.0, networking: {podSubnet: 10.0.0.0/8}, imageRepository: r},
				joinConfiguration: {apiVersion: kubeadm.k8s.io/v1beta3, kind: JoinConfiguration}, useExperimentalRetryJoin: true}}`,
			hub:   `{spec: {clusterConfiguration: {imageRepository: r}}}`,
			lossy: true,
		},
		"empty configurations are dropped, except for what makes a machine join as a control plane machine": {
			kind:  "KubeadmConfig",
			spoke: `{spec: {initConfiguration: {}, joinConfiguration: {controlPlane: {}, nodeRegistration: {taints: []}}}}`,
			hub:   `{spec: {joinConfiguration: {controlPlane: {}, nodeRegistration: {taints: []}}}}`,
			lossy: true,
		},
		"empty texts in lists are dropped": {
			kind: "KubeadmConfig",
			spoke: `{spec: {preKubeadmCommands: ["", a], users: [{name: u, sshAuthorizedKeys: [""]}], mounts: [[a, ""]],
				clusterConfiguration: {apiServer: {certSANs: ["", x]}}}}`,
			hub: `{spec: {preKubeadmCommands: [a], users: [{name: u}], mounts: [[a, ""]],
				clusterConfiguration: {apiServer: {certSANs: [x]}}}}`,
			lossy: true,
		},
		"conditions and failures are those of v1beta1": {
			kind: "KubeadmConfig",
			spoke: `{status: {ready: true, dataSecretName: s, observedGeneration: 2, failureReason: r, failureMessage: m,
				conditions: [{type: Ready, status: "False", severity: Info, lastTransitionTime: "2026-01-01T00:00:00Z", reason: x}]}}`,
			hub: `{status: {initialization: {dataSecretCreated: true}, dataSecretName: s, observedGeneration: 2, deprecated: {v1beta1: {
				failureReason: r, failureMessage: m,
				conditions: [{type: Ready, status: "False", severity: Info, lastTransitionTime: "2026-01-01T00:00:00Z", reason: x}]}}}}`,
		},
		"a template": {
			kind:  "KubeadmConfigTemplate",
			spoke: `{spec: {template: {metadata: {labels: {l: ""}}, spec: {users: [{name: u, groups: g}], mounts: [[a, b]]}}}}`,
			hub:   `{spec: {template: {metadata: {labels: {l: ""}}, spec: {users: [{name: u, groups: g}], mounts: [[a, b]]}}}}`,
		},
	}
}

func conversionsOfControlPlanes() map[string]conversion {
	return map[string]conversion{
		"a control plane": {
			kind: "KubeadmControlPlane",
			spoke: `{spec: {replicas: 3, version: v1.30.0, rolloutBefore: {certificatesExpiryDays: 21}, rolloutAfter: "2026-01-01T00:00:00Z",
				rolloutStrategy: {type: RollingUpdate, rollingUpdate: {maxSurge: 0}},
				remediationStrategy: {maxRetry: 5, retryPeriod: 1m, minHealthyPeriod: 2h},
				machineTemplate: {metadata: {labels: {a: b}}, nodeDrainTimeout: 0s, nodeVolumeDetachTimeout: 2s, nodeDeletionTimeout: 3s,
				infrastructureRef: {apiVersion: infrastructure.cluster.x-k8s.io/v1alpha1, kind: DockerMachineTemplate, name: tmpl}},
				kubeadmConfigSpec: {clusterConfiguration: {scheduler: {extraArgs: {v: "1"}}}}}}`,
			hub: `{spec: {replicas: 3, version: v1.30.0, rollout: {before: {certificatesExpiryDays: 21}, after: "2026-01-01T00:00:00Z",
				strategy: {type: RollingUpdate, rollingUpdate: {maxSurge: 0}}},
				remediation: {maxRetry: 5, retryPeriodSeconds: 60, minHealthyPeriodSeconds: 7200},
				machineTemplate: {metadata: {labels: {a: b}}, spec: {deletion: {nodeDrainTimeoutSeconds: 0, nodeVolumeDetachTimeoutSeconds: 2,
				nodeDeletionTimeoutSeconds: 3}, infrastructureRef: {apiGroup: infrastructure.cluster.x-k8s.io, kind: DockerMachineTemplate, name: tmpl}}},
				kubeadmConfigSpec: {clusterConfiguration: {scheduler: {extraArgs: [{name: v, value: "1"}]}}}}}`,
		},
		"a reference has neither a namespace nor a version": {
			kind: "KubeadmControlPlane",
			spoke: `{spec: {version: v1.30.0, machineTemplate: {
				infrastructureRef: {apiVersion: infrastructure.cluster.x-k8s.io/v1alpha7, kind: OwnMachineTemplate, name: tmpl, uid: u}}}}`,
			hub: `{spec: {version: v1.30.0, machineTemplate: {spec: {
				infrastructureRef: {apiGroup: infrastructure.cluster.x-k8s.io, kind: OwnMachineTemplate, name: tmpl}}}}}`,
			lossy: true,
		},
		"the status of a control plane": {
			kind: "KubeadmControlPlane",
			spoke: `{spec: {version: v1.30.0, machineTemplate: {infrastructureRef: {apiVersion: a/v1beta2, kind: K, name: k}}}, status: {initialized: true, ready: true, replicas: 3,
				readyReplicas: 2, updatedReplicas: 1, unavailableReplicas: 1, version: v1.30.0, selector: s, observedGeneration: 4,
				lastRemediation: {machine: m, timestamp: "2026-01-01T00:00:00Z", retryCount: 0}}}`,
			hub: `{spec: {version: v1.30.0, machineTemplate: {spec: {infrastructureRef: {apiGroup: a, kind: K, name: k}}}}, status: {initialization: {controlPlaneInitialized: true}, replicas: 3, version: v1.30.0, selector: s,
				observedGeneration: 4, lastRemediation: {machine: m, time: "2026-01-01T00:00:00Z", retryCount: 0},
				deprecated: {v1beta1: {readyReplicas: 2, updatedReplicas: 1, unavailableReplicas: 1}}}}`,
		},
		"a template of control planes, without the type of the strategy": {
			kind:  "KubeadmControlPlaneTemplate",
			spoke: `{spec: {template: {spec: {rolloutStrategy: {rollingUpdate: {maxSurge: 1}}, machineTemplate: {nodeDrainTimeout: 1s}}}}}`,
			hub: `{spec: {template: {spec: {rollout: {strategy: {rollingUpdate: {maxSurge: 1}}},
				machineTemplate: {spec: {deletion: {nodeDrainTimeoutSeconds: 1}}}}}}}`,
		},
	}
}

func TestFields(t *testing.T) {
	tests := conversionsOfConfigs()
	maps.Copy(tests, conversionsOfControlPlanes())
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			convert := converters()[tt.kind]
			spoke := parse(t, tt.kind, tt.spoke)
			hub := convert[0](t, spoke)
			want := object{}
			if err := yaml.Unmarshal([]byte(tt.hub), &want); err != nil {
				t.Fatal(err)
			}
			want = normal(t, want, byName(nil)[tt.kind].Hub.New())
			if diff := cmp.Diff(content(want, "spec", "status"), content(hub, "spec", "status")); diff != "" {
				t.Errorf("hub (-want +got):\n%s", diff)
			}
			if _, lossy := lossless.At(hub, "metadata", "annotations")[older]; lossy != tt.lossy {
				t.Errorf("the annotation is %s, want one: %t", show(lossless.At(hub, "metadata", "annotations")), tt.lossy)
			}
			back := convert[1](t, hub)
			fillNamespaces(spoke)
			if diff := cmp.Diff(content(spoke, "spec", "status"), content(back, "spec", "status")); diff != "" {
				t.Errorf("spoke (-want +got):\n%s", diff)
			}
		})
	}
}

// What v1beta1 cannot express outlives a change by a client of v1beta1, next to which it is.
func TestChangeInSpokeKeepsTheRest(t *testing.T) {
	convert := converters()["KubeadmConfig"]
	hub := normal(t, parseHub(t, `{spec: {
		initConfiguration: {timeouts: {controlPlaneComponentHealthCheckSeconds: 300, kubeletHealthCheckSeconds: 100}},
		joinConfiguration: {timeouts: {controlPlaneComponentHealthCheckSeconds: 200}, discovery: {bootstrapToken: {unsafeSkipCAVerification: false}}},
		files: [{path: /a, content: x, append: false}, {path: /b, content: other, append: false}]}}`), byName(nil)["KubeadmConfig"].Hub.New())
	spoke := convert[1](t, hub)
	if got := lossless.At(spoke, "spec", "clusterConfiguration", "apiServer")["timeoutForControlPlane"]; got != "5m0s" {
		t.Errorf("the timeout is %v, want that of init", got)
	}
	lossless.Put(spoke, "6m0s", "spec", "clusterConfiguration", "apiServer", "timeoutForControlPlane")
	files := lossless.Items(lossless.At(spoke, "spec"), "files")
	files[1]["content"] = "z"
	lossless.At(spoke, "spec")["files"] = []any{object{"path": "/c", "content": "new"}, files[1], files[0]}

	want := parseHub(t, `{spec: {
		initConfiguration: {timeouts: {controlPlaneComponentHealthCheckSeconds: 360, kubeletHealthCheckSeconds: 100}},
		joinConfiguration: {timeouts: {controlPlaneComponentHealthCheckSeconds: 360}, discovery: {bootstrapToken: {unsafeSkipCAVerification: false}}},
		files: [{path: /c, content: new}, {path: /b, content: z, append: false}, {path: /a, content: x, append: false}]}}`)
	want = normal(t, want, byName(nil)["KubeadmConfig"].Hub.New())
	if diff := cmp.Diff(content(want, "spec"), content(convert[0](t, spoke), "spec")); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}

	delete(lossless.At(spoke, "spec", "clusterConfiguration", "apiServer"), "timeoutForControlPlane")
	got := lossless.At(convert[0](t, spoke), "spec", "initConfiguration", "timeouts")
	if diff := cmp.Diff(object{"kubeletHealthCheckSeconds": int64(100)}, got); diff != "" {
		t.Errorf("after the removal of the timeout (-want +got):\n%s", diff)
	}
}

// A timeout of init becomes one of join, too, only if a client of v1beta1 changes it.
func TestTimeoutOfInit(t *testing.T) {
	convert := converters()["KubeadmConfig"]
	spoke := convert[1](t, parseHub(t, `{spec: {initConfiguration: {timeouts: {controlPlaneComponentHealthCheckSeconds: 300}}}}`))
	if got := lossless.At(convert[0](t, spoke), "spec")[joinConfiguration]; got != nil {
		t.Errorf("without a change, join has %v", got)
	}
	lossless.Put(spoke, "6m0s", "spec", clusterConfiguration, "apiServer", "timeoutForControlPlane")
	for _, name := range []string{initConfiguration, joinConfiguration} {
		if got := lossless.At(convert[0](t, spoke), "spec", name, "timeouts")[healthCheckSeconds]; got != int64(360) {
			t.Errorf("%s has %v", name, got)
		}
	}
}

func parseHub(t *testing.T, document string) object {
	t.Helper()
	tree := object{}
	if err := yaml.Unmarshal([]byte(document), &tree); err != nil {
		t.Fatal(err)
	}
	return tree
}

// What only v1beta1 has stays when a client of v1beta2 changes something else.
func TestChangeInHubKeepsTheRest(t *testing.T) {
	convert := converters()["KubeadmControlPlane"]
	hub := convert[0](t, parse(t, "KubeadmControlPlane", `{spec: {version: v1.30.0,
		kubeadmConfigSpec: {clusterConfiguration: {clusterName: x, networking: {podSubnet: p}}, useExperimentalRetryJoin: true},
		machineTemplate: {nodeDrainTimeout: 1.5s, nodeDeletionTimeout: 2.5s,
		infrastructureRef: {apiVersion: infrastructure.cluster.x-k8s.io/v1alpha7, kind: OwnMachineTemplate, name: tmpl}}}}`))
	lossless.Put(hub, int64(7), "spec", "machineTemplate", "spec", "deletion", "nodeDrainTimeoutSeconds")
	lossless.Put(hub, "r", "spec", "kubeadmConfigSpec", "clusterConfiguration", "imageRepository")
	want := parse(t, "KubeadmControlPlane", `{spec: {version: v1.30.0,
		kubeadmConfigSpec: {clusterConfiguration: {clusterName: x, networking: {podSubnet: p}, imageRepository: r}, useExperimentalRetryJoin: true},
		machineTemplate: {nodeDrainTimeout: 7s, nodeDeletionTimeout: 2.5s,
		infrastructureRef: {apiVersion: infrastructure.cluster.x-k8s.io/v1alpha7, kind: OwnMachineTemplate, name: tmpl, namespace: b}}}}`)
	if diff := cmp.Diff(content(want, "spec"), content(convert[1](t, hub), "spec")); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}

	lossless.Put(hub, "other", "spec", "machineTemplate", "spec", infrastructureRef, "name")
	got := lossless.At(convert[1](t, hub), "spec", "machineTemplate", infrastructureRef)
	other := object{"apiVersion": "infrastructure.cluster.x-k8s.io/v1alpha1", "kind": "OwnMachineTemplate", "name": "other", "namespace": "b"}
	if diff := cmp.Diff(other, got); diff != "" {
		t.Errorf("another reference (-want +got):\n%s", diff)
	}
}

// A provider that is not installed does not make control planes unreadable.
func TestVersionOfMissingKind(t *testing.T) {
	hub := parseHub(t, `{spec: {version: v1.30.0, machineTemplate: {spec: {infrastructureRef: {apiGroup: g.example, kind: K, name: tmpl}}}}}`)
	missing := func(context.Context, schema.GroupKind) (string, bool) { return "", false }
	for _, lookup := range []Lookup{nil, missing} {
		kind := byName(lookup)["KubeadmControlPlane"]
		spoke := over(kind.ToSpoke, kind.Hub, kind.Spoke)(t, runtime.DeepCopyJSON(hub))
		if got := lossless.At(spoke, "spec", "machineTemplate", infrastructureRef)["apiVersion"]; got != "g.example/v1beta1" {
			t.Errorf("apiVersion is %v", got)
		}
	}
}

// An annotation that would be too large for API servers does not have the lists that v1beta1 has.
func TestLargeObject(t *testing.T) {
	hub := normal(t, parseHub(t, `{metadata: {name: a}, spec: {users: [{name: u}],
		initConfiguration: {timeouts: {discoverySeconds: 3, controlPlaneComponentHealthCheckSeconds: 5}, skipPhases: [p]},
		files: [{path: /a, content: x, append: false}]}}`), byName(nil)["KubeadmConfig"].Hub.New())
	var commands []any
	for i := range 40 {
		commands = append(commands, fmt.Sprint(i, strings.Repeat("x", 10000)))
	}
	lossless.Put(hub, commands, "spec", "preKubeadmCommands")
	spoke := converters()["KubeadmConfig"][1](t, hub)
	kept := take(t, runtime.DeepCopyJSON(spoke))
	want := object{"initConfiguration": object{"timeouts": object{"discoverySeconds": int64(3), healthCheckSeconds: int64(5)}},
		"files": []any{object{"path": "/a", "content": "x", "append": false}}}
	if diff := cmp.Diff(want, kept["spec"]); diff != "" {
		t.Errorf("annotation (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(hub["spec"], converters()["KubeadmConfig"][0](t, spoke)["spec"]); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// Whatever clients write into the annotation, an object can be converted.
func TestForeignAnnotation(t *testing.T) {
	for _, data := range []string{
		"", "null", "[]", "{", `"x"`, `{"apiVersion":"bootstrap.cluster.x-k8s.io/v1beta2","kind":"KubeadmConfig"}`,
		`{"apiVersion":"bootstrap.cluster.x-k8s.io/v1beta2","kind":"KubeadmConfig","spec":[]}`,
		`{"apiVersion":"bootstrap.cluster.x-k8s.io/v1beta2","kind":"KubeadmConfig","spec":{"files":{"a":1},"format":7}}`,
		`{"apiVersion":"bootstrap.cluster.x-k8s.io/v1beta2","kind":"KubeadmConfig","spec":{"initConfiguration":{"timeouts":{"discoverySeconds":"x"}}}}`,
		`{"apiVersion":"bootstrap.cluster.x-k8s.io/v1beta2","kind":"KubeadmConfig","spec":{"joinConfiguration":[null],"users":null}}`,
		`{"apiVersion":"bootstrap.cluster.x-k8s.io/v1beta1","kind":"KubeadmConfig","spec":{"clusterConfiguration":"x"}}`,
		`{"apiVersion":"bootstrap.cluster.x-k8s.io/v1beta1","kind":"KubeadmConfig","spec":{"clusterConfiguration":{"clusterName":{}}}}`,
	} {
		for direction := range 2 {
			from := object{"metadata": object{"name": "a", "annotations": object{annotation: data}}, "spec": object{"format": "ignition"}}
			got := converters()["KubeadmConfig"][direction](t, from)
			if diff := cmp.Diff(object{"format": "ignition"}, got["spec"]); diff != "" {
				t.Errorf("%s (-want +got):\n%s", data, diff)
			}
			if got := lossless.At(got, "metadata", "annotations")[annotation]; direction == 0 && got != nil {
				t.Errorf("%s is kept as %v", data, got)
			}
		}
	}
}

// Whatever is in the annotation, clients of v1beta1 read what they wrote.
func FuzzAnnotation(f *testing.F) {
	for _, spec := range []string{
		`{"initConfiguration":{"timeouts":{"controlPlaneComponentHealthCheckSeconds":3}},"files":[{"path":"/a","append":false}]}`,
		`{"joinConfiguration":{"timeouts":{"tlsBootstrapSeconds":3,"discoverySeconds":1}},"users":[{"name":"u","inactive":false}]}`,
		`{"clusterConfiguration":{"apiServer":{"extraArgs":[{"name":"a","value":"b"},{"name":"a","value":"c"}]},"encryptionAlgorithm":"RSA-2048"}}`,
		`{"clusterConfiguration":null,"files":[],"diskSetup":{"partitions":[{"device":"d","diskLayout":[{"percentage":1}]}]}}`,
	} {
		for _, written := range []string{`{}`, `{"files":[{"path":"/a"}],"users":[{"name":"u"}],"diskSetup":{"partitions":[{"device":"d","layout":true}]}}`} {
			f.Add(`{"apiVersion":"bootstrap.cluster.x-k8s.io/v1beta2","kind":"KubeadmConfig","spec":`+spec+`}`, written)
			f.Add(`{"apiVersion":"bootstrap.cluster.x-k8s.io/v1beta1","kind":"KubeadmConfig","spec":`+spec+`}`, written)
		}
	}
	kind := byName(nil)["KubeadmConfig"]
	f.Fuzz(func(t *testing.T, data, written string) {
		spec := bootstrapv1beta1.KubeadmConfigSpec{}
		if json.Unmarshal([]byte(written), &spec) != nil {
			return
		}
		config := &bootstrapv1beta1.KubeadmConfig{Spec: spec}
		config.Annotations = map[string]string{annotation: data}
		hub, back := &bootstrapv1.KubeadmConfig{}, &bootstrapv1beta1.KubeadmConfig{}
		if err := kind.ToHub(t.Context(), config, hub); err != nil {
			t.Fatal(err)
		}
		if err := kind.ToSpoke(t.Context(), hub, back); err != nil {
			t.Fatal(err)
		}
		var trees [2]object
		for i, o := range []*bootstrapv1beta1.KubeadmConfig{config, back} {
			tree, err := runtime.DefaultUnstructuredConverter.ToUnstructured(o)
			if err != nil {
				t.Fatal(err)
			}
			trees[i] = content(tree, "spec")
		}
		if diff := cmp.Diff(trees[0], trees[1]); diff != "" {
			t.Errorf("(-written +read):\n%s\nstored: %+v", diff, hub)
		}
	})
}
