package journey

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/yaml"

	"sigs.k8s.io/cluster-api/sdk/testenv"
)

// operatorEdit is an edit of a provider's spec, and what it changes in the Deployment.
type operatorEdit struct {
	reason string
	// spec is merged into the spec.
	spec string
	// want changes the Deployment from before the edit to that after it.
	want func(d *appsv1.DeploymentSpec)
}

// setArg sets an argument of the manager where it is, or appends it.
func setArg(d *appsv1.DeploymentSpec, name, value string) {
	args := &manager(d).Args
	for i, arg := range *args {
		if flag, _, _ := strings.Cut(arg, "="); flag == "--"+name {
			(*args)[i] = flag + "=" + value
			return
		}
	}
	*args = append(*args, "--"+name+"="+value)
}

func manager(d *appsv1.DeploymentSpec) *corev1.Container { return &d.Template.Spec.Containers[0] }

// operatorEdits change every group of fields of the spec. Each is on top of those before.
func operatorEdits() []operatorEdit {
	return []operatorEdit{
		{"options of the manager", `manager: {verbosity: 3, syncPeriod: 15m, maxConcurrentReconciles: 4, profilerAddress: "localhost:0", featureGates: {ClusterTopology: true}, additionalArgs: {logging-format: json}}`,
			func(d *appsv1.DeploymentSpec) {
				setArg(d, "v", "3")
				setArg(d, "feature-gates", "ClusterTopology=true")
				setArg(d, "sync-period", "15m0s")
				setArg(d, "profiler-address", "localhost:0")
				setArg(d, "logging-format", "json")
			}},
		{"scheduling and accounts", `deployment: {replicas: 2, nodeSelector: {kubernetes.io/os: linux}, tolerations: [{key: a, operator: Exists}], imagePullSecrets: [{name: pull}],
affinity: {nodeAffinity: {preferredDuringSchedulingIgnoredDuringExecution: [{weight: 1, preference: {matchExpressions: [{key: b, operator: Exists}]}}]}}}`,
			func(d *appsv1.DeploymentSpec) {
				pod := &d.Template.Spec
				d.Replicas, pod.NodeSelector = ptr.To[int32](2), map[string]string{"kubernetes.io/os": "linux"}
				pod.Tolerations, pod.ImagePullSecrets = []corev1.Toleration{{Key: "a", Operator: corev1.TolerationOpExists}}, []corev1.LocalObjectReference{{Name: "pull"}}
				pod.Affinity = &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{PreferredDuringSchedulingIgnoredDuringExecution: []corev1.PreferredSchedulingTerm{
					{Weight: 1, Preference: corev1.NodeSelectorTerm{MatchExpressions: []corev1.NodeSelectorRequirement{{Key: "b", Operator: corev1.NodeSelectorOpExists}}}},
				}}}
			}},
		{"the container", `deployment: {containers: [{name: manager, image: {repository: mirror.example.com/capi}, command: [/manager], args: {machine-concurrency: 7}, env: [{name: A, value: b}],
resources: {requests: {cpu: 10m, memory: 64Mi}}}]}`,
			func(d *appsv1.DeploymentSpec) {
				c := manager(d)
				c.Image = "mirror.example.com/capi" + c.Image[strings.LastIndex(c.Image, "/"):]
				c.Command, c.Env = []string{"/manager"}, append(c.Env, corev1.EnvVar{Name: "A", Value: "b"})
				c.Resources = corev1.ResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("10m"), corev1.ResourceMemory: resource.MustParse("64Mi")}}
				setArg(d, "machine-concurrency", "7")
			}},
		{"a merge patch", `manifestPatches: ["{kind: Deployment, spec: {minReadySeconds: 1}}"]`,
			func(d *appsv1.DeploymentSpec) { d.MinReadySeconds = 1 }},
		{"a JSON patch instead, and other objects", `{manifestPatches: null, additionalManifests: {name: more}, patches: [{target: {kind: Deployment}, patch: "[{op: replace, path: /spec/template/spec/terminationGracePeriodSeconds, value: 7}]"}]}`,
			func(d *appsv1.DeploymentSpec) {
				d.MinReadySeconds, d.Template.Spec.TerminationGracePeriodSeconds = 0, ptr.To[int64](7)
			}},
		{"values of variables", `secretName: others`, func(d *appsv1.DeploymentSpec) {
			manager(d).Resources.Requests[corev1.ResourceMemory] = resource.MustParse("64Mi")
		}},
		{"nothing of all that", `{manager: null, deployment: null, patches: null, additionalManifests: null, secretName: null}`, nil},
	}
}

// TestOperatorEdits edits every group of fields of a provider's spec: after each edit, the Deployment is exactly as declared, and ready; webhooks
// answer all the time; in the end, the Deployment is as it was.
func TestOperatorEdits(t *testing.T) {
	testenv.Soak(t)
	t.Parallel()
	o := &operatorCluster{NewStandalone(t, shared.Management(t).Tools), t}
	c := o.connect()
	o.install()
	infrastructure := declaredProviders()[3]
	for _, p := range declaredProviders() {
		o.kubectl("", "create", "namespace", p.namespace)
		o.declare(p, "v2.0.0")
	}
	o.kubectl(`
apiVersion: v1
kind: ConfigMap
metadata: {name: more, namespace: capim-system}
data: {manifests: "{apiVersion: v1, kind: ConfigMap, metadata: {name: added, namespace: capim-system}, data: {a: b}}"}
---
apiVersion: v1
kind: Secret
metadata: {name: others, namespace: capim-system}
stringData: {CLUSTER_TOPOLOGY: "true"}
`, "apply", "-f", "-")
	for _, p := range declaredProviders() {
		o.installed(p, "v2.0.0")
	}
	answered := o.Management().World(t).Admission()
	original := deploymentOf(t, c, infrastructure.namespace, "capim-controller-manager").Spec
	want := original.DeepCopy()
	for _, e := range operatorEdits() {
		raw, err := yaml.YAMLToJSON([]byte(e.spec))
		if err != nil {
			t.Fatal(err)
		}
		if e.want == nil {
			want = original.DeepCopy()
		} else {
			e.want(want)
		}
		o.patch(infrastructure, string(raw))
		generation := o.kubectl("", "get", infrastructure.object(), "-n", infrastructure.namespace, "-o", "jsonpath={.metadata.generation}")
		o.wait("jsonpath={.status.observedGeneration}="+generation, infrastructure.namespace, infrastructure.object())
		o.installed(infrastructure, "v2.0.0")
		got := deploymentOf(t, c, infrastructure.namespace, "capim-controller-manager")
		if diff := cmp.Diff(encoded(t, want), encoded(t, &got.Spec)); diff != "" {
			t.Errorf("%s: Deployment -want +got:\n%s", e.reason, diff)
		}
		if got.Status.AvailableReplicas != *got.Spec.Replicas {
			t.Errorf("%s: %d of %d replicas are available", e.reason, got.Status.AvailableReplicas, *got.Spec.Replicas)
		}
		added := o.kubectl("", "get", "configmap", "added", "-n", infrastructure.namespace, "--ignore-not-found", "-o", "name")
		if is := added != ""; is != strings.Contains(e.spec, "others") && is != strings.Contains(e.spec, "name: more") {
			t.Errorf("%s: the additional object is there: %t", e.reason, is)
		}
	}
	if n := answered(); n < 50 {
		t.Errorf("webhooks answered %d requests only", n)
	}
}

// encoded returns the spec of a Deployment as lines. The order of arguments does not matter.
func encoded(t *testing.T, d *appsv1.DeploymentSpec) []string {
	t.Helper()
	d = d.DeepCopy()
	slices.Sort(manager(d).Args)
	raw, err := json.MarshalIndent(d, "", " ")
	if err != nil {
		t.Fatal(err)
	}
	return strings.Split(string(raw), "\n")
}
