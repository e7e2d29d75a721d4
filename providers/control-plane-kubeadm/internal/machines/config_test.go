package machines

import (
	"encoding/json"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/utils/ptr"

	bootstrapv1beta1 "sigs.k8s.io/cluster-api/api/bootstrap/v1beta1"
	bootstrapv1 "sigs.k8s.io/cluster-api/api/bootstrap/v1beta2"
	controlplanev1beta1 "sigs.k8s.io/cluster-api/api/controlplane/v1beta1"
	controlplanev1 "sigs.k8s.io/cluster-api/api/controlplane/v1beta2"
	"sigs.k8s.io/cluster-api/sdk/conversion"
	"sigs.k8s.io/cluster-api/sdk/testenv"
)

// What clients of v1beta1 write into a control plane reaches the KubeadmConfigs, also what v1beta2 does not have: they are as if the
// sections had been copied in v1beta1.
func TestConfigsOfClientsOfV1beta1(t *testing.T) {
	for _, tc := range []struct{ reason, spec string }{
		{"nothing", `{}`},
		{"fields that v1beta2 does not have", `{"useExperimentalRetryJoin": true, "clusterConfiguration": {"clusterName": "c",
			"kubernetesVersion": "v1.30.0", "networking": {"podSubnet": "10.0.0.0/8"}, "apiServer": {"extraArgs": {"a": "b"}}},
			"initConfiguration": {"nodeRegistration": {"taints": []}}, "joinConfiguration": {"nodeRegistration": {"name": "n"}}}`},
		{"a timeout of init and join", `{"clusterConfiguration": {"apiServer": {"timeoutForControlPlane": "90s"}}, "joinConfiguration": {"caCertPath": "/x"}}`},
		{"only a timeout", `{"clusterConfiguration": {"apiServer": {"timeoutForControlPlane": "90s"}}}`},
		{"less than a second", `{"clusterConfiguration": {"apiServer": {"timeoutForControlPlane": "1500ms"}}, "joinConfiguration": {"discovery": {"timeout": "2500ms"}}}`},
		{"empty sections", `{"clusterConfiguration": {}, "initConfiguration": {}, "joinConfiguration": {"controlPlane": {}}}`},
		{"empty texts", `{"preKubeadmCommands": ["", "a"], "users": [{"name": "u", "sshAuthorizedKeys": [""]}],
			"clusterConfiguration": {"apiServer": {"certSANs": ["", "x"]}}, "initConfiguration": {"skipPhases": [""]}}`},
		{"an empty section", `{"clusterConfiguration": {"etcd": {"local": {}}}}`},
		{"other fields", `{"files": [{"path": "/x", "content": "y"}], "users": [{"name": "u", "inactive": false}], "ntp": {}, "format": "cloud-config"}`},
	} {
		for _, role := range []Role{Initialize, Join} {
			t.Run(fmt.Sprintf("%s, first %t", tc.reason, role), func(t *testing.T) {
				older := &controlplanev1beta1.KubeadmControlPlane{}
				testenv.Must(t, json.Unmarshal([]byte(tc.spec), &older.Spec.KubeadmConfigSpec))
				kcp := &controlplanev1.KubeadmControlPlane{}
				testenv.Must(t, conversion.Shared().Convert(t.Context(), older, kcp))
				got, err := newConfig(t.Context(), kcp, role)
				testenv.Must(t, err)

				written, want := &bootstrapv1beta1.KubeadmConfig{Spec: older.Spec.KubeadmConfigSpec}, &bootstrapv1.KubeadmConfig{}
				switch s := &written.Spec; {
				case role == Join:
					s.ClusterConfiguration, s.InitConfiguration = nil, nil
				case s.ClusterConfiguration == nil && s.InitConfiguration == nil:
					s.InitConfiguration = &bootstrapv1beta1.InitConfiguration{}
					s.InitConfiguration.NodeRegistration.ImagePullPolicy = "IfNotPresent"
					fallthrough
				default:
					s.JoinConfiguration = nil
				}
				testenv.Must(t, conversion.Shared().Convert(t.Context(), written, want))
				if diff := cmp.Diff(want.Spec, got.Spec); diff != "" {
					t.Errorf("spec (-want +got):\n%s", diff)
				}
				shown := &bootstrapv1beta1.KubeadmConfig{}
				testenv.Must(t, conversion.Shared().Convert(t.Context(), got, shown))
				if diff := cmp.Diff(asWritten(t, written.Spec), asWritten(t, shown.Spec)); diff != "" {
					t.Errorf("as clients of v1beta1 see it (-want +got):\n%s", diff)
				}
			})
		}
	}
}

// asWritten returns a spec as its type writes it.
func asWritten(t *testing.T, spec bootstrapv1beta1.KubeadmConfigSpec) string {
	t.Helper()
	raw, err := json.MarshalIndent(spec, "", " ")
	testenv.Must(t, err)
	return string(raw)
}

// What only v1beta2 has reaches the KubeadmConfigs, too.
func TestTimeoutsOfJoiningMachines(t *testing.T) {
	timeouts := func(component, kubelet *int32) bootstrapv1.Timeouts {
		return bootstrapv1.Timeouts{ControlPlaneComponentHealthCheckSeconds: component, KubeletHealthCheckSeconds: kubelet}
	}
	for _, tc := range []struct {
		reason           string
		init, join, want bootstrapv1.Timeouts
	}{
		{reason: "none"},
		{"the timeout of all Machines is recorded", timeouts(ptr.To[int32](60), nil), timeouts(ptr.To[int32](60), ptr.To[int32](30)), timeouts(nil, ptr.To[int32](30))},
		{"the only one is recorded", timeouts(nil, nil), timeouts(ptr.To[int32](60), nil), timeouts(nil, nil)},
		{"another one than that of init", timeouts(ptr.To[int32](60), nil), timeouts(ptr.To[int32](90), nil), timeouts(ptr.To[int32](90), nil)},
	} {
		kcp := &controlplanev1.KubeadmControlPlane{}
		kcp.Spec.KubeadmConfigSpec.InitConfiguration.Timeouts, kcp.Spec.KubeadmConfigSpec.JoinConfiguration.Timeouts = tc.init, tc.join
		got, err := newConfig(t.Context(), kcp, Join)
		testenv.Must(t, err)
		if diff := cmp.Diff(tc.want, got.Spec.JoinConfiguration.Timeouts); diff != "" {
			t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
		}
	}
}

// Kubelets of new control planes connect to the API server beside them, where kubeadm has a feature gate for it. Machines that join read
// that from the cluster, and the spec can choose otherwise.
func TestKubeletLocalMode(t *testing.T) {
	const gate = "ControlPlaneKubeletLocalMode"
	for _, tc := range []struct {
		reason, version string
		role            Role
		spec, want      map[string]bool
	}{
		{"before the feature gate", "v1.30.5", Initialize, nil, nil},
		{"the first Machine", "v1.31.0", Initialize, nil, map[string]bool{gate: true}},
		{"beside other feature gates", "v1.35.2", Initialize, map[string]bool{"X": true}, map[string]bool{"X": true, gate: true}},
		{"chosen otherwise", "v1.35.2", Initialize, map[string]bool{gate: false}, map[string]bool{gate: false}},
		{"there is no other mode", "v1.36.0", Initialize, nil, nil},
		{"a Machine that joins", "v1.31.0", Join, nil, nil},
	} {
		kcp := &controlplanev1.KubeadmControlPlane{}
		kcp.Spec.Version, kcp.Spec.KubeadmConfigSpec.ClusterConfiguration.FeatureGates = tc.version, tc.spec
		before := kcp.DeepCopy()
		got, err := newConfig(t.Context(), kcp, tc.role)
		testenv.Must(t, err)
		if diff := cmp.Diff(tc.want, got.Spec.ClusterConfiguration.FeatureGates); diff != "" {
			t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
		}
		if diff := cmp.Diff(before, kcp); diff != "" {
			t.Errorf("%s: the control plane changes (-want +got):\n%s", tc.reason, diff)
		}
	}
}
