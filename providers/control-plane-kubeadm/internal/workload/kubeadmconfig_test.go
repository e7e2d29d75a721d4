package workload

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	bootstrapv1beta1 "sigs.k8s.io/cluster-api/api/bootstrap/v1beta1"
	"sigs.k8s.io/cluster-api/sdk/testenv"
)

const stored129 = `apiVersion: kubeadm.k8s.io/v1beta3
kind: ClusterConfiguration
apiServer:
  extraArgs: {old: "1"}
  timeoutForControlPlane: 4m0s
clusterName: c
controllerManager: {}
etcd:
  local:
    dataDir: /var/lib/etcd
    imageTag: 3.5.0-0
imageRepository: k8s.gcr.io
kubernetesVersion: v1.28.0
scheduler:
  extraArgs: {v: "4"}
`

func TestPrepareKubeadm(t *testing.T) {
	args := func(name, value string) bootstrapv1beta1.ControlPlaneComponent {
		return bootstrapv1beta1.ControlPlaneComponent{ExtraArgs: map[string]string{"z": "0", name: value}}
	}
	tests := map[string]struct {
		reason string
		stored string
		config *bootstrapv1beta1.ClusterConfiguration
		want   string
	}{
		"NoConfiguration": {
			reason: "Without a ClusterConfiguration only the version and a frozen registry change.",
			stored: stored129,
			want: `{apiVersion: kubeadm.k8s.io/v1beta3, kind: ClusterConfiguration, clusterName: c,
          apiServer: {extraArgs: {old: "1"}, timeoutForControlPlane: 4m0s}, controllerManager: {},
          etcd: {local: {dataDir: /var/lib/etcd, imageTag: 3.5.0-0}}, imageRepository: registry.k8s.io,
          kubernetesVersion: v1.29.0, scheduler: {extraArgs: {v: "4"}}}`,
		},
		"Everything": {
			reason: "Mutable fields are replaced, and defaults of kubeadm for etcd are kept.",
			stored: stored129,
			config: &bootstrapv1beta1.ClusterConfiguration{
				ImageRepository: "example.com/k8s", FeatureGates: map[string]bool{"X": true},
				APIServer:         bootstrapv1beta1.APIServer{ControlPlaneComponent: args("a", "b"), CertSANs: []string{"x"}},
				ControllerManager: args("c", "d"),
				Etcd: bootstrapv1beta1.Etcd{Local: &bootstrapv1beta1.LocalEtcd{
					ImageMeta: bootstrapv1beta1.ImageMeta{ImageRepository: "example.com/etcd"}, ExtraArgs: map[string]string{"e": "f"},
				}},
				Networking: bootstrapv1beta1.Networking{PodSubnet: "10.0.0.0/8"}, ClusterName: "other",
			},
			want: `{apiVersion: kubeadm.k8s.io/v1beta3, kind: ClusterConfiguration, clusterName: c,
          apiServer: {extraArgs: {a: b, z: "0"}, certSANs: [x]}, controllerManager: {extraArgs: {c: d, z: "0"}},
          etcd: {local: {dataDir: /var/lib/etcd, imageRepository: example.com/etcd, extraArgs: {e: f}}},
          featureGates: {X: true}, imageRepository: example.com/k8s, kubernetesVersion: v1.29.0}`,
		},
		"NewFields": {
			reason: "Joining Machines read environment variables and the validity of certificates.",
			stored: "{apiVersion: kubeadm.k8s.io/v1beta4, etcd: {local: {dataDir: d}}}",
			config: newFields(),
			want: `{apiVersion: kubeadm.k8s.io/v1beta4, kubernetesVersion: v1.29.0, certificateValidityPeriod: 2160h0m0s,
          scheduler: {extraArgs: [{name: a, value: b}], extraEnvs: [{name: A, value: b}]},
          etcd: {local: {dataDir: d, extraEnvs: [{name: A, value: b}]}}}`,
		},
		"NewFieldsInV1Beta3": {
			reason: "v1beta3 does not have them: kubeadm would reject them.",
			stored: "{apiVersion: kubeadm.k8s.io/v1beta3, etcd: {local: {dataDir: d}}}",
			config: newFields(),
			want: `{apiVersion: kubeadm.k8s.io/v1beta3, kubernetesVersion: v1.29.0, scheduler: {extraArgs: {a: b}},
          etcd: {local: {dataDir: d}}}`,
		},
		"NewFieldsRemoved": {
			reason: "Environment variables that are no longer in the spec are removed, and defaults of kubeadm kept.",
			stored: `{apiVersion: kubeadm.k8s.io/v1beta4, certificateValidityPeriod: 8760h0m0s,
          scheduler: {extraEnvs: [{name: A, value: b}]}, etcd: {local: {dataDir: d, extraEnvs: [{name: A, value: b}]}}}`,
			config: &bootstrapv1beta1.ClusterConfiguration{},
			want: `{apiVersion: kubeadm.k8s.io/v1beta4, kubernetesVersion: v1.29.0, certificateValidityPeriod: 8760h0m0s,
          etcd: {local: {dataDir: d}}}`,
		},
		"External": {
			reason: "The endpoints of an external etcd change.",
			stored: "{apiVersion: kubeadm.k8s.io/v1beta3, etcd: {external: {endpoints: [a], caFile: x, certFile: w, keyFile: z}}}",
			config: &bootstrapv1beta1.ClusterConfiguration{Etcd: bootstrapv1beta1.Etcd{External: &bootstrapv1beta1.ExternalEtcd{
				Endpoints: []string{"b", "c"}, CAFile: "x", CertFile: "w", KeyFile: "z",
			}}},
			want: `{apiVersion: kubeadm.k8s.io/v1beta3, kubernetesVersion: v1.29.0,
          etcd: {external: {endpoints: [b, c], caFile: x, certFile: w, keyFile: z}}}`,
		},
		"NeverBoth": {
			reason: "A local etcd does not become an external one.",
			stored: "{apiVersion: kubeadm.k8s.io/v1beta3, etcd: {local: {dataDir: d}}}",
			config: &bootstrapv1beta1.ClusterConfiguration{Etcd: bootstrapv1beta1.Etcd{External: &bootstrapv1beta1.ExternalEtcd{Endpoints: []string{"b"}}}},
			want:   `{apiVersion: kubeadm.k8s.io/v1beta3, kubernetesVersion: v1.29.0, etcd: {local: {dataDir: d}}}`,
		},
		"NewFormat": {
			reason: "From v1beta4 on, arguments are a list.",
			stored: "{apiVersion: kubeadm.k8s.io/v1beta4, etcd: {local: {dataDir: d}}}",
			config: &bootstrapv1beta1.ClusterConfiguration{
				Scheduler: args("a", "b"),
				Etcd:      bootstrapv1beta1.Etcd{Local: &bootstrapv1beta1.LocalEtcd{ExtraArgs: map[string]string{"e": "f"}}},
			},
			want: `{apiVersion: kubeadm.k8s.io/v1beta4, kubernetesVersion: v1.29.0,
          scheduler: {extraArgs: [{name: a, value: b}, {name: z, value: "0"}]},
          etcd: {local: {dataDir: d, extraArgs: [{name: e, value: f}]}}}`,
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			got := prepared(t, tc.stored, tc.config)
			if diff := cmp.Diff(document(t, tc.want), document(t, got)); diff != "" {
				t.Errorf("%s\n-want +got:\n%s", tc.reason, diff)
			}
		})
	}
}

// kubeadm join reads these files. A test in the module standalone checks that with kubeadm itself.
func TestPreparedForKubeadm(t *testing.T) {
	config := &bootstrapv1beta1.ClusterConfiguration{
		ImageRepository: "registry.example.com/k8s", FeatureGates: map[string]bool{"RootlessControlPlane": false},
		Etcd: bootstrapv1beta1.Etcd{Local: &bootstrapv1beta1.LocalEtcd{
			ImageMeta: bootstrapv1beta1.ImageMeta{ImageTag: "3.6.8-0"}, DataDir: "/var/lib/etcd", ServerCertSANs: []string{"a"}, PeerCertSANs: []string{"b"},
			ExtraArgs: map[string]string{"quota-backend-bytes": "8589934592"},
		}},
		APIServer: bootstrapv1beta1.APIServer{
			ControlPlaneComponent: bootstrapv1beta1.ControlPlaneComponent{
				ExtraArgs:    map[string]string{"audit-log-maxage": "30"},
				ExtraVolumes: []bootstrapv1beta1.HostPathMount{{Name: "audit", HostPath: "/var/log", MountPath: "/var/log", ReadOnly: true, PathType: corev1.HostPathDirectory}},
			},
			CertSANs: []string{"api.example.com"}, TimeoutForControlPlane: &metav1.Duration{Duration: 5 * time.Minute},
		},
		Scheduler: bootstrapv1beta1.ControlPlaneComponent{ExtraArgs: map[string]string{"profiling": "false"}},
	}
	const uploaded = "kind: ClusterConfiguration\nclusterName: c\ncontrolPlaneEndpoint: 10.0.0.1:6443\ncertificatesDir: /etc/kubernetes/pki\n" +
		"imageRepository: registry.k8s.io\nkubernetesVersion: v1.36.0\nnetworking: {dnsDomain: cluster.local}\netcd: {local: {dataDir: /var/lib/etcd}}\n" +
		"dns: {}\nproxy: {}\ncontrollerManager: {}\n"
	for version, stored := range map[string]string{
		"v1beta3": strings.ReplaceAll(uploaded, "proxy: {}\n", "apiServer: {timeoutForControlPlane: 4m0s}\n"),
		"v1beta4": uploaded + "encryptionAlgorithm: RSA-2048\n",
	} {
		path := filepath.Join("testdata", "prepared-"+version+".yaml")
		c, _ := newCluster(t, configMap("kubeadm-config", map[string]string{"ClusterConfiguration": "apiVersion: kubeadm.k8s.io/" + version + "\n" + stored}))
		if err := c.prepareKubeadm(t.Context(), map[string]string{"v1beta3": "v1.30.14", "v1beta4": "v1.36.1"}[version], config); err != nil {
			t.Fatal(err)
		}
		got := data(t, c, "kubeadm-config")["ClusterConfiguration"]
		if os.Getenv("UPDATE_GOLDEN") != "" {
			if err := os.WriteFile(path, []byte(got), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		want, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(string(want), got); diff != "" {
			t.Errorf("UPDATE_GOLDEN=1 rewrites %s, -want +got:\n%s", path, diff)
		}
	}
}

// prepared returns the changed ClusterConfiguration, after at most one write.
func prepared(t *testing.T, stored string, config *bootstrapv1beta1.ClusterConfiguration) string {
	t.Helper()
	c, requests := newCluster(t, configMap("kubeadm-config", map[string]string{"ClusterConfiguration": stored, "other": "stays"}))
	for i, want := range [][]string{
		{"get ConfigMap kubeadm-config", "patch ConfigMap kubeadm-config"},
		{"get ConfigMap kubeadm-config"},
	} {
		if err := c.prepareKubeadm(t.Context(), "v1.29.0", config); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, requests.requests()); diff != "" {
			t.Errorf("requests of call %d: -want +got:\n%s", i+1, diff)
		}
	}
	got := data(t, c, "kubeadm-config")
	if got["other"] != "stays" {
		t.Error("another key of the ConfigMap has changed")
	}
	return got["ClusterConfiguration"]
}

func document(t *testing.T, text string) map[string]any {
	t.Helper()
	var doc map[string]any
	if err := yaml.Unmarshal([]byte(text), &doc); err != nil {
		t.Fatalf("%v in %s", err, text)
	}
	return doc
}

func TestPrepareKubeadmOfSimulatedMachines(t *testing.T) {
	c, requests := newCluster(t, configMap("kubeadm-config", map[string]string{"ClusterConfiguration": ""}))
	if err := c.prepareKubeadm(t.Context(), "v1.29.0", &bootstrapv1beta1.ClusterConfiguration{}); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"get ConfigMap kubeadm-config"}, requests.requests()); diff != "" {
		t.Errorf("requests: -want +got:\n%s", diff)
	}
}

func TestPrepareKubeadmErrors(t *testing.T) {
	tests := map[string]struct {
		reason  string
		objects []client.Object
		want    string
	}{
		"Missing": {
			reason: "The error says what to do.",
			want:   "ConfigMap kube-system/kubeadm-config does not exist: upload it with kubeadm init phase upload-config",
		},
		"Empty": {
			reason:  "An invalid ConfigMap is not overwritten.",
			objects: []client.Object{configMap("kubeadm-config", nil)},
			want:    `editing key "ClusterConfiguration" of ConfigMap kube-system/kubeadm-config: it is empty`,
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			c, _ := newCluster(t, tc.objects...)
			if err := c.prepareKubeadm(t.Context(), "v1.29.0", nil); err == nil || err.Error() != tc.want {
				t.Errorf("%s\nprepareKubeadm(): %v, want %q", tc.reason, err, tc.want)
			}
		})
	}
}

// Documents of a workload cluster must not grow: aliases are expanded in JSON.
func TestDocumentsDoNotExpand(t *testing.T) {
	bomb := "a: &a " + strings.Repeat("x", 100_000) + "\nb: [" + strings.Repeat("*a, ", 2000) + "]\n"
	if _, err := parse(bomb); err == nil || !strings.Contains(err.Error(), "aliases") {
		t.Errorf("%d bytes that expand to 200 MB: %v", len(bomb), err)
	}
	if doc, err := parse("a: &a x\nb: *a\n"); err != nil || doc["b"] != "x" {
		t.Errorf("a small alias: %v, %v", doc, err)
	}
}

func TestConvert(t *testing.T) {
	const old = `{apiVersion: kubeadm.k8s.io/v1beta2, useHyperKubeImage: true, dns: {type: CoreDNS, imageTag: v1},
          apiServer: {extraArgs: {b: "2", a: "1"}, timeoutForControlPlane: 4m0s, certSANs: [x]}, controllerManager: {extraArgs: {c: d}}, scheduler: {},
          etcd: {local: {dataDir: d, extraArgs: {e: f}}}}`
	newer := strings.NewReplacer("v1beta2", "v1beta3", "useHyperKubeImage: true, ", "", "type: CoreDNS, ", "").Replace(old)
	newest := strings.NewReplacer("v1beta3", "v1beta4", `{b: "2", a: "1"}`, `[{name: a, value: "1"}, {name: b, value: "2"}]`, "timeoutForControlPlane: 4m0s, ", "",
		"{c: d}", "[{name: c, value: d}]", "{e: f}", "[{name: e, value: f}]").Replace(newer)
	external := `{apiVersion: kubeadm.k8s.io/v1beta3, etcd: {external: {endpoints: [a]}}}`
	tests := []struct{ reason, version, stored, want string }{
		{"workers of v1.21 do not read v1beta3", "v1.23.17", old, old},
		{"all workers read v1beta3", "v1.24.0", old, newer},
		{"workers of v1.30 do not read v1beta4", "v1.33.9", newer, newer},
		{"all workers read v1beta4", "v1.34.0", newer, newest},
		{"over both", "v1.36.3", old, newest},
		{"it is never converted back", "v1.30.0", newest, newest},
		{"a version that is not yet known", "v1.36.3", strings.Replace(newest, "v1beta4", "v1", 1), strings.Replace(newest, "v1beta4", "v1", 1)},
		{"external etcd", "v1.36.3", external, strings.Replace(external, "v1beta3", "v1beta4", 1)},
		{"an invalid version", "x", newer, newer},
		{"fields of other types", "v1.36.3", "{apiVersion: kubeadm.k8s.io/v1beta3, apiServer: 1, etcd: [], scheduler: {extraArgs: 1}}", "{apiVersion: kubeadm.k8s.io/v1beta4, apiServer: 1, etcd: [], scheduler: {extraArgs: 1}}"},
	}
	for _, tt := range tests {
		t.Run(tt.reason, func(t *testing.T) {
			got, err := parse(tt.stored)
			testenv.Must(t, err)
			convert(got, tt.version)
			want, err := parse(tt.want)
			testenv.Must(t, err)
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

// newFields is a configuration with fields that only v1beta4 has.
func newFields() *bootstrapv1beta1.ClusterConfiguration {
	environment := []bootstrapv1beta1.EnvVar{{EnvVar: corev1.EnvVar{Name: "A", Value: "b"}}}
	return &bootstrapv1beta1.ClusterConfiguration{
		CertificateValidityPeriodDays: 90, EncryptionAlgorithm: bootstrapv1beta1.EncryptionAlgorithmRSA3072,
		Scheduler: bootstrapv1beta1.ControlPlaneComponent{ExtraArgs: map[string]string{"a": "b"}, ExtraEnvs: environment},
		Etcd:      bootstrapv1beta1.Etcd{Local: &bootstrapv1beta1.LocalEtcd{ExtraEnvs: environment}},
	}
}

// Machines that join read from the cluster whether their kubelets connect to the API server beside them.
func TestLocalMode(t *testing.T) {
	const gate = "ControlPlaneKubeletLocalMode"
	chosen := &bootstrapv1beta1.ClusterConfiguration{FeatureGates: map[string]bool{gate: false}}
	for _, tc := range []struct {
		reason, version, stored string
		config                  *bootstrapv1beta1.ClusterConfiguration
		want                    string
	}{
		{"before the feature gate", "v1.30.0", `{"a":"b"}`, nil, `{"a":"b"}`},
		{"an upgrade to the first version with it", "v1.31.0", `{}`, nil, `{"featureGates":{"ControlPlaneKubeletLocalMode":true}}`},
		{"beside other feature gates", "v1.35.0", `{"featureGates":{"X":true}}`, nil, `{"featureGates":{"ControlPlaneKubeletLocalMode":true,"X":true}}`},
		{"the spec has it", "v1.35.0", `{"featureGates":{"ControlPlaneKubeletLocalMode":false}}`, chosen, `{"featureGates":{"ControlPlaneKubeletLocalMode":false}}`},
		{"kubeadm no longer knows it", "v1.36.0", `{"featureGates":{"ControlPlaneKubeletLocalMode":true}}`, nil, `{}`},
		{"others stay", "v1.36.0", `{"featureGates":{"ControlPlaneKubeletLocalMode":true,"X":true}}`, nil, `{"featureGates":{"X":true}}`},
		{"without any", "v1.36.0", `{}`, nil, `{}`},
	} {
		doc := map[string]any{}
		testenv.Must(t, json.Unmarshal([]byte(tc.stored), &doc))
		for range 2 {
			localMode(doc, tc.version, tc.config)
		}
		got, err := json.Marshal(doc)
		testenv.Must(t, err)
		if string(got) != tc.want {
			t.Errorf("%s: %s, want %s", tc.reason, got, tc.want)
		}
	}
}
