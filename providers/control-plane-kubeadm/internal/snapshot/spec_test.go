package snapshot

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/utils/ptr"

	bootstrapv1 "sigs.k8s.io/cluster-api/api/bootstrap/v1beta2"
	controlplanev1beta1 "sigs.k8s.io/cluster-api/api/controlplane/v1beta1"
	controlplanev1 "sigs.k8s.io/cluster-api/api/controlplane/v1beta2"
	"sigs.k8s.io/cluster-api/sdk/conversion"
	"sigs.k8s.io/cluster-api/sdk/testenv"
)

// recordedBy returns what Machines record of a spec.
func recordedBy(t *testing.T, s Spec) map[string]string {
	t.Helper()
	annotations := map[string]string{}
	testenv.Must(t, s.Record(annotations))
	return annotations
}

// Machines that exist have recorded the JSON of v1beta1, and a hash of it. What clients of v1beta1 write must not change either.
func TestRecordsOfClientsOfV1beta1(t *testing.T) {
	for _, spec := range []string{
		`{}`,
		`{"clusterConfiguration": {}, "initConfiguration": {}, "joinConfiguration": {}}`,
		`{"clusterConfiguration": {"etcd": {"local": {}}, "apiServer": {"extraArgs": {}, "certSANs": []}}, "files": [], "ntp": {}, "diskSetup": {}}`,
		`{"clusterConfiguration": {"etcd": {"external": {"endpoints": [], "caFile": ""}}, "featureGates": {"A": false}}}`,
		`{"clusterConfiguration": {"apiVersion": "kubeadm.k8s.io/v1beta3", "kind": "ClusterConfiguration", "clusterName": "c", "kubernetesVersion": "v1",
			"networking": {"podSubnet": "10.0.0.0/8"}, "apiServer": {"extraArgs": {"b": "1", "a": ""}, "timeoutForControlPlane": "90500ms",
			"extraVolumes": [{"name": "n", "hostPath": "/h", "mountPath": "/m", "readOnly": false}]}}, "useExperimentalRetryJoin": true}`,
		`{"initConfiguration": {"apiVersion": "a/v1", "kind": "K", "nodeRegistration": {"taints": [], "kubeletExtraArgs": {"v": "4"}},
			"bootstrapTokens": [{"token": "abcdef.0123456789abcdef", "ttl": "1.5s", "usages": []}], "localAPIEndpoint": {"bindPort": 0}, "patches": {}},
			"joinConfiguration": {"nodeRegistration": {"taints": null, "ignorePreflightErrors": []}, "controlPlane": {}, "discovery": {"timeout": "0s",
			"bootstrapToken": {"token": "", "unsafeSkipCAVerification": false}, "file": {"kubeConfigPath": ""}}}}`,
		`{"files": [{"path": "/x", "contentFrom": {"secret": {"name": "", "key": ""}}, "append": false}, {"path": "/y", "content": ""}],
			"users": [{"name": "u", "inactive": false, "sudo": "", "passwdFrom": {"secret": {"name": "n", "key": "k"}}}], "mounts": [[], ["a"]],
			"diskSetup": {"partitions": [{"device": "d", "layout": false}], "filesystems": [{"device": "d", "filesystem": "f", "label": "", "overwrite": false}]},
			"ntp": {"enabled": false, "servers": []}, "ignition": {"containerLinuxConfig": {"strict": false}}, "verbosity": 0, "preKubeadmCommands": ["a"]}`,
	} {
		older := &controlplanev1beta1.KubeadmControlPlane{}
		testenv.Must(t, json.Unmarshal([]byte(spec), &older.Spec.KubeadmConfigSpec))
		cluster, err := json.Marshal(older.Spec.KubeadmConfigSpec.ClusterConfiguration)
		testenv.Must(t, err)
		want := map[string]string{ConfigAnnotation: hashOf(t, older), controlplanev1beta1.KubeadmClusterConfigurationAnnotation: string(cluster)}
		if diff := cmp.Diff(want, recordedBy(t, specOf(t, older))); diff != "" {
			t.Errorf("%s (-want +got):\n%s", spec, diff)
		}
	}
}

// The same for clients of v1beta2: Machines that exist have these annotations.
func TestRecordsOfClientsOfV1beta2(t *testing.T) {
	for _, tc := range []struct {
		reason        string
		spec          bootstrapv1.KubeadmConfigSpec
		cluster, hash string
	}{
		{
			reason: "nothing", cluster: "null", hash: "44136fa355b3678a1146ad16f7e8649e94fb4fc21fe77e8310c060f61caaff8a",
		},
		{
			reason: "flags and timeouts", hash: "7ead36304eb5df2179aac5b0b9e50229dfc193ef0d0b884a0d8524baf5e92d18",
			spec: bootstrapv1.KubeadmConfigSpec{
				ClusterConfiguration: bootstrapv1.ClusterConfiguration{Scheduler: bootstrapv1.ControlPlaneComponent{
					ExtraArgs: []bootstrapv1.Arg{{Name: "v", Value: ptr.To("4")}, {Name: "a", Value: ptr.To("")}},
				}},
				PreKubeadmCommands: []string{"true"},
				InitConfiguration:  bootstrapv1.InitConfiguration{Timeouts: bootstrapv1.Timeouts{ControlPlaneComponentHealthCheckSeconds: ptr.To[int32](90)}},
				JoinConfiguration: bootstrapv1.JoinConfiguration{Timeouts: bootstrapv1.Timeouts{
					ControlPlaneComponentHealthCheckSeconds: ptr.To[int32](60), KubeletHealthCheckSeconds: ptr.To[int32](30),
				}},
			},
			cluster: `{"etcd":{},"networking":{},"apiServer":{"timeoutForControlPlane":"1m30s"},"controllerManager":{},"scheduler":{"extraArgs":{"a":"","v":"4"}},"dns":{}}`,
		},
	} {
		s, err := SpecOf(t.Context(), &controlplanev1.KubeadmControlPlane{Spec: controlplanev1.KubeadmControlPlaneSpec{KubeadmConfigSpec: tc.spec}})
		testenv.Must(t, err)
		want := map[string]string{ConfigAnnotation: tc.hash, controlplanev1beta1.KubeadmClusterConfigurationAnnotation: tc.cluster}
		if diff := cmp.Diff(want, recordedBy(t, s)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
		}
	}
}

func BenchmarkSpecOf(b *testing.B) {
	older := controlPlane()
	kcp := &controlplanev1.KubeadmControlPlane{}
	if err := conversion.Shared().Convert(b.Context(), older, kcp); err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		if _, err := SpecOf(b.Context(), kcp); err != nil {
			b.Fatal(err)
		}
	}
}
