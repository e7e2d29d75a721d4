package machineset

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/sdk/condition"
	"sigs.k8s.io/cluster-api/sdk/report"
	"sigs.k8s.io/cluster-api/sdk/testenv/fakeapi"
	"sigs.k8s.io/cluster-api/sdk/testenv/object"
)

// planeKind is the kind of control planes.
var planeKind = schema.GroupVersionKind{Group: "controlplane.cluster.x-k8s.io", Version: "v1beta1", Kind: "KubeadmControlPlane"}

// plane returns a control plane object with versions in spec and status.
func plane(spec, status string, ready bool) *unstructured.Unstructured {
	fields := object.Fields{"spec": object.Fields{}, "status": object.Fields{"ready": ready, "initialized": ready}}
	if spec != "" {
		fields["spec"] = object.Fields{"version": spec}
	}
	if status != "" {
		fields["status"].(object.Fields)["version"] = status
	}
	return object.Builder{}.Provided(planeKind, "cp", fields)
}

// preflightCase is a MachineSet, its control plane and its topology, and why no Machines are created.
type preflightCase struct {
	reason    string
	off       bool
	plane     *unstructured.Unstructured
	version   string
	bootstrap string // kind of the bootstrap template
	skip      string
	skipAlso  string // by the bootstrap template
	only      Checks
	topology  string // its version
	step      string // of an upgrade by several
	pinned    string // version of the group in the topology
	reason1   string // of condition TopologyReconciled in v1beta1
	reason2   string // in v1beta2
	want      string
}

func TestPreflight(t *testing.T) {
	stable := func(v string) *unstructured.Unstructured { return plane(v, v, true) }
	cases := map[string]preflightCase{
		"Passed":  {reason: "all checks pass", plane: stable("v1.30.1"), version: "v1.30.0", bootstrap: "KubeadmConfigTemplate"},
		"Off":     {reason: "the feature gate is disabled", off: true, plane: plane("v1.30.1", "", false), version: "v1.31.0"},
		"NoPlane": {reason: "the control plane object does not exist", version: "v1.31.0", want: "the control plane object does not exist yet"},
		"Unset":   {reason: "the control plane has no version", plane: plane("", "", false), version: "v1.31.0"},
		"Provisioning": {reason: "the control plane is not ready", plane: plane("v1.30.1", "", false), version: "v1.30.1",
			want: "ControlPlaneIsStable: the control plane is being provisioned"},
		"Upgrading": {reason: "the versions in spec and status differ", plane: plane("v1.30.1", "v1.30.0", true), version: "v1.30.1",
			want: "ControlPlaneIsStable: the control plane is being upgraded"},
		"Skipped": {reason: "the annotation skips this check", plane: plane("v1.30.1", "v1.30.0", true), version: "v1.30.1", skip: "KubeadmVersionSkew, ControlPlaneIsStable"},
		"All":     {reason: "the annotation skips all checks", plane: plane("v1.30.1", "v1.30.0", true), version: "v1.35.0", skip: "All"},
		"SkippedByTemplate": {reason: "the annotation of the bootstrap template skips this check", plane: stable("v1.30.0"), version: "v1.29.0",
			bootstrap: "KubeadmConfigTemplate", skipAlso: "KubeadmVersionSkew"},
		"AllByTemplate": {reason: "the annotation of the bootstrap template skips all checks", plane: plane("v1.30.1", "v1.30.0", true), version: "v1.35.0",
			bootstrap: "KubeadmConfigTemplate", skipAlso: "All"},
		"OthersByTemplate": {reason: "the annotation of the bootstrap template skips another check", plane: stable("v1.30.0"), version: "v1.29.0",
			bootstrap: "KubeadmConfigTemplate", skipAlso: "ControlPlaneIsStable",
			want: "KubeadmVersionSkew: kubeadm v1.29.0 cannot join a control plane of v1.30.0: the minor versions must be equal"},
		"Newer": {reason: "the kubelet would be newer than the API server", plane: stable("v1.30.9"), version: "v1.31.0",
			want: "KubernetesVersionSkew: version v1.31.0 is incompatible with the control plane's v1.30.9: it must not be newer, and at most 3 minor versions older"},
		"NewerPatch": {reason: "patch versions do not matter", plane: stable("v1.30.0"), version: "v1.30.9"},
		"ThreeOlder": {reason: "three minor versions are the limit", plane: stable("v1.30.0"), version: "v1.27.0"},
		"FourOlder": {reason: "four minor versions are too many", plane: stable("v1.30.0"), version: "v1.26.0",
			want: "KubernetesVersionSkew: version v1.26.0 is incompatible with the control plane's v1.30.0: it must not be newer, and at most 3 minor versions older"},
		"ThreeOlderEarly": {reason: "before v1.28, two minor versions are the limit", plane: stable("v1.27.0"), version: "v1.24.0",
			want: "KubernetesVersionSkew: version v1.24.0 is incompatible with the control plane's v1.27.0: it must not be newer, and at most 2 minor versions older"},
		"Kubeadm": {reason: "kubeadm requires the same minor version", plane: stable("v1.30.0"), version: "v1.29.0", bootstrap: "KubeadmConfigTemplate",
			want: "KubeadmVersionSkew: kubeadm v1.29.0 cannot join a control plane of v1.30.0: the minor versions must be equal"},
		"OtherBootstrap": {reason: "other bootstrap providers have no such requirement", plane: stable("v1.30.0"), version: "v1.29.0", bootstrap: "OtherTemplate"},
		"Pending": {reason: "the topology is going to upgrade the control plane", plane: stable("v1.30.1"), version: "v1.30.1", topology: "v1.31.0",
			want: "ControlPlaneIsStable: the control plane is going to be upgraded to v1.31.0"},
		"Step": {reason: "the control plane has the version of the present step", plane: stable("v1.31.1"), version: "v1.31.1", topology: "v1.33.0", step: "v1.31.1"},
		"NextStep": {reason: "the next step is about to begin", plane: stable("v1.31.1"), version: "v1.31.1", topology: "v1.33.0", step: "v1.32.0",
			want: "ControlPlaneIsStable: the control plane is going to be upgraded to v1.32.0"},
		"Blocked": {reason: "a hook blocks the upgrade, for days", plane: stable("v1.30.1"), version: "v1.30.1", topology: "v1.31.0", reason1: "LifecycleHookBlocking"},
		"Behind": {reason: "the MachineSet is going to be upgraded", plane: stable("v1.31.0"), version: "v1.30.1", topology: "v1.31.0",
			want: "ControlPlaneVersionSkew: version v1.30.1 is not yet that of the control plane, v1.31.0"},
		"Deferred":  {reason: "a user defers the upgrade", plane: stable("v1.31.0"), version: "v1.30.1", topology: "v1.31.0", reason2: "MachineDeploymentsUpgradeDeferred"},
		"Selected":  {reason: "the flag selects other checks", plane: plane("v1.30.1", "v1.30.0", true), version: "v1.35.0", only: Checks{"KubeadmVersionSkew"}},
		"NoVersion": {reason: "the MachineSet has no version", plane: stable("v1.30.0"), bootstrap: "KubeadmConfigTemplate"},
		"Two": {reason: "all failures are reported", plane: plane("v1.30.1", "v1.30.0", true), version: "v1.31.0",
			want: "ControlPlaneIsStable: the control plane is being upgraded; KubernetesVersionSkew: version v1.31.0 is incompatible with the control plane's v1.30.1: it must not be newer, and at most 3 minor versions older"},
	}
	for name, tc := range cases {
		t.Run(name, tc.run)
	}
}

func TestPreflightOfPinnedGroups(t *testing.T) {
	stable := func(v string) *unstructured.Unstructured { return plane(v, v, true) }
	for name, tc := range map[string]preflightCase{
		"Pinned": {reason: "the group has a version of its own", plane: stable("v1.33.0"), version: "v1.30.1", topology: "v1.33.0", pinned: "v1.30.1", bootstrap: "KubeadmConfigTemplate"},
		"PinnedTooOld": {reason: "kubelets of a group with a version of its own may be too old", plane: stable("v1.34.0"), version: "v1.30.1", topology: "v1.34.0", pinned: "v1.30.1", bootstrap: "KubeadmConfigTemplate",
			want: "KubernetesVersionSkew: version v1.30.1 is incompatible with the control plane's v1.34.0: it must not be newer, and at most 3 minor versions older"},
		"PinnedUnstable": {reason: "Machines of such a group wait, too, while the control plane is being upgraded", plane: plane("v1.31.0", "v1.30.0", true), version: "v1.30.0", topology: "v1.31.0", pinned: "v1.30.0",
			want: "ControlPlaneIsStable: the control plane is being upgraded"},
		"Unpinned": {reason: "the version of the group was removed", plane: stable("v1.31.0"), version: "v1.30.1", topology: "v1.31.0", pinned: "-", bootstrap: "KubeadmConfigTemplate",
			want: "KubeadmVersionSkew: kubeadm v1.30.1 cannot join a control plane of v1.31.0: the minor versions must be equal; " +
				"ControlPlaneVersionSkew: version v1.30.1 is not yet that of the control plane, v1.31.0"},
	} {
		t.Run(name, tc.run)
	}
}

func (tc preflightCase) run(t *testing.T) {
	objects := []client.Object{object.CRD(planeKind)}
	if tc.plane != nil {
		objects = append(objects, tc.plane)
	}
	if tc.bootstrap != "" {
		template := object.Builder{}.Provided(bootstrap(tc.bootstrap), "b", nil)
		if tc.skipAlso != "" {
			template.SetAnnotations(map[string]string{clusterv1.MachineSetSkipPreflightChecksAnnotation: tc.skipAlso})
		}
		objects = append(objects, object.CRD(bootstrap(tc.bootstrap)), template)
	}
	c := &Controller{Clients: fakeapi.New(t, fakeapi.Options{Objects: objects}).ForController(), preflight: !tc.off, checks: tc.only}
	c.external = fakeapi.External(c.Clients)
	set := &clusterv1.MachineSet{ObjectMeta: metav1.ObjectMeta{Namespace: "default"}}
	if tc.skip != "" {
		set.Annotations = map[string]string{clusterv1.MachineSetSkipPreflightChecksAnnotation: tc.skip}
	}
	if tc.version != "" {
		set.Spec.Template.Spec.Version = tc.version
	}
	if tc.bootstrap != "" {
		set.Spec.Template.Spec.Bootstrap.ConfigRef = *object.Reference(bootstrap(tc.bootstrap), "b")
	}
	cluster := object.Builder{}.Cluster(func(c *clusterv1.Cluster) {
		c.Spec.ControlPlaneRef = *object.Reference(planeKind, "cp")
		if tc.topology != "" {
			c.Spec.Topology = clusterv1.Topology{ClassRef: clusterv1.ClusterClassRef{Name: "class"}, Version: tc.topology}
		}
		if tc.pinned != "" {
			set.Spec.Template.Labels = map[string]string{clusterv1.ClusterTopologyMachineDeploymentNameLabel: "md"}
			c.Spec.Topology.Workers.MachineDeployments = []clusterv1.MachineDeploymentTopology{
				{Name: "other", Version: "v1.30.1"}, {Name: "md", Version: strings.TrimPrefix(tc.pinned, "-")},
			}
		}
		if tc.step != "" {
			c.Annotations = map[string]string{clusterv1.ClusterTopologyUpgradeStepAnnotation: tc.step}
		}
		if tc.reason1 != "" {
			condition.Set(c, condition.False(clusterv1.TopologyReconciledV1Beta1Condition, clusterv1.ConditionSeverityInfo, tc.reason1, ""))
		}
		if tc.reason2 != "" {
			c.Status.Conditions = []metav1.Condition{report.False(clusterv1.ClusterTopologyReconciledCondition, tc.reason2, "")}
		}
	})
	got, err := c.preflightFailure(t.Context(), &scope{set: set, cluster: cluster})
	if err != nil {
		t.Fatalf("%s: %v", tc.reason, err)
	}
	if diff := cmp.Diff(tc.want, got); diff != "" {
		t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
	}
}

func TestValidateChecks(t *testing.T) {
	if err := (Checks{"All", "ControlPlaneIsStable"}).Validate(); err != nil {
		t.Error(err)
	}
	if err := (Checks{"ControlPlaneIsStabel"}).Validate(); err == nil {
		t.Error("a misspelled name must be rejected")
	}
}
