package kubeadmtypes

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/yaml"

	bootstrapv1 "sigs.k8s.io/cluster-api/api/bootstrap/v1beta2"
)

func cluster() Cluster {
	return Cluster{Name: "test", Version: "v1.36.0", ServiceSubnet: "10.128.0.0/12", PodSubnet: "192.168.0.0/16", DNSDomain: "cluster.local"}
}

func clusterConfiguration() *bootstrapv1.ClusterConfiguration {
	return &bootstrapv1.ClusterConfiguration{
		ControlPlaneEndpoint: "10.0.0.1:6443",
		// Only v1beta4 has these, and environment variables.
		CertificateValidityPeriodDays: 90, CACertificateValidityPeriodDays: 365, EncryptionAlgorithm: bootstrapv1.EncryptionAlgorithmRSA3072,
		CertificatesDir: "/etc/kubernetes/pki", ImageRepository: "registry.example.com/k8s",
		FeatureGates: map[string]bool{"RootlessControlPlane": false},
		DNS:          bootstrapv1.DNS{ImageMeta: bootstrapv1.ImageMeta{ImageRepository: "registry.example.com/coredns", ImageTag: "v1.12.0"}},
		Etcd: bootstrapv1.Etcd{Local: bootstrapv1.LocalEtcd{
			ImageMeta: bootstrapv1.ImageMeta{ImageTag: "3.6.8-0"}, DataDir: "/var/lib/etcd",
			ExtraEnvs: environment(),
			ExtraArgs: arguments("quota-backend-bytes", "8589934592"), ServerCertSANs: []string{"etcd.example.com"}, PeerCertSANs: []string{"peer.example.com"},
		}},
		APIServer: bootstrapv1.APIServer{
			ControlPlaneComponent: bootstrapv1.ControlPlaneComponent{
				ExtraArgs:    arguments("audit-log-maxage", "30"),
				ExtraEnvs:    environment(),
				ExtraVolumes: []bootstrapv1.HostPathMount{{Name: "audit", HostPath: "/var/log/audit", MountPath: "/var/log/audit", ReadOnly: ptr.To(true), PathType: corev1.HostPathDirectoryOrCreate}},
			},
			CertSANs: []string{"api.example.com"},
		},
		ControllerManager: bootstrapv1.ControlPlaneComponent{ExtraArgs: arguments("profiling", "false"), ExtraEnvs: environment()},
		Scheduler:         bootstrapv1.ControlPlaneComponent{ExtraArgs: arguments("profiling", "false"), ExtraEnvs: environment()},
	}
}

func environment() *[]bootstrapv1.EnvVar {
	return &[]bootstrapv1.EnvVar{{EnvVar: corev1.EnvVar{Name: "A", Value: "b"}}}
}

func arguments(name, value string) []bootstrapv1.Arg {
	return []bootstrapv1.Arg{{Name: name, Value: &value}}
}

func registration() bootstrapv1.NodeRegistrationOptions {
	return bootstrapv1.NodeRegistrationOptions{
		Name: "node-1", CRISocket: "unix:///run/containerd/containerd.sock", KubeletExtraArgs: arguments("node-labels", "a=b"),
		Taints:                &[]corev1.Taint{{Key: "dedicated", Value: "x", Effect: corev1.TaintEffectNoSchedule}},
		IgnorePreflightErrors: []string{"NumCPU"}, ImagePullPolicy: "IfNotPresent", ImagePullSerial: ptr.To(false), // only in v1beta4
	}
}

func initConfiguration() *bootstrapv1.InitConfiguration {
	return &bootstrapv1.InitConfiguration{
		NodeRegistration: registration(),
		LocalAPIEndpoint: bootstrapv1.APIEndpoint{AdvertiseAddress: "10.0.0.2", BindPort: 6443},
		// Only v1beta4 has the other ones.
		Timeouts: bootstrapv1.Timeouts{
			ControlPlaneComponentHealthCheckSeconds: ptr.To[int32](300), KubeletHealthCheckSeconds: ptr.To[int32](1),
			KubernetesAPICallSeconds: ptr.To[int32](2), EtcdAPICallSeconds: ptr.To[int32](3), DiscoverySeconds: ptr.To[int32](4),
		},
		SkipPhases: []string{"addon/kube-proxy"}, Patches: bootstrapv1.Patches{Directory: "/etc/kubernetes/patches"},
		BootstrapTokens: []bootstrapv1.BootstrapToken{{
			Token:       bootstrapv1.BootstrapTokenString{ID: "abcdef", Secret: "0123456789abcdef"},
			Description: "mine", TTLSeconds: ptr.To[int32](3600), Usages: []string{"signing", "authentication"},
		}},
	}
}

func joinConfiguration() *bootstrapv1.JoinConfiguration {
	return &bootstrapv1.JoinConfiguration{
		NodeRegistration: registration(), CACertPath: "/etc/kubernetes/pki/ca.crt",
		Discovery: bootstrapv1.Discovery{
			BootstrapToken: bootstrapv1.BootstrapTokenDiscovery{Token: "abcdef.0123456789abcdef", APIServerEndpoint: "10.0.0.1:6443",
				CACertHashes: []string{"sha256:" + strings.Repeat("ab", 32)}},
			TLSBootstrapToken: "abcdef.0123456789abcdef",
		},
		Timeouts:   bootstrapv1.Timeouts{TLSBootstrapSeconds: ptr.To[int32](300)},
		SkipPhases: []string{"preflight"}, Patches: bootstrapv1.Patches{Directory: "/etc/kubernetes/patches"},
	}
}

func TestDocuments(t *testing.T) {
	external := clusterConfiguration()
	external.Etcd = bootstrapv1.Etcd{External: bootstrapv1.ExternalEtcd{Endpoints: []string{"https://etcd.example.com:2379"},
		CAFile: "/etc/kubernetes/pki/etcd/ca.crt", CertFile: "/etc/kubernetes/pki/apiserver-etcd-client.crt", KeyFile: "/etc/kubernetes/pki/apiserver-etcd-client.key"}}
	controlPlane := joinConfiguration()
	controlPlane.ControlPlane = &bootstrapv1.JoinControlPlane{LocalAPIEndpoint: bootstrapv1.APIEndpoint{AdvertiseAddress: "10.0.0.3", BindPort: 6443}}
	file := &bootstrapv1.JoinConfiguration{Discovery: bootstrapv1.Discovery{File: bootstrapv1.FileDiscovery{KubeConfigPath: "https://discovery.example.com/kubeconfig"},
		TLSBootstrapToken: "abcdef.0123456789abcdef"}}
	untainted := &bootstrapv1.InitConfiguration{NodeRegistration: bootstrapv1.NodeRegistrationOptions{Taints: &[]corev1.Taint{}}}
	least := &bootstrapv1.ClusterConfiguration{ControlPlaneEndpoint: "10.0.0.1:6443"}
	controlPlane.Timeouts.ControlPlaneComponentHealthCheckSeconds = ptr.To[int32](420)
	all, named := cluster(), Cluster{Name: "test", Version: "v1.36.0"}
	all.EncryptionAlgorithm = "ECDSA-P256"
	caKeys := clusterConfiguration()
	caKeys.EncryptionAlgorithm = "" // that of the CA counts
	tests := []struct {
		golden, reason string
		render         func() (string, error)
	}{
		{"init-full-v1beta4.yaml", "arguments are lists, timeouts are in one place", func() (string, error) { return Init(caKeys, initConfiguration(), all, "v1.36.0") }},
		{"init-full-v1beta3.yaml", "every field", func() (string, error) { return Init(clusterConfiguration(), initConfiguration(), all, "v1.30.0") }},
		{"init-full-v1beta2.yaml", "v1beta2 has no skipPhases, patches and imagePullPolicy", func() (string, error) { return Init(clusterConfiguration(), initConfiguration(), all, "v1.21.9") }},
		{"init-external-v1beta4.yaml", "external etcd", func() (string, error) { return Init(external, initConfiguration(), cluster(), "v1.36.0") }},
		{"init-untainted-v1beta4.yaml", "an empty list of taints is not the same as none", func() (string, error) { return Init(least, untainted, named, "v1.36.0") }},
		{"init-least-v1beta4.yaml", "only what a Cluster knows", func() (string, error) { return Init(least, &bootstrapv1.InitConfiguration{}, named, "v1.36.0") }},
		{"init-least-v1beta3.yaml", "only what a Cluster knows", func() (string, error) { return Init(least, &bootstrapv1.InitConfiguration{}, named, "v1.30.0") }},
		{"join-full-v1beta4.yaml", "every field of a worker", func() (string, error) { return Join(joinConfiguration(), "v1.36.0") }},
		{"join-full-v1beta3.yaml", "every field of a worker", func() (string, error) { return Join(joinConfiguration(), "v1.30.0") }},
		{"join-full-v1beta2.yaml", "v1beta2 has no skipPhases, patches and imagePullPolicy", func() (string, error) { return Join(joinConfiguration(), "v1.15.0") }},
		{"join-controlplane-v1beta4.yaml", "a control plane machine, with the timeout of the cluster", func() (string, error) { return Join(controlPlane, "v1.36.0") }},
		{"join-controlplane-v1beta3.yaml", "kubeadm reads the timeout from the cluster", func() (string, error) { return Join(controlPlane, "v1.30.0") }},
		{"join-file-v1beta4.yaml", "discovery by file", func() (string, error) { return Join(file, "v1.36.0") }},
	}
	for _, tt := range tests {
		t.Run(tt.golden, func(t *testing.T) {
			got, err := tt.render()
			if err != nil {
				t.Fatal(err)
			}
			path := filepath.Join("testdata", tt.golden)
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
				t.Errorf("%s; UPDATE_GOLDEN=1 rewrites %s, -want +got:\n%s", tt.reason, path, diff)
			}
		})
	}
}

func TestVersionFor(t *testing.T) {
	tests := []struct {
		kubernetes string
		want       *string
		reason     string
	}{
		{"v1.31.0", ptr.To(v1beta4), "the first with v1beta4"},
		{"v1.31.0-alpha.1", ptr.To(v1beta4), "pre-releases count as their release"},
		{"v1.36.1+build", ptr.To(v1beta4), "builds do not count"},
		{"v1.30.14", ptr.To(v1beta3), "the last with v1beta3"},
		{"v1.22.0", ptr.To(v1beta3), "the first with v1beta3"},
		{"v1.22.0-alpha.1", ptr.To(v1beta3), "pre-releases count as their release"},
		{"1.30.0", ptr.To(v1beta3), "the v may be missing"},
		{"v1.21.14", ptr.To(v1beta2), "the last with v1beta2"},
		{"v1.15.0-rc.0", ptr.To(v1beta2), "the first with v1beta2"},
		{"v1.14.10", nil, "too old"},
		{"", nil, "no version"},
		{"latest", nil, "not a version"},
	}
	for _, tt := range tests {
		got, err := versionFor(tt.kubernetes)
		if tt.want == nil {
			if err == nil || !strings.Contains(err.Error(), "\""+tt.kubernetes+"\"") {
				t.Errorf("%s: versionFor(%q) = %q, %v; want an error that quotes the version", tt.reason, tt.kubernetes, got, err)
			}
			continue
		}
		if err != nil || got != *tt.want {
			t.Errorf("%s: versionFor(%q) = %q, %v; want %q", tt.reason, tt.kubernetes, got, err, *tt.want)
		}
	}
}

func TestEncryptionAlgorithm(t *testing.T) {
	tests := []struct {
		reason     string
		field, ca  string
		kubernetes string
		want       any
	}{
		{reason: "kubeadm's default is not written, as in other versions of Cluster API", ca: "RSA-2048", want: nil},
		{reason: "what the user sets is written, though it is the default", field: "RSA-2048", ca: "RSA-2048", want: "RSA-2048"},
		{reason: "keys of machines are like those of the CA", ca: "ECDSA-P256", want: "ECDSA-P256"},
		{reason: "what the user sets goes before the CA", field: "RSA-3072", ca: "ECDSA-P256", want: "RSA-3072"},
		{reason: "even if it is the default", field: "RSA-2048", ca: "ECDSA-P256", want: "RSA-2048"},
		{reason: "and if the CA has the default", field: "ECDSA-P256", ca: "RSA-2048", want: "ECDSA-P256"},
		{reason: "the CA is a user's, with other keys", ca: "", want: nil},
		{reason: "kubeadm before v1.31 has no setting", field: "RSA-3072", ca: "RSA-3072", kubernetes: "v1.30.0", want: nil},
	}
	for _, tt := range tests {
		t.Run(tt.reason, func(t *testing.T) {
			config := &bootstrapv1.ClusterConfiguration{EncryptionAlgorithm: bootstrapv1.EncryptionAlgorithmType(tt.field)}
			if tt.kubernetes == "" {
				tt.kubernetes = "v1.36.0"
			}
			text, err := Init(config, &bootstrapv1.InitConfiguration{}, Cluster{Name: "c", EncryptionAlgorithm: tt.ca}, tt.kubernetes)
			if err != nil {
				t.Fatal(err)
			}
			document := map[string]any{}
			first, _, _ := strings.Cut(strings.TrimPrefix(text, "---\n"), "\n---\n")
			if err := yaml.Unmarshal([]byte(first), &document); err != nil {
				t.Fatal(err)
			}
			if got := document["encryptionAlgorithm"]; document["kind"] != "ClusterConfiguration" || got != tt.want {
				t.Errorf("encryptionAlgorithm is %v, want %v:\n%s", got, tt.want, first)
			}
		})
	}
}

func TestKnowsAlgorithm(t *testing.T) {
	for in, want := range map[[2]string]bool{
		{"ECDSA-P256", "v1.31.0"}: true,
		{"RSA-2048", "v1.31.0"}:   true,
		{"RSA-4096", "v1.36.3"}:   true,
		{"", "v1.36.3"}:           false,
		{"DSA", "v1.36.3"}:        false,
	} {
		if got := knowsAlgorithm(in[0], in[1]); got != want {
			t.Errorf("knowsAlgorithm(%q, %q) = %t, want %t", in[0], in[1], got, want)
		}
	}
}
