package webhook

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
)

// withGroup returns the workers of a topology: one MachineDeployment, with a version of its own unless that is empty.
func withGroup(version string) string {
	return `workers: {machineDeployments: [{class: default-worker, name: md` + own(version) + `}]}`
}

// withPool is withGroup for a MachinePool.
func withPool(version string) string {
	return `workers: {machinePools: [{class: p, name: pool` + own(version) + `}]}`
}

func own(version string) string {
	if version == "" {
		return ""
	}
	return `, version: ` + version
}

func pinnedPool(t *testing.T, version string) client.Object {
	t.Helper()
	p := ownedPool(t, version)
	labels := p.GetLabels()
	labels[clusterv1.ClusterTopologyMachinePoolNameLabel] = "pool"
	p.SetLabels(labels)
	return p
}

// pinning is a case of versions of workers: topologies without class and variables.
type pinning struct {
	reason       string
	off          bool
	objects      []client.Object
	old, topo    string
	annotations  string
	paused       bool
	controlPlane string
	nodes        map[string]string
	listed       []string
	want         string
	warnings     []string
	lists        int
}

const ownVersion = `spec.topology.workers.machineDeployments[0].version: `

func TestPinned(t *testing.T) {
	unsafe := `unsafe.topology.cluster.x-k8s.io/disable-update-version-check: ""`
	present := []client.Object{ownedDeployment(t, "md", "v1.30.0")}
	for _, tt := range []pinning{
		{reason: "a new Cluster", topo: `version: v1.30.0, ` + withGroup("v1.30.0")},
		{reason: "the feature gate is off", off: true, topo: `version: v1.30.0, ` + withGroup("v1.30.0"),
			want: ownVersion + `Forbidden: versions of workers require the feature gate ClusterTopologyWorkerVersionPinning`},
		{reason: "the feature gate is off, and nothing changes", off: true, old: `version: v1.30.0, ` + withGroup("v1.29.0"), topo: `version: v1.30.1, ` + withGroup("v1.29.0")},
		{reason: "the feature gate is off, and the version is removed", off: true, old: `version: v1.30.0, ` + withGroup("v1.29.0"), topo: `version: v1.30.0, ` + withGroup("")},
		{reason: "an invalid version", topo: `version: v1.30.0, ` + withGroup("v1.30"),
			want: ownVersion + `Invalid value: "v1.30": must be a semantic version with a leading "v", such as v1.30.2`},
		{reason: "a lower version in a new Cluster", topo: `version: v1.30.0, ` + withGroup("v1.29.0"), lists: 1,
			want: ownVersion + `Invalid value: "v1.29.0": must be v1.30.0, the version of the topology, because the MachineDeployment does not exist yet`},
		{reason: "a Cluster that is moved, paused", paused: true, topo: `version: v1.30.0, ` + withGroup("v1.29.0")},
		{reason: "but only within the skew", paused: true, topo: `version: v1.30.0, ` + withGroup("v1.26.0"),
			want: ownVersion + `Invalid value: "v1.26.0": must be v1.27 or later, because kubelets may be at most 3 minor versions older than v1.30.0, the version of the topology`},
		{reason: "a higher version than that of the topology", topo: `version: v1.30.0, ` + withGroup("v1.31.0"),
			want: ownVersion + `Invalid value: "v1.31.0": must not be higher than v1.30.0, the version of the topology`},
		{reason: "the present version, together with an upgrade", objects: present, controlPlane: stablePlane, old: `version: v1.30.0, ` + withGroup(""), topo: `version: v1.31.0, ` + withGroup("v1.30.0"), lists: 4},
		{reason: "the version of the topology, which the workers do not have yet", objects: present, old: `version: v1.31.0, ` + withGroup(""), topo: `version: v1.31.0, ` + withGroup("v1.31.0")},
		{reason: "neither of them", objects: present, old: `version: v1.31.0, ` + withGroup(""), topo: `version: v1.31.0, ` + withGroup("v1.29.0"), lists: 1,
			want: ownVersion + `Invalid value: "v1.29.0": must be v1.30.0, the present version, or v1.31.0, the version of the topology: it can be raised afterwards`},
		{reason: "not the only one", objects: present, old: `version: v1.30.0, ` + withGroup(""), topo: `version: v1.30.0, ` + withGroup("v1.29.0"), lists: 1,
			want: ownVersion + `Invalid value: "v1.29.0": must be v1.30.0, the present version: it can be raised afterwards`},
		{reason: "a new group", objects: present, old: `version: v1.31.0`, topo: `version: v1.31.0, workers: {machineDeployments: [{class: default-worker, name: new, version: v1.30.0}]}`, lists: 1,
			want: ownVersion + `Invalid value: "v1.30.0": must be v1.31.0, the version of the topology, because the MachineDeployment does not exist yet`},
		{reason: "it is raised", old: `version: v1.31.0, ` + withGroup("v1.29.0"), topo: `version: v1.31.0, ` + withGroup("v1.30.2")},
		{reason: "it is lowered", old: `version: v1.31.0, ` + withGroup("v1.30.1"), topo: `version: v1.31.0, ` + withGroup("v1.30.0"),
			want: ownVersion + `Invalid value: "v1.30.0": must not be lower than the previous version v1.30.1`},
		{reason: "it is lowered with the unsafe annotation", annotations: unsafe, old: `version: v1.31.0, ` + withGroup("v1.30.1"), topo: `version: v1.31.0, ` + withGroup("v1.30.0"),
			warnings: []string{`Accepted because annotation unsafe.topology.cluster.x-k8s.io/disable-update-version-check is set: ` + ownVersion + `Invalid value: "v1.30.0": must not be lower than the previous version v1.30.1`}},
		{reason: "it is removed", old: `version: v1.31.0, ` + withGroup("v1.29.0"), topo: `version: v1.31.0, ` + withGroup("")},
		{reason: "the class lists it", listed: []string{"v1.29.0", "v1.30.0", "v1.31.0"}, old: `version: v1.31.0, ` + withGroup("v1.29.0"), topo: `version: v1.31.0, ` + withGroup("v1.30.0")},
		{reason: "the class does not list it", listed: []string{"v1.29.0", "v1.30.0", "v1.31.0"}, old: `version: v1.31.0, ` + withGroup("v1.29.0"), topo: `version: v1.31.0, ` + withGroup("v1.30.1"),
			want: ownVersion + `Invalid value: "v1.30.1": must be one of spec.kubernetesVersions of ClusterClass a: v1.29.0, v1.30.0, v1.31.0`},
		{reason: "the class no longer lists it, and nothing changes", listed: []string{"v1.31.0"}, old: `version: v1.31.0, ` + withGroup("v1.29.0"), topo: `version: v1.31.0, controlPlane: {replicas: 3}, ` + withGroup("v1.29.0")},
		{reason: "a MachinePool", objects: []client.Object{pinnedPool(t, "v1.30.0")}, old: `version: v1.31.0, ` + withPool(""), topo: `version: v1.31.0, ` + withPool("v1.30.0"), lists: 1},
		{reason: "a MachinePool that does not exist yet", old: `version: v1.31.0, ` + withPool(""), topo: `version: v1.31.0, ` + withPool("v1.30.0"), lists: 1,
			want: `spec.topology.workers.machinePools[0].version: Invalid value: "v1.30.0": must be v1.31.0, the version of the topology, because the MachinePool does not exist yet`},
	} {
		t.Run(tt.reason, tt.run)
	}
}

const stablePlane = `{kind: KubeadmControlPlane, metadata: {name: cp}, spec: {version: v1.30.0}, status: {version: v1.30.0}}`

// TestUpgradeAbovePinned is about a higher version of the topology.
func TestUpgradeAbovePinned(t *testing.T) {
	const was, is = `version: v1.30.0, `, `version: v1.31.0, `
	const notAtVersion = `spec.topology.version: Invalid value: "v1.31.0": all parts of the Cluster must have version v1.30.0 before the upgrade: `
	const tooOld = `, which is too old for v1.31.0: wait for the version in its topology to be rolled out`
	for _, tt := range []pinning{
		{reason: "pinned workers need not have the version", objects: []client.Object{ownedDeployment(t, "md", "v1.28.0"), ownedMachine(t, "m", "md", "v1.28.0")},
			old: was + withGroup("v1.28.0"), topo: is + withGroup("v1.28.0"), lists: 3},
		{reason: "they must be new enough", old: was + withGroup("v1.27.0"), topo: is + withGroup("v1.27.0"), objects: []client.Object{ownedDeployment(t, "md", "v1.27.0")},
			want: `spec.topology.version: Invalid value: "v1.31.0": MachineDeployment md is pinned to v1.27.0, and kubelets may be ` +
				`at most 3 minor versions older: first raise spec.topology.workers.machineDeployments[0].version to v1.28 or later, or remove it`},
		{reason: "also for the last of several minor versions", listed: []string{"v1.28.0", "v1.29.0", "v1.30.0", "v1.31.0", "v1.32.0"}, old: was + withGroup("v1.28.0"), topo: `version: v1.32.0, ` + withGroup("v1.28.0"),
			want: `spec.topology.version: Invalid value: "v1.32.0": MachineDeployment md is pinned to v1.28.0, and kubelets may be ` +
				`at most 3 minor versions older: first raise spec.topology.workers.machineDeployments[0].version to v1.29 or later, or remove it`},
		{reason: "it is not enough to raise the version of both", old: was + withGroup("v1.27.0"), topo: is + withGroup("v1.28.0"), objects: []client.Object{ownedDeployment(t, "md", "v1.27.0")}, lists: 3,
			want: notAtVersion + `MachineDeployment c-md has version v1.27.0` + tooOld},
		{reason: "all Machines must be new enough", old: was + withGroup("v1.28.0"), topo: is + withGroup("v1.28.0"), lists: 3,
			objects: []client.Object{ownedDeployment(t, "md", "v1.28.0"), ownedMachine(t, "m", "md", "v1.27.0")},
			want:    notAtVersion + `MachineDeployment c-md has Machines with version v1.27.0` + tooOld},
		{reason: "pinned workers whose version is removed must have the version", old: was + withGroup("v1.28.0"), topo: is + withGroup(""), objects: []client.Object{ownedDeployment(t, "md", "v1.28.0")}, lists: 3,
			want: notAtVersion + `MachineDeployment c-md has version v1.28.0`},
		{reason: "other workers must have the version", old: was + withGroup("v1.28.0"), topo: is + withGroup("v1.28.0"), lists: 3,
			objects: []client.Object{ownedDeployment(t, "md", "v1.28.0"), ownedDeployment(t, "other", "v1.29.0")},
			want:    notAtVersion + `MachineDeployment c-other has version v1.29.0`},
		{reason: "a pinned MachinePool", objects: []client.Object{pinnedPool(t, "v1.28.0")}, nodes: map[string]string{"node-1": "v1.28.0"}, old: was + withPool("v1.28.0"), topo: is + withPool("v1.28.0"), lists: 2},
		{reason: "a pinned MachinePool that is too old", objects: []client.Object{pinnedPool(t, "v1.27.0")}, old: was + withPool("v1.28.0"), topo: is + withPool("v1.28.0"), lists: 2,
			want: notAtVersion + `MachinePool c-pool has version v1.27.0` + tooOld},
		{reason: "Nodes of a pinned MachinePool that are too old", objects: []client.Object{pinnedPool(t, "v1.28.0")}, nodes: map[string]string{"node-1": "v1.27.0"},
			old: was + withPool("v1.28.0"), topo: is + withPool("v1.28.0"), lists: 2, want: notAtVersion + `MachinePool c-pool: Node node-1 has version v1.27.0` + tooOld},
	} {
		tt.controlPlane = stablePlane
		t.Run(tt.reason, tt.run)
	}
}

func (tt pinning) run(t *testing.T) {
	class := reconciledClass(t, "a", func(c *clusterv1.ClusterClass) {
		c.Spec.Workers.MachinePools = []clusterv1.MachinePoolClass{{Class: "p"}}
		c.Spec.KubernetesVersions = tt.listed
	})
	w := newWorld(t, append(tt.objects, class)...)
	w.controlPlane, w.nodes = tt.controlPlane, tt.nodes
	webhook := w.webhook(t)
	webhook.options.ClusterTopologyWorkerVersionPinning = !tt.off
	clusterOf := func(topology string) *clusterv1.Cluster {
		c := parse[clusterv1.Cluster](t, clusterWith(tt.annotations, `classRef: {name: a}, `+repositoryVariable+`, `+topology))
		if tt.paused {
			c.Spec.Paused = &tt.paused
		}
		if tt.controlPlane != "" {
			c.Spec.ControlPlaneRef = clusterv1.ContractVersionedObjectReference{Kind: "KubeadmControlPlane", Name: "cp"}
		}
		return &c
	}
	warnings, err := []string(nil), error(nil)
	if tt.old == "" {
		warnings, err = webhook.ValidateCreate(t.Context(), clusterOf(tt.topo))
	} else {
		warnings, err = webhook.ValidateUpdate(t.Context(), clusterOf(tt.old), clusterOf(tt.topo))
	}
	want := tt.want
	if want != "" {
		want = clusterInvalid + want
	}
	if diff := cmp.Diff([]any{want, tt.warnings, tt.lists}, []any{text(err), warnings, w.reader.lists}); diff != "" {
		t.Errorf("%s: error, warnings, lists (-want +got):\n%s", tt.reason, diff)
	}
}
