package customize

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	operatorv1 "sigs.k8s.io/cluster-api/api/operator/v1alpha2"
	"sigs.k8s.io/cluster-api/packages/manifest"
)

const base = `
apiVersion: apps/v1
kind: Deployment
metadata: {name: capx-controller-manager, namespace: capx-system, labels: {a: b}}
spec:
  selector: {matchLabels: {a: b}}
  template:
    metadata: {labels: {a: b}}
    spec:
      containers:
      - name: manager
        image: registry.example.com/capx/capx-controller:v1.0.0
        args: [--leader-elect, --v=2, --feature-gates, "A=true,B=false", --xmachine-concurrency=3, --health-addr=:9440]
        ports: [{name: webhook-server, containerPort: 9443}, {name: healthz, containerPort: 9440}]
        resources: {}
        readinessProbe: {httpGet: {path: /readyz, port: 9440}}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: c, namespace: capx-system}
data: {k: v}
`

// want is what differs from base: the lines that a spec removes and adds, of the formatted objects.
func TestApply(t *testing.T) {
	for _, tc := range []struct {
		reason, spec string
		minus, plus  []string
		failure      string
	}{
		{reason: "nothing", spec: `{}`},
		{reason: "the default of verbosity leaves a flag that is there", spec: `manager: {verbosity: 1, syncPeriod: 5m}`, plus: []string{"- --sync-period=5m0s"}},
		{reason: "a lower verbosity is an argument", spec: `{manager: {verbosity: 1}, deployment: {containers: [{name: manager, args: {v: 1}}]}}`, minus: []string{"- --v=2"}, plus: []string{"- --v=1"}},
		{reason: "no manager has a flag for the host of webhooks", spec: `manager: {webhook: {host: 10.0.0.1}}`},
		{reason: "unless the components have it", spec: `{manager: {webhook: {host: 10.0.0.1}}, deployment: {containers: [{name: manager, args: {webhook-host: x}}]}}`, plus: []string{"- --webhook-host=10.0.0.1"}},
		{reason: "the time to stop", spec: `manager: {gracefulShutDown: 90500ms}`, plus: []string{"terminationGracePeriodSeconds: 91"}},
		{reason: "no time to stop", spec: `manager: {gracefulShutDown: 0}`, plus: []string{"terminationGracePeriodSeconds: 0"}},
		{reason: "any time to stop", spec: `manager: {gracefulShutDown: -1}`, plus: []string{"terminationGracePeriodSeconds: 86400"}},
		{reason: "an invalid time to stop", spec: `manager: {gracefulShutDown: soon}`, failure: "spec.manager.gracefulShutDown: \"soon\" must be a duration"},
		{reason: "a merge patch with a key twice", spec: `manifestPatches: ["{kind: ConfigMap, data: {k: a}, data: {k: b}}"]`, failure: "spec.manifestPatches[0]: the patch must be YAML: "},
		{reason: "a patch with a key twice", spec: `patches: [{target: {kind: ConfigMap}, patch: "{data: {k: a, k: b}}"}]`, failure: "spec.patches[0]: the patch must be YAML: "},
		{reason: "debug", spec: `manager: {verbosity: 1, debug: true}`, minus: []string{"- --v=2"}, plus: []string{"- --v=5", "- --profiler-address=localhost:6060"}},
		{reason: "gates are merged, a flag of two arguments becomes one", spec: `manager: {verbosity: 2, featureGates: {B: true, C: false}}`,
			minus: []string{"- --feature-gates", "- A=true,B=false"}, plus: []string{"- --feature-gates=A=true,B=true,C=false"}},
		{reason: "concurrency of all kinds", spec: `manager: {verbosity: 2, maxConcurrentReconciles: 7}`,
			minus: []string{"- --xmachine-concurrency=3"}, plus: []string{"- --xmachine-concurrency=7"}},
		{reason: "an argument takes precedence over the concurrency of all kinds",
			spec:  `{manager: {verbosity: 2, maxConcurrentReconciles: 7}, deployment: {containers: [{name: manager, args: {xmachine-concurrency: "5"}}]}}`,
			minus: []string{"- --xmachine-concurrency=3"}, plus: []string{"- --xmachine-concurrency=5"}},
		{reason: "a field of manager takes precedence over an argument",
			spec: `{manager: {verbosity: 2, syncPeriod: 5m}, deployment: {containers: [{name: manager, args: {--sync-period: 1h, namespace: ignored}}]}}`,
			plus: []string{"- --sync-period=5m0s"}},
		{reason: "groups of kinds", spec: `manager: {verbosity: 2, controller: {groupKindConcurrency: {XCluster.example.com: 4}}}`,
			plus: []string{"- --xcluster-concurrency=4"}},
		{reason: "ports and probes follow", spec: `manager: {verbosity: 2, webhook: {port: 8443}, health: {healthProbeBindAddress: ":9441", readinessEndpointName: ready}}`,
			minus: []string{"- --health-addr=:9440", "- containerPort: 9443", "- containerPort: 9440", "path: /readyz", "port: 9440"},
			plus:  []string{"- --health-addr=:9441", "- --webhook-port=8443", "- containerPort: 8443", "- containerPort: 9441", "path: /ready", "port: 9441"}},
		{reason: "additional arguments must be new", spec: `manager: {additionalArgs: {v: "3"}}`,
			failure: "spec.manager.additionalArgs[v]: Deployment capx-controller-manager has this argument already"},
		{reason: "parts of an image", spec: `deployment: {containers: [{name: manager, image: {repository: mirror.local/x, tag: v2}}]}`,
			minus: []string{"image: registry.example.com/capx/capx-controller:v1.0.0"}, plus: []string{"image: mirror.local/x/capx-controller:v2"}},
		{reason: "a whole image, and no Pods", spec: `deployment: {replicas: 0, containers: [{name: manager, imageUrl: "a.b/c:d"}]}`,
			minus: []string{"image: registry.example.com/capx/capx-controller:v1.0.0"}, plus: []string{"replicas: 0", "image: a.b/c:d"}},
		{reason: "an unknown container", spec: `deployment: {containers: [{name: proxy}]}`,
			failure: "spec.deployment.containers[proxy]: Deployment capx-controller-manager has no such container: it has manager"},
		{reason: "an unknown Deployment", spec: `additionalDeployments: {x: {}}`,
			failure: "spec.additionalDeployments[x]: the provider has no such Deployment: it has capx-controller-manager"},
		{reason: "a merge patch", spec: `manifestPatches: ["{kind: ConfigMap, metadata: {name: c}, data: {k: null, l: w}}"]`, minus: []string{"k: v"}, plus: []string{"l: w"}},
		{reason: "a merge patch for nothing", spec: `manifestPatches: ["{kind: ConfigMap, metadata: {name: d}}"]`,
			failure: "spec.manifestPatches[0]: it applies to none of the provider's objects"},
		{reason: "a patch that renames", spec: `patches: [{target: {kind: ConfigMap}, patch: "[{op: replace, path: /metadata/name, value: d}]"}]`,
			failure: "spec.patches[0]: ConfigMap c: kind, name and namespace cannot be changed"},
		{reason: "a strategic merge patch merges containers by name",
			spec: `patches: [{patch: "{apiVersion: apps/v1, kind: Deployment, metadata: {name: capx-controller-manager}, spec: {template: {spec: {containers: [{name: manager, imagePullPolicy: Always}]}}}}"}]`,
			plus: []string{"imagePullPolicy: Always"}},
		{reason: "a JSON patch with a target", spec: `patches: [{target: {group: apps, labelSelector: "a=b"}, patch: "[{op: add, path: /spec/replicas, value: 3}]"}]`,
			plus: []string{"replicas: 3"}},
		{reason: "a JSON patch without a target", spec: `patches: [{patch: "[{op: add, path: /spec/replicas, value: 3}]"}]`,
			failure: "spec.patches[0]: a JSON patch must have a target"},
	} {
		t.Run(tc.reason, func(t *testing.T) {
			spec := &operatorv1.ProviderSpec{}
			if err := yaml.UnmarshalStrict([]byte(tc.spec), spec); err != nil {
				t.Fatal(err)
			}
			objects, err := manifest.Parse([]byte(base))
			if err != nil {
				t.Fatal(err)
			}
			before := lines(t, objects)
			out, err := Apply(objects, nil, spec)
			if tc.failure != "" {
				if err == nil || !strings.Contains(err.Error(), tc.failure) {
					t.Fatalf("got error %v, want %q", err, tc.failure)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			minus, plus := difference(before, lines(t, out))
			if diff := cmp.Diff([2][]string{tc.minus, tc.plus}, [2][]string{minus, plus}); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
			if diff := cmp.Diff(before, lines(t, objects)); diff != "" {
				t.Errorf("the components were changed:\n%s", diff)
			}
		})
	}
}

func lines(t *testing.T, objects []unstructured.Unstructured) []string {
	t.Helper()
	raw, err := manifest.Format(objects)
	if err != nil {
		t.Fatal(err)
	}
	return strings.Split(string(raw), "\n")
}

// difference returns the lines, trimmed, that only one of both has, in order.
func difference(before, after []string) (minus, plus []string) {
	count := map[string]int{}
	for _, line := range before {
		count[strings.TrimSpace(line)]++
	}
	for _, line := range after {
		if line = strings.TrimSpace(line); count[line] > 0 {
			count[line]--
		} else {
			plus = append(plus, line)
		}
	}
	for _, line := range before {
		if line = strings.TrimSpace(line); count[line] > 0 {
			count[line]--
			minus = append(minus, line)
		}
	}
	return minus, plus
}
