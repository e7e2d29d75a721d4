package topologyplan

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/sdk/testenv"
)

// workers is a topology of each kind of workers.
const workers = `
apiVersion: cluster.x-k8s.io/v1beta1
kind: Cluster
metadata: {name: demo, namespace: default}
spec:
  topology:
    class: in-memory
    version: v1.30.0
    controlPlane: {replicas: 1}
    workers:
      machineDeployments:
      - {class: default-worker, name: md-0, replicas: 1}
      - {class: default-worker, name: md-1, replicas: 1}
      machinePools:
      - {class: default-worker, name: mp-0, replicas: 2}
`

// existing returns the objects of a Cluster that exists, and whose Cluster is changed by change: a control plane as specified, and a
// MachineSet with a Machine for each MachineDeployment.
func existing(t *testing.T, cluster string, change func(*clusterv1.Cluster), others ...func(*unstructured.Unstructured)) []*unstructured.Unstructured {
	t.Helper()
	plan, err := compute(t, Input{Objects: objects(t, cluster)})
	testenv.Must(t, err)
	w := newWorld(t)
	for _, u := range objects(t) {
		w.Put(u)
	}
	for _, c := range plan.Rounds[0].Changes {
		u := c.After
		for _, other := range others {
			other(u)
		}
		w.Put(u)
		switch u.GetKind() {
		case "Cluster":
			changed := &clusterv1.Cluster{}
			testenv.Must(t, into(u, changed))
			change(changed)
			testenv.Must(t, w.PutTyped(changed))
		case "KubeadmControlPlane":
			testenv.Must(t, (&prediction{World: w}).provision(u))
			addMachine(t, w, "cp", nil, map[string]string{clusterv1.MachineControlPlaneLabel: ""}, "v1.30.0")
		case "MachineDeployment":
			addMachineSet(t, w, u)
		}
	}
	return w.sorted()
}

// addMachineSet adds the MachineSet of a MachineDeployment, named by its topology name, and a Machine of it.
func addMachineSet(t *testing.T, w *World, u *unstructured.Unstructured) {
	t.Helper()
	md := &clusterv1.MachineDeployment{}
	testenv.Must(t, into(u, md))
	name := md.Labels[clusterv1.ClusterTopologyMachineDeploymentNameLabel]
	set := &clusterv1.MachineSet{ObjectMeta: metav1.ObjectMeta{
		Namespace: md.Namespace, Name: name, UID: "set-" + md.UID, Labels: map[string]string{clusterv1.ClusterNameLabel: md.Spec.ClusterName},
		OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(md, clusterv1.GroupVersion.WithKind("MachineDeployment"))},
	}}
	set.Spec.Template = *md.Spec.Template.DeepCopy()
	testenv.Must(t, w.PutTyped(set))
	labels := map[string]string{clusterv1.MachineDeploymentNameLabel: md.Name, clusterv1.ClusterTopologyMachineDeploymentNameLabel: name, clusterv1.ClusterTopologyOwnedLabel: ""}
	addMachine(t, w, name, metav1.NewControllerRef(set, clusterv1.GroupVersion.WithKind("MachineSet")), labels, "v1.30.0")
}

func addMachine(t *testing.T, w *World, name string, owner *metav1.OwnerReference, labels map[string]string, version string) {
	t.Helper()
	labels[clusterv1.ClusterNameLabel] = "demo"
	m := &clusterv1.Machine{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name, Labels: labels}}
	if owner != nil {
		m.OwnerReferences = []metav1.OwnerReference{*owner}
	}
	m.Spec.ClusterName, m.Spec.Version = "demo", version
	testenv.Must(t, w.PutTyped(m))
}

// byVersion is the comparison of a control plane that replaces Machines of other versions.
func byVersion(_ context.Context, _ client.Reader, controlPlane *unstructured.Unstructured, m *clusterv1.Machine, _ time.Time) ([]string, error) {
	version, _, err := unstructured.NestedString(controlPlane.Object, "spec", "version")
	if m.Spec.Version == version {
		return nil, err
	}
	return []string{"version"}, err
}

// rolloutCase is a change of an existing Cluster.
type rolloutCase struct {
	reason string
	// before changes the objects of the Cluster before.
	before func(*unstructured.Unstructured)
	change func(*clusterv1.Cluster)
	// want are the rollouts of all rounds; names are without suffixes.
	want    [][]Rollout
	waiting string
}

// upgraded returns a function that sets the version in the specs of the control plane and the workers, except one. Machines keep theirs.
func upgraded(except string) func(*unstructured.Unstructured) {
	return func(u *unstructured.Unstructured) {
		path := []string{"spec", "template", "spec", "version"}
		switch u.GetKind() {
		case "KubeadmControlPlane":
			path = []string{"spec", "version"}
		case "MachineDeployment", "MachinePool":
			if strings.Contains(u.GetName(), except) {
				return
			}
		default:
			return
		}
		if err := unstructured.SetNestedField(u.Object, "v1.31.0", path...); err != nil {
			panic(err) // the path leads through maps
		}
	}
}

func upgrade(c *clusterv1.Cluster) { c.Spec.Topology.Version = "v1.31.0" }

func rolloutCases() []rolloutCase {
	controlPlane := Rollout{Kind: "KubeadmControlPlane", Name: "demo", Machines: []string{"cp"}, Reasons: []string{"version"}}
	version := []string{"spec.template.spec.version"}
	first := Rollout{Kind: "MachineDeployment", Name: "demo-md-0", Machines: []string{"md-0"}, Reasons: version}
	second := Rollout{Kind: "MachineDeployment", Name: "demo-md-1", Machines: []string{"md-1"}, Reasons: version}
	pool := Rollout{Kind: "MachinePool", Name: "demo-mp-0", Reasons: version, Unknown: true}
	held := func(r Rollout, why string) Rollout { r.Held = why; return r }
	paused := func(kind, topologyName string) func(*unstructured.Unstructured) {
		return func(u *unstructured.Unstructured) {
			if u.GetKind() == kind && strings.Contains(u.GetName(), topologyName) {
				u.SetAnnotations(map[string]string{clusterv1.PausedAnnotation: ""})
			}
		}
	}
	return []rolloutCase{
		{reason: "the control plane, then one MachineDeployment after the other, and the pools", change: upgrade, want: [][]Rollout{{controlPlane}, {first, pool}, {second}}},
		{
			reason: "a paused control plane holds the workers", before: paused("KubeadmControlPlane", "demo"), change: upgrade,
			want: [][]Rollout{{held(controlPlane, "it is paused")}}, waiting: "demo",
		},
		{
			reason: "a paused MachineDeployment holds the next", before: paused("MachineDeployment", "md-0"), change: upgrade,
			want: [][]Rollout{{controlPlane}, {held(first, "it is paused"), pool}}, waiting: "demo-md-1",
		},
		{
			reason: "a MachineDeployment with OnDelete waits for deletions", change: func(c *clusterv1.Cluster) {
				upgrade(c)
				c.Spec.Topology.Workers.MachineDeployments[0].Rollout.Strategy.Type = clusterv1.OnDeleteMachineDeploymentStrategyType
			},
			want: [][]Rollout{{controlPlane}, {held(first, "its strategy is OnDelete: each Machine is replaced once it has been deleted"), pool}}, waiting: "demo-md-1",
		},
		{reason: "in a paused Cluster nothing happens", change: func(c *clusterv1.Cluster) { upgrade(c); c.Spec.Paused = ptr.To(true) }, want: [][]Rollout{{controlPlane}, {first, pool}, {second}}, waiting: "the Cluster is paused"},
		{reason: "the next MachineDeployment follows once the one in progress is complete", before: upgraded("md-1"), change: upgrade, want: [][]Rollout{nil, {second}}},
		{reason: "a failure domain of a pool", change: func(c *clusterv1.Cluster) {
			c.Spec.Topology.Workers.MachinePools[0].FailureDomains = []string{"a"}
		}, want: [][]Rollout{{{Kind: "MachinePool", Name: "demo-mp-0", Reasons: []string{"spec.failureDomains"}, Unknown: true}}}},
		{reason: "a timeout of a pool replaces nothing", change: func(c *clusterv1.Cluster) {
			c.Spec.Topology.Workers.MachinePools[0].Deletion.NodeDrainTimeoutSeconds = new(int32(60))
		}, want: [][]Rollout{nil}},
		{reason: "the number of machines of a pool replaces nothing", change: func(c *clusterv1.Cluster) { *c.Spec.Topology.Workers.MachinePools[0].Replicas = 5 }, want: [][]Rollout{nil}},
	}
}

func TestRollouts(t *testing.T) {
	for _, tc := range rolloutCases() {
		t.Run(tc.reason, func(t *testing.T) {
			var before []func(*unstructured.Unstructured)
			if tc.before != nil {
				before = append(before, tc.before)
			}
			plan, err := compute(t, Input{
				Objects:       existing(t, workers, tc.change, before...),
				ControlPlanes: map[schema.GroupKind]Outdated{{Group: "controlplane.cluster.x-k8s.io", Kind: "KubeadmControlPlane"}: byVersion},
			})
			testenv.Must(t, err)
			var got [][]Rollout
			for _, round := range plan.Rounds {
				got = append(got, round.Rollouts)
				for i := range round.Rollouts {
					r := &round.Rollouts[i]
					r.Name = r.Name[:strings.LastIndex(r.Name, "-")]
				}
			}
			if diff := cmp.Diff(tc.want, got, cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("rollouts (-want +got):\n%s", diff)
			}
			if tc.waiting == "" && plan.Waiting != "" || !strings.Contains(plan.Waiting, tc.waiting) {
				t.Errorf("waiting for %q, want %q", plan.Waiting, tc.waiting)
			}
		})
	}
}

// TestPoolReasons is about the objects that a MachinePool refers to.
func TestPoolReasons(t *testing.T) {
	change := func(apiVersion, kind, name string, fields ...string) Change {
		u := &unstructured.Unstructured{Object: map[string]any{"apiVersion": apiVersion, "kind": kind}}
		u.SetName(name)
		return Change{Action: Modified, Before: u, After: u, Fields: fields}
	}
	pool := &clusterv1.MachinePool{ObjectMeta: metav1.ObjectMeta{Name: "p"}}
	pool.Spec.Template.Spec.InfrastructureRef.APIGroup = "infra.io"
	pool.Spec.Template.Spec.InfrastructureRef.Kind = "ThingPool"
	pool.Spec.Template.Spec.InfrastructureRef.Name = "t"
	for _, tc := range []struct {
		reason string
		change Change
		want   []string
	}{
		{reason: "its infrastructure", change: change("infra.io/v1", "ThingPool", "t", "metadata.labels.a", "spec.size"), want: []string{"ThingPool spec.size"}},
		{reason: "its infrastructure at another API version", change: change("infra.io/v2", "ThingPool", "t", "spec.size"), want: []string{"ThingPool spec.size"}},
		{reason: "the infrastructure of another pool", change: change("infra.io/v1", "ThingPool", "u", "spec.size")},
		{reason: "another pool", change: change("cluster.x-k8s.io/v1beta2", "MachinePool", "q", "spec.template.spec.version")},
		{reason: "a created object", change: Change{Action: Created, After: change("infra.io/v1", "ThingPool", "t").After}},
	} {
		t.Run(tc.reason, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, poolReasons(pool, []Change{tc.change})); diff != "" {
				t.Error(diff)
			}
		})
	}
}
