package webhook

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/utils/ptr"

	bootstrapv1beta1 "sigs.k8s.io/cluster-api/api/bootstrap/v1beta1"
	controlplanev1beta1 "sigs.k8s.io/cluster-api/api/controlplane/v1beta1"
	controlplanev1 "sigs.k8s.io/cluster-api/api/controlplane/v1beta2"
	"sigs.k8s.io/cluster-api/sdk/conversion"
	"sigs.k8s.io/cluster-api/sdk/testenv"
)

// validOlder returns a valid control plane as clients of v1beta1 see it.
func validOlder(t *testing.T, edits ...func(*controlplanev1beta1.KubeadmControlPlaneSpec)) *controlplanev1beta1.KubeadmControlPlane {
	t.Helper()
	older := &controlplanev1beta1.KubeadmControlPlane{}
	testenv.Must(t, conversion.Shared().Convert(t.Context(), valid(t), older))
	s := &older.Spec.KubeadmConfigSpec
	s.ClusterConfiguration = &bootstrapv1beta1.ClusterConfiguration{}
	s.InitConfiguration, s.JoinConfiguration = &bootstrapv1beta1.InitConfiguration{}, &bootstrapv1beta1.JoinConfiguration{}
	for _, e := range edits {
		if e != nil {
			e(&older.Spec)
		}
	}
	kcp := received(t, older)
	testenv.Must(t, controlPlanes{}.Default(t.Context(), kcp))
	testenv.Must(t, conversion.Shared().Convert(t.Context(), kcp, older))
	return older
}

// received returns what the webhook gets for a request of v1beta1.
func received(t *testing.T, older *controlplanev1beta1.KubeadmControlPlane) *controlplanev1.KubeadmControlPlane {
	t.Helper()
	kcp := &controlplanev1.KubeadmControlPlane{}
	testenv.Must(t, conversion.Shared().Convert(t.Context(), older, kcp))
	return kcp
}

// with returns a valid control plane with the JSON value at a path of v1beta1. null removes the field.
func with(t *testing.T, path, value string) *controlplanev1.KubeadmControlPlane {
	t.Helper()
	raw, err := json.Marshal(validOlder(t, full))
	if err != nil {
		t.Fatal(err)
	}
	object := map[string]any{}
	var wanted any
	for text, into := range map[string]any{string(raw): &object, value: &wanted} {
		if err := json.Unmarshal([]byte(text), into); err != nil {
			t.Fatalf("%s: %v", text, err)
		}
	}
	fields := strings.Split(path, ".")
	if wanted == nil {
		unstructured.RemoveNestedField(object, fields...)
	} else if err := unstructured.SetNestedField(object, wanted, fields...); err != nil {
		t.Fatal(err)
	}
	if raw, err = json.Marshal(object); err != nil {
		t.Fatal(err)
	}
	older := &controlplanev1beta1.KubeadmControlPlane{}
	if err := json.Unmarshal(raw, older); err != nil {
		t.Fatalf("cannot set %s to %s: %v", path, value, err)
	}
	return received(t, older)
}

// full sets every field that can be removed.
func full(s *controlplanev1beta1.KubeadmControlPlaneSpec) {
	err := json.Unmarshal([]byte(`{
		"rolloutBefore": {"certificatesExpiryDays": 21}, "remediationStrategy": {"maxRetry": 3}, "rolloutAfter": "2026-01-01T00:00:00Z",
		"machineTemplate": {"metadata": {"labels": {"a": "b"}, "annotations": {"a": "b"}}, "nodeDrainTimeout": "1m",
			"nodeVolumeDetachTimeout": "1m", "nodeDeletionTimeout": "1m"},
		"kubeadmConfigSpec": {
			"clusterConfiguration": {"clusterName": "c", "etcd": {"local": {"dataDir": "/d", "imageTag": "3.5.1", "extraArgs": {"a.b": "c"}}},
				"dns": {"imageRepository": "r"}, "featureGates": {"A": true}, "apiServer": {"extraArgs": {"v": "1"}}},
			"initConfiguration": {"patches": {"directory": "/p"}, "localAPIEndpoint": {"bindPort": 6443}},
			"joinConfiguration": {"patches": {"directory": "/p"}, "controlPlane": {"localAPIEndpoint": {"bindPort": 6443}}},
			"files": [{"path": "/x"}], "ntp": {"enabled": true}, "diskSetup": {"partitions": []}, "users": [{"name": "u"}], "mounts": [["a"]],
			"preKubeadmCommands": ["a"], "postKubeadmCommands": ["a"], "verbosity": 4, "useExperimentalRetryJoin": true
		}}`), s)
	if err != nil {
		panic(err)
	}
}

func TestMutableFields(t *testing.T) {
	const config, cluster = "spec.kubeadmConfigSpec.", "spec.kubeadmConfigSpec.clusterConfiguration."
	for path, values := range map[string][]string{
		"metadata.labels": {`{"a": "b"}`}, "metadata.annotations": {`{"a": "b"}`},
		"spec.replicas": {`5`}, "spec.version": {`"v1.30.1"`}, "spec.rolloutAfter": {`"2027-01-01T00:00:00Z"`, `null`},
		"spec.rolloutBefore": {`null`}, "spec.rolloutBefore.certificatesExpiryDays": {`7`},
		"spec.remediationStrategy": {`null`}, "spec.remediationStrategy.retryPeriod": {`"1m"`}, "spec.rolloutStrategy.rollingUpdate.maxSurge": {`0`},
		"spec.machineTemplate.metadata.labels": {`{"a": "c"}`, `null`}, "spec.machineTemplate.metadata.annotations": {`{"c": "d"}`, `null`},
		"spec.machineTemplate.infrastructureRef.name": {`"u"`}, "spec.machineTemplate.infrastructureRef.kind": {`"OtherTemplate"`},
		"spec.machineTemplate.infrastructureRef.apiVersion": {`"infra.x/v2"`},
		"spec.machineTemplate.nodeDrainTimeout":             {`"2m"`, `null`}, "spec.machineTemplate.nodeVolumeDetachTimeout": {`"2m"`, `null`},
		"spec.machineTemplate.nodeDeletionTimeout": {`"2m"`, `null`},
		"spec.machineTemplate.readinessGates":      {`[{"conditionType": "A"}]`}, "spec.machineTemplate.taints": {`[{"key": "a", "effect": "NoSchedule", "propagation": "Always"}]`},
		"spec.machineNamingStrategy": {`{"template": "{{ .random }}"}`},
		config + "bootCommands":      {`["a"]`}, cluster + "etcd.local.extraEnvs": {`[{"name": "a"}]`},
		cluster + "certificateValidityPeriodDays": {`90`}, cluster + "encryptionAlgorithm": {`"RSA-3072"`},
		cluster + "apiServer.extraEnvs":        {`[{"name": "a"}]`},
		cluster + "etcd.local.imageRepository": {`"r"`}, cluster + "etcd.local.imageTag": {`"3.5.2"`, `null`},
		cluster + "etcd.local.extraArgs": {`{"a.b": "d", "e": "f"}`, `null`}, cluster + "etcd.local.dataDir": {`"/e"`},
		cluster + "etcd.local.serverCertSANs": {`["a"]`}, cluster + "etcd.local.peerCertSANs": {`["a"]`},
		cluster + "dns.imageRepository": {`"s"`, `null`}, cluster + "dns.imageTag": {`"v1.11.1"`}, cluster + "imageRepository": {`"r"`},
		cluster + "featureGates": {`{"A": false, "B": true}`, `null`}, cluster + "apiServer": {`{"certSANs": ["a"], "timeoutForControlPlane": "5m0s"}`},
		cluster + "apiServer.extraVolumes": {`[{"name": "a", "hostPath": "/a", "mountPath": "/a"}]`},
		cluster + "controllerManager":      {`{"extraArgs": {"a": "b"}}`}, cluster + "scheduler": {`{"extraArgs": {"a": "b"}}`},
		config + "initConfiguration.nodeRegistration": {`{"name": "n", "taints": []}`}, config + "initConfiguration.patches": {`null`},
		config + "initConfiguration.patches.directory": {`"/q"`}, config + "initConfiguration.skipPhases": {`["addon/kube-proxy"]`},
		config + "initConfiguration.bootstrapTokens":  {`[{"token": "abcdef.0123456789abcdef"}]`},
		config + "initConfiguration.localAPIEndpoint": {`{"advertiseAddress": "10.0.0.1"}`},
		config + "joinConfiguration.nodeRegistration": {`{"name": "n"}`}, config + "joinConfiguration.patches.directory": {`"/q"`},
		config + "joinConfiguration.skipPhases": {`["a"]`}, config + "joinConfiguration.caCertPath": {`"/ca"`},
		config + "joinConfiguration.controlPlane": {`null`}, config + "joinConfiguration.controlPlane.localAPIEndpoint.bindPort": {`6444`},
		config + "joinConfiguration.discovery": {`{"file": {"kubeConfigPath": "/k"}}`},
		config + "preKubeadmCommands":          {`["b"]`, `null`}, config + "postKubeadmCommands": {`["b"]`, `null`},
		config + "files": {`[{"path": "/y"}]`, `null`}, config + "users": {`[{"name": "v"}]`, `null`}, config + "mounts": {`[["b"]]`, `null`},
		config + "ntp": {`{"servers": ["a"]}`, `null`}, config + "diskSetup": {`{"filesystems": [{"device": "a", "filesystem": "b", "label": "c"}]}`, `null`},
		config + "verbosity": {`8`, `null`}, config + "useExperimentalRetryJoin": {`false`},
	} {
		for _, value := range values {
			t.Run(path+" "+value, func(t *testing.T) {
				if _, err := (controlPlanes{ignition: true, taints: true}).ValidateUpdate(t.Context(), received(t, validOlder(t, full)), with(t, path, value)); err != nil {
					t.Error(err)
				}
			})
		}
	}
}

func TestImmutableFields(t *testing.T) {
	const config, cluster = "spec.kubeadmConfigSpec.", "spec.kubeadmConfigSpec.clusterConfiguration."
	tests := []struct {
		reason, path, value string
		want                []string
	}{
		{"the name is in the configuration of all Machines", cluster + "clusterName", `"d"`, nil},
		{"removing it is a change, too", cluster + "clusterName", `null`, nil},
		{"the endpoint is in every kubeconfig", cluster + "controlPlaneEndpoint", `"a:1"`, nil},
		{"the version is spec.version", cluster + "kubernetesVersion", `"v1.30.0"`, nil},
		{"the folder of certificates is fixed", cluster + "certificatesDir", `"/c"`, nil},
		{"networking is fixed", cluster + "networking.dnsDomain", `"d"`, nil},
		{"Services have addresses", cluster + "networking.serviceSubnet", `"10.0.0.0/8"`, nil},
		{"a whole configuration", config + "clusterConfiguration", `null`, []string{cluster[:len(cluster)-1]}},
		{"etcd cannot become external", cluster + "etcd.local", `null`, []string{cluster + "etcd.local"}},
		{"the whole initConfiguration", config + "initConfiguration", `null`, nil},
		{"the whole joinConfiguration", config + "joinConfiguration", `null`, nil},
		{"the kind of kubeadm", cluster + "kind", `"ClusterConfiguration"`, nil},
		{"templates must be in the namespace of the control plane", "spec.machineTemplate.infrastructureRef.namespace", `"other"`,
			[]string{"spec.machineTemplate.spec.infrastructureRef.namespace"}},
		{"a reference with a UID", "spec.machineTemplate.infrastructureRef.uid", `"u"`, []string{"spec.machineTemplate.spec.infrastructureRef.uid"}},
	}
	for _, tt := range tests {
		t.Run(tt.path+" "+tt.value, func(t *testing.T) {
			want := tt.want
			if want == nil {
				want = []string{tt.path}
			}
			_, err := controlPlanes{}.ValidateUpdate(t.Context(), received(t, validOlder(t, full)), with(t, tt.path, tt.value))
			if diff := cmp.Diff(want, fields(t, err)); diff != "" {
				t.Errorf("%s: fields (-want +got):\n%s\n%v", tt.reason, diff, err)
			}
		})
	}
}

// Rules that are newer than an object must not prevent its deletion or status updates.
func TestStatusAndMetadataAreMutable(t *testing.T) {
	before := received(t, validOlder(t, full))
	after := before.DeepCopy()
	after.Status.Replicas, after.Status.Initialization.ControlPlaneInitialized = ptr.To[int32](3), ptr.To(true)
	after.Finalizers, after.DeletionTimestamp = nil, &metav1.Time{}
	after.OwnerReferences = []metav1.OwnerReference{{Name: "c"}}
	if _, err := (controlPlanes{}).ValidateUpdate(t.Context(), before, after); err != nil {
		t.Error(err)
	}
}

func TestVersions(t *testing.T) {
	tests := []struct {
		reason, from, to string
		want             bool
	}{
		{"a patch", "v1.30.0", "v1.30.9", true},
		{"a patch back", "v1.30.9", "v1.30.0", true},
		{"the next minor version", "v1.30.9", "v1.31.0", true},
		{"a minor version back", "v1.31.0", "v1.30.0", true},
		{"two minor versions", "v1.30.0", "v1.32.0", false},
		{"the next major version", "v1.30.0", "v2.0.0", false},
		{"a pre-release", "v1.30.0", "v1.31.0-alpha.1", true},
		{"a build", "v1.30.0", "v1.30.0+vendor.1", true},
		{"not a version", "v1.30.0", "latest", false},
		{"an incomplete version", "v1.30.0", "v1.31", false},
		{"leading zeros", "v1.30.0", "v1.030.1", false},
		{"the version with a defect", "v1.18.0", "v1.19.0", false},
		{"the next version", "v1.18.0", "v1.19.1", true},
		{"the last version before the frozen registry mattered", "v1.20.0", "v1.21.14", true},
		{"the frozen registry", "v1.21.0", "v1.22.16", false}, {"the new registry", "v1.21.0", "v1.22.17", true},
		{"the frozen registry", "v1.22.17", "v1.23.14", false}, {"the new registry", "v1.22.17", "v1.23.15", true},
		{"the frozen registry", "v1.23.15", "v1.24.8", false}, {"the new registry", "v1.23.15", "v1.24.9", true},
		{"always the new registry", "v1.24.9", "v1.25.0", true}, {"the frozen registry before the first alpha", "v1.24.9", "v1.25.0-alpha.0", false},
	}
	for _, tt := range tests {
		t.Run(tt.from+" to "+tt.to, func(t *testing.T) {
			at := func(version string) *controlplanev1.KubeadmControlPlane {
				return valid(t, func(s *controlplanev1.KubeadmControlPlaneSpec) { s.Version = version })
			}
			_, err := controlPlanes{}.ValidateUpdate(t.Context(), at(tt.from), at(tt.to))
			if got := fields(t, err); (err == nil) != tt.want || err != nil && !slices.Equal(got, []string{"spec.version"}) {
				t.Errorf("%s: %v, want allowed %t", tt.reason, err, tt.want)
			}
		})
	}
}
