package controller

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	operatorv1 "sigs.k8s.io/cluster-api/api/operator/v1alpha2"
	"sigs.k8s.io/cluster-api/sdk/testenv"
)

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

// edit is an edit of a provider's spec, and what it changes in the Deployment.
type edit struct {
	reason string
	// spec is merged into the spec.
	spec string
	// want changes the Deployment from before the edit to that after it.
	want func(d *appsv1.DeploymentSpec)
	// adds is set while the spec has additional manifests.
	adds bool
}

// edits change every group of fields of the spec. Each is on top of those before.
func edits() []edit {
	return []edit{
		{"options of the manager", `{manager: {verbosity: 3, syncPeriod: 15m, maxConcurrentReconciles: 4, profilerAddress: "localhost:0", featureGates: {ClusterTopology: true}, additionalArgs: {logging-format: json}}}`,
			func(d *appsv1.DeploymentSpec) {
				setArg(d, "v", "3")
				setArg(d, "feature-gates", "ClusterTopology=true")
				setArg(d, "sync-period", "15m0s")
				setArg(d, "profiler-address", "localhost:0")
				setArg(d, "logging-format", "json")
			}, false},
		{"scheduling and accounts", `{deployment: {replicas: 2, nodeSelector: {kubernetes.io/os: linux}, tolerations: [{key: a, operator: Exists}], imagePullSecrets: [{name: pull}],
affinity: {nodeAffinity: {preferredDuringSchedulingIgnoredDuringExecution: [{weight: 1, preference: {matchExpressions: [{key: b, operator: Exists}]}}]}}}}`,
			func(d *appsv1.DeploymentSpec) {
				pod := &d.Template.Spec
				d.Replicas, pod.NodeSelector = ptr.To[int32](2), map[string]string{"kubernetes.io/os": "linux"}
				pod.Tolerations, pod.ImagePullSecrets = []corev1.Toleration{{Key: "a", Operator: corev1.TolerationOpExists}}, []corev1.LocalObjectReference{{Name: "pull"}}
				pod.Affinity = &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{PreferredDuringSchedulingIgnoredDuringExecution: []corev1.PreferredSchedulingTerm{
					{Weight: 1, Preference: corev1.NodeSelectorTerm{MatchExpressions: []corev1.NodeSelectorRequirement{{Key: "b", Operator: corev1.NodeSelectorOpExists}}}},
				}}}
			}, false},
		{"the container", `{deployment: {containers: [{name: manager, image: {repository: mirror.example.com/capi}, command: [/manager], args: {machine-concurrency: 7}, env: [{name: A, value: b}],
resources: {requests: {cpu: 10m, memory: 64Mi}}}]}}`,
			func(d *appsv1.DeploymentSpec) {
				c := manager(d)
				c.Image = "mirror.example.com/capi" + c.Image[strings.LastIndex(c.Image, "/"):]
				c.Command, c.Env = []string{"/manager"}, append(c.Env, corev1.EnvVar{Name: "A", Value: "b"})
				c.Resources = corev1.ResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("10m"), corev1.ResourceMemory: resource.MustParse("64Mi")}}
				setArg(d, "machine-concurrency", "7")
			}, false},
		{"a merge patch", `{manifestPatches: ["{kind: Deployment, spec: {minReadySeconds: 1}}"]}`,
			func(d *appsv1.DeploymentSpec) { d.MinReadySeconds = 1 }, false},
		{"a JSON patch instead, and other objects", `{manifestPatches: null, additionalManifests: {name: more}, patches: [{target: {kind: Deployment}, patch: "[{op: replace, path: /spec/template/spec/terminationGracePeriodSeconds, value: 7}]"}]}`,
			func(d *appsv1.DeploymentSpec) {
				d.MinReadySeconds, d.Template.Spec.TerminationGracePeriodSeconds = 0, ptr.To[int64](7)
			}, true},
		{"values of variables", `{secretName: others}`, func(d *appsv1.DeploymentSpec) { d.Template.Spec.ServiceAccountName = "of-secret" }, true},
		{"nothing of all that", `{manager: null, deployment: null, patches: null, additionalManifests: null, secretName: null}`, nil, false},
	}
}

// TestEdits: after each edit, the Deployment is exactly as declared, and the provider ready; in the end, the Deployment is as it was.
func TestEdits(t *testing.T) {
	t.Parallel()
	m := simpleConfigMap("x-system", "x", "v1.0.0")
	m.Data["components"] = strings.NewReplacer("\nspec:\n", "\nspec:\n  replicas: 1\n", "    spec:\n", "    spec:\n      serviceAccountName: ${ACCOUNT:=default}\n      terminationGracePeriodSeconds: 10\n",
		"[--leader-elect]", "[--leader-elect, --v=2, --feature-gates=ClusterTopology=false], resources: {requests: {memory: 1Gi}}").Replace(m.Data["components"])
	w := newWorld(t, m)
	w.create(simpleProvider)
	w.create(`
apiVersion: v1
kind: ConfigMap
metadata: {name: more, namespace: x-system}
data: {manifests: "{apiVersion: v1, kind: ConfigMap, metadata: {name: added, namespace: x-system}, data: {a: b}}"}
---
apiVersion: v1
kind: Secret
metadata: {name: others, namespace: x-system}
stringData: {ACCOUNT: of-secret}
`)
	p := w.reconcile(w.provider("InfrastructureProvider", "x-system", "x"))
	w.reports(p, operatorv1.ReadyCondition, "True")
	original := w.deployment("x-system", "x").Spec
	want := original.DeepCopy()
	for _, e := range edits() {
		if e.want == nil {
			want = original.DeepCopy()
		} else {
			e.want(want)
		}
		w.change(p, e.spec)
		p = w.reconcile(p)
		w.reports(p, operatorv1.ProviderInstalledCondition, "True")
		w.reports(p, operatorv1.ReadyCondition, "True")
		if p.GetStatus().ObservedGeneration != p.GetGeneration() {
			t.Errorf("%s: generation %d of %d is observed", e.reason, p.GetStatus().ObservedGeneration, p.GetGeneration())
		}
		if diff := cmp.Diff(lines(t, want), lines(t, &w.deployment("x-system", "x").Spec)); diff != "" {
			t.Errorf("%s: Deployment -want +got:\n%s", e.reason, diff)
		}
		err := w.Get(t.Context(), client.ObjectKey{Namespace: "x-system", Name: "added"}, &corev1.ConfigMap{})
		if client.IgnoreNotFound(err) != nil || apierrors.IsNotFound(err) == e.adds {
			t.Errorf("%s: the additional object: %v", e.reason, err)
		}
	}
}

// lines returns the spec of a Deployment as lines. The order of arguments does not matter.
func lines(t *testing.T, d *appsv1.DeploymentSpec) []string {
	t.Helper()
	d = d.DeepCopy()
	slices.Sort(manager(d).Args)
	raw, err := json.MarshalIndent(d, "", " ")
	testenv.Must(t, err)
	return strings.Split(string(raw), "\n")
}
