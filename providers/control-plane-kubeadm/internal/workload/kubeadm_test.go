package workload

import (
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	bootstrapv1beta1 "sigs.k8s.io/cluster-api/api/bootstrap/v1beta1"
	"sigs.k8s.io/cluster-api/providers/internal/kubeadm/kubeadmtest"
	"sigs.k8s.io/cluster-api/sdk/testenv"
)

// kubeadm of each version reads its configuration in the cluster without a warning after a rollout has changed it.
func TestKubeadmReadsChangedConfigurations(t *testing.T) {
	component := bootstrapv1beta1.ControlPlaneComponent{
		ExtraArgs:    map[string]string{"profiling": "false", "v": "3"},
		ExtraVolumes: []bootstrapv1beta1.HostPathMount{{Name: "log", HostPath: "/var/log/x", MountPath: "/var/log/x", ReadOnly: true, PathType: corev1.HostPathDirectoryOrCreate}},
	}
	local := &bootstrapv1beta1.ClusterConfiguration{
		ImageRepository: "registry.example.com/k8s", FeatureGates: map[string]bool{},
		APIServer: bootstrapv1beta1.APIServer{ControlPlaneComponent: component, CertSANs: []string{"api.example.com"}, TimeoutForControlPlane: &metav1.Duration{Duration: 21 * time.Minute}},
		Etcd: bootstrapv1beta1.Etcd{Local: &bootstrapv1beta1.LocalEtcd{ImageMeta: bootstrapv1beta1.ImageMeta{ImageRepository: "registry.example.com/etcd", ImageTag: "3.6.8-0"},
			ExtraArgs: map[string]string{"quota-backend-bytes": "8589934592"}, ServerCertSANs: []string{"etcd.example.com"}, PeerCertSANs: []string{"peer.example.com"}}},
		ControllerManager: component, Scheduler: component,
	}
	environment := []bootstrapv1beta1.EnvVar{{EnvVar: corev1.EnvVar{Name: "GOMAXPROCS", Value: "2"}}}
	local.APIServer.ExtraEnvs, local.Scheduler.ExtraEnvs, local.Etcd.Local.ExtraEnvs = environment, environment, environment
	local.CertificateValidityPeriodDays = 90
	for _, program := range kubeadmtest.Programs(t) {
		m := program.NewMachine(t)
		uploaded := clusterConfigurationOf(t, m.Run(t, "config", "print", "init-defaults"))
		for name, spec := range map[string]*bootstrapv1beta1.ClusterConfiguration{"every field": local, "defaults": {}} {
			t.Run(program.Version+" "+name, func(t *testing.T) {
				text, changed, err := edit(uploaded, func(doc map[string]any) error {
					doc["kubernetesVersion"] = program.Version
					return adopt(doc, spec)
				})
				testenv.Must(t, err)
				if !changed || name == "every field" && !strings.Contains(text, "8589934592") {
					t.Fatalf("nothing was changed:\n%s", text)
				}
				newer := []int{strings.Count(text, "GOMAXPROCS"), strings.Count(text, "certificateValidityPeriod: 2160h0m0s")}
				want := []int{0, 0}
				if name == "every field" && program.Minor() >= 31 {
					want = []int{3, 1}
				}
				if !slices.Equal(want, newer) {
					t.Errorf("environment variables and validity periods: %v, want %v:\n%s", newer, want, text)
				}
				m.Write(t, "/run/config.yaml", text)
				if program.Minor() >= 26 {
					m.Run(t, "config", "validate", "--config", "/run/config.yaml")
					return
				}
				m.Run(t, "config", "migrate", "--old-config", "/run/config.yaml", "--new-config", "/tmp/new.yaml")
			})
		}
	}
}

// kubeadm reads, without a warning, what kubeadm of an earlier version wrote when it created the cluster, after a rollout.
func TestKubeadmReadsConfigurationsOfOldClusters(t *testing.T) {
	const uploaded = "apiVersion: kubeadm.k8s.io/v1beta2\nkind: ClusterConfiguration\nclusterName: c\ncontrolPlaneEndpoint: 10.0.0.1:6443\n" +
		"certificatesDir: /etc/kubernetes/pki\nimageRepository: k8s.gcr.io\nkubernetesVersion: v1.21.14\nnetworking: {dnsDomain: cluster.local}\n" +
		"dns: {type: CoreDNS}\netcd: {local: {dataDir: /var/lib/etcd, extraArgs: {a: b}}}\nscheduler: {}\ncontrollerManager: {extraArgs: {c: d}}\n" +
		"apiServer: {timeoutForControlPlane: 4m0s, extraArgs: {authorization-mode: \"Node,RBAC\"}}\n"
	for _, program := range kubeadmtest.Programs(t) {
		if program.Minor() < 26 || program.Minor() > 30 && program.Minor() < 34 {
			continue // It reads the old version; to convert it would exclude workers.
		}
		t.Run(program.Version, func(t *testing.T) {
			text, _, err := edit(uploaded, func(doc map[string]any) error {
				doc["kubernetesVersion"] = program.Version
				convert(doc, program.Version)
				return nil
			})
			testenv.Must(t, err)
			m := program.NewMachine(t)
			m.Write(t, "/run/config.yaml", text)
			m.Run(t, "config", "validate", "--config", "/run/config.yaml")
		})
	}
}

// clusterConfigurationOf returns the ClusterConfiguration among documents of kubeadm.
func clusterConfigurationOf(t *testing.T, documents string) string {
	t.Helper()
	for document := range strings.SplitSeq(documents, "\n---\n") {
		if strings.Contains(document, "kind: ClusterConfiguration") {
			return document
		}
	}
	t.Fatalf("there is no ClusterConfiguration:\n%s", documents)
	return ""
}
