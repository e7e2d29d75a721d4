package topologyplan

import (
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/packages/manifest"
	"sigs.k8s.io/cluster-api/sdk/conversion"
	"sigs.k8s.io/cluster-api/sdk/testenv"
)

const class = "../../infrastructure-in-memory/config/templates/clusterclass-in-memory.yaml"

const cluster = `
apiVersion: cluster.x-k8s.io/v1beta1
kind: Cluster
metadata: {name: demo, namespace: default}
spec:
  topology:
    class: in-memory
    version: v1.30.0
    controlPlane: {replicas: 3}
    workers:
      machineDeployments:
      - {class: default-worker, name: md-0, replicas: 2}
`

// objects reads the class and other objects, in namespace default.
func objects(t *testing.T, others ...string) []*unstructured.Unstructured {
	t.Helper()
	raw, err := os.ReadFile(class)
	if err != nil {
		t.Fatal(err)
	}
	parsed, err := manifest.Parse([]byte(string(raw) + "\n---\n" + strings.Join(others, "\n---\n")))
	if err != nil {
		t.Fatal(err)
	}
	var all []*unstructured.Unstructured
	for i := range parsed {
		parsed[i].SetNamespace("default")
		all = append(all, &parsed[i])
	}
	return all
}

func compute(t *testing.T, in Input) (*Plan, error) {
	t.Helper()
	in.Namespace, in.Now = "default", time.Date(2026, 6, 1, 0, 0, 0, 0, time.UTC)
	return Compute(t.Context(), in)
}

// summary returns the action and kind of each change, by round.
func summary(p *Plan) [][]string {
	var out [][]string
	for _, round := range p.Rounds {
		var changes []string
		for _, c := range round.Changes {
			changes = append(changes, string(c.Action)+" "+c.Object().GetKind())
		}
		out = append(out, changes)
	}
	return out
}

func TestNewCluster(t *testing.T) {
	plan, err := compute(t, Input{Objects: objects(t, cluster)})
	if err != nil {
		t.Fatal(err)
	}
	want := [][]string{{
		"created InMemoryCluster", "created InMemoryMachineTemplate", "created InMemoryMachineTemplate", "created KubeadmConfigTemplate",
		"created KubeadmControlPlane", "created MachineDeployment", "created MachineHealthCheck", "created MachineHealthCheck",
		"modified Cluster",
	}}
	if diff := cmp.Diff(want, summary(plan)); diff != "" {
		t.Errorf("changes (-want +got):\n%s", diff)
	}
	if hooks := plan.Rounds[0].Hooks; hooks != nil {
		t.Errorf("hooks without extensions: %q", hooks)
	}
	again, err := compute(t, Input{Objects: objects(t, cluster)})
	if diff := cmp.Diff(plan, again); diff != "" || err != nil {
		t.Errorf("the same input has the same plan (-first +second):\n%s%v", diff, err)
	}
}

// TestUpgrade plans an upgrade with the objects that a new Cluster has.
func TestUpgrade(t *testing.T) {
	second := strings.Replace(cluster, "replicas: 2}\n", "replicas: 2}\n      - {class: default-worker, name: md-1, replicas: 1}\n", 1)
	plan, err := compute(t, Input{Objects: existing(t, second, func(c *clusterv1.Cluster) { c.Spec.Topology.Version = "v1.31.0" })})
	if err != nil {
		t.Fatal(err)
	}
	want := [][]string{{"modified KubeadmControlPlane"}, {"modified MachineDeployment"}, {"modified MachineDeployment"}}
	if diff := cmp.Diff(want, summary(plan)); diff != "" {
		t.Errorf("the control plane is first, then one MachineDeployment after the other (-want +got):\n%s", diff)
	}
}

// TestUpgradeOfReportedVersions: the control plane of a live Cluster reports how many replicas have which version, which changes with the
// rollout, before MachineDeployments follow.
func TestUpgradeOfReportedVersions(t *testing.T) {
	all := existing(t, cluster, func(c *clusterv1.Cluster) { c.Spec.Topology.Version = "v1.31.0" })
	for _, u := range all {
		if u.GetKind() == "KubeadmControlPlane" {
			reported := []any{map[string]any{"version": "v1.30.0", "replicas": int64(3)}}
			if err := unstructured.SetNestedSlice(u.Object, reported, "status", "versions"); err != nil {
				t.Fatal(err)
			}
		}
	}
	plan, err := compute(t, Input{Objects: all})
	if err != nil {
		t.Fatal(err)
	}
	want := [][]string{{"modified KubeadmControlPlane"}, {"modified MachineDeployment"}}
	if diff := cmp.Diff(want, summary(plan)); diff != "" || plan.Waiting != "" {
		t.Errorf("changes (-want +got), waiting %q:\n%s", plan.Waiting, diff)
	}
}

// TestChainedUpgrade plans an upgrade by several minor versions, which the class lists.
func TestChainedUpgrade(t *testing.T) {
	all := existing(t, cluster, func(c *clusterv1.Cluster) { c.Spec.Topology.Version = "v1.34.0" })
	for _, u := range all {
		if u.GetKind() == "ClusterClass" {
			versions := []any{"v1.30.0", "v1.31.0", "v1.32.0", "v1.33.0", "v1.34.0"}
			if err := unstructured.SetNestedSlice(u.Object, versions, "spec", "kubernetesVersions"); err != nil {
				t.Fatal(err)
			}
		}
	}
	plan, err := compute(t, Input{Objects: all})
	if err != nil {
		t.Fatal(err)
	}
	controlPlane, workers := []string{"modified KubeadmControlPlane"}, []string{"modified MachineDeployment"}
	want := [][]string{controlPlane, controlPlane, controlPlane, workers, controlPlane, workers}
	if diff := cmp.Diff(want, summary(plan)); diff != "" || plan.Waiting != "" {
		t.Errorf("the control plane by each minor version, workers when they must (-want +got), waiting %q:\n%s", plan.Waiting, diff)
	}
	chain := [][]string{plan.ControlPlaneUpgrades, plan.WorkersUpgrades}
	if diff := cmp.Diff([][]string{{"v1.31.0", "v1.32.0", "v1.33.0", "v1.34.0"}, {"v1.33.0", "v1.34.0"}}, chain); diff != "" {
		t.Errorf("versions (-want +got):\n%s", diff)
	}
}

func newWorld(t *testing.T) *World {
	t.Helper()
	w, err := NewWorld(nil)
	if err != nil {
		t.Fatal(err)
	}
	return w
}

func TestInvalidInput(t *testing.T) {
	for _, tc := range []struct{ reason, from, to, want string }{
		{"fields must be known", "controlPlane: {replicas: 3}", "controlPlane: {replica: 3}", "unknown field"},
		{"versions are validated", "v1.30.0", "latest", "spec.topology.version"},
		{"classes of workers must exist", "class: default-worker", "class: other", "spec.topology.workers.machineDeployments[0].class"},
		{"the Cluster to plan must be affected", "", "", "do not affect Cluster default/other: choose one of [default/demo]"},
	} {
		t.Run(tc.reason, func(t *testing.T) {
			in := Input{Objects: objects(t, strings.Replace(cluster, tc.from, tc.to, 1))}
			if tc.from == "" {
				in.Cluster = "other"
			}
			if _, err := compute(t, in); err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("want an error with %q, got %v", tc.want, err)
			}
		})
	}
}

// TestVersions plans the same objects in v1beta1 and v1beta2, and rejects fields that this version does not have. A control plane has the
// fields of the contract of its version.
func TestVersions(t *testing.T) {
	in := Input{Objects: objects(t, cluster)}
	inVersion := func(version string) Input {
		var all []*unstructured.Unstructured
		for _, u := range in.Objects {
			converted := u
			if u.GroupVersionKind().Group == clusterv1.GroupVersion.Group {
				var err error
				converted, err = conversion.Shared().In(t.Context(), version, u)
				testenv.Must(t, err)
			}
			all = append(all, converted)
		}
		return Input{Objects: all}
	}
	older, err := compute(t, inVersion("v1beta1"))
	if err != nil {
		t.Fatal(err)
	}
	in = inVersion("v1beta2")
	newer, err := compute(t, in)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(summary(older), summary(newer)); diff != "" {
		t.Errorf("changes (-v1beta1 +v1beta2):\n%s", diff)
	}
	for _, c := range newer.Rounds[0].Changes {
		ref, _, _ := unstructured.NestedStringMap(c.After.Object, "spec", "machineTemplate", "spec", "infrastructureRef")
		if c.After.GetKind() == "KubeadmControlPlane" && ref["apiGroup"] != "infrastructure.cluster.x-k8s.io" {
			t.Errorf("%s of the KubeadmControlPlane refers to %v", c.After.GetAPIVersion(), ref)
		}
	}
	for _, u := range in.Objects {
		if u.GetKind() == "Cluster" {
			testenv.Must(t, unstructured.SetNestedField(u.Object, "in-memory", "spec", "topology", "class"))
		}
	}
	if _, err := compute(t, in); err == nil || !strings.Contains(err.Error(), `unknown field "spec.topology.class"`) {
		t.Errorf("an unknown field: %v", err)
	}
}

// TestFieldsThatAreRemoved: kubectl apply removes a field that it applied before, in whatever version.
func TestFieldsThatAreRemoved(t *testing.T) {
	older := func(controlPlane string) *unstructured.Unstructured {
		parsed, err := manifest.Parse([]byte(strings.Replace(cluster, "{replicas: 3}", controlPlane, 1)))
		testenv.Must(t, err)
		return &parsed[0]
	}
	newest := func(u *unstructured.Unstructured) *unstructured.Unstructured {
		converted, err := conversion.Shared().In(t.Context(), clusterv1.GroupVersion.Version, u)
		testenv.Must(t, err)
		return converted
	}
	before := older("{replicas: 3, nodeDrainTimeout: 5s}")
	applied, err := before.MarshalJSON()
	testenv.Must(t, err)
	live := newest(before)
	live.SetAnnotations(map[string]string{corev1.LastAppliedConfigAnnotation: string(applied)})
	merged, _, err := merge(t.Context(), live, newest(older("{replicas: 4}")))
	testenv.Must(t, err)
	got, _, err := unstructured.NestedMap(merged.Object, "spec", "topology", "controlPlane")
	testenv.Must(t, err)
	if diff := cmp.Diff(map[string]any{"replicas": int64(4)}, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
