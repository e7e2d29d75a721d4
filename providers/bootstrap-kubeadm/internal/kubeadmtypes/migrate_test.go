package kubeadmtypes

import (
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	bootstrapv1 "sigs.k8s.io/cluster-api/api/bootstrap/v1beta2"
	"sigs.k8s.io/cluster-api/providers/internal/kubeadm/kubeadmtest"
)

// kubeadm that reads both API versions gets the same from what we write for it as from what we write for older versions. The
// output of its migration has every field, with defaults.
func TestSameInBothVersions(t *testing.T) {
	external := shared()
	external.Etcd = bootstrapv1.Etcd{External: bootstrapv1.ExternalEtcd{Endpoints: []string{"https://etcd.example.com:2379"},
		CAFile: "/etc/kubernetes/pki/etcd/ca.crt", CertFile: "/etc/kubernetes/pki/apiserver-etcd-client.crt", KeyFile: "/etc/kubernetes/pki/apiserver-etcd-client.key"}}
	initialize, worker, controlPlane := initConfiguration(), joinConfiguration(), joinConfiguration()
	initialize.Timeouts = bootstrapv1.Timeouts{ControlPlaneComponentHealthCheckSeconds: initialize.Timeouts.ControlPlaneComponentHealthCheckSeconds}
	for _, registration := range []*bootstrapv1.NodeRegistrationOptions{
		&initialize.NodeRegistration, &worker.NodeRegistration, &controlPlane.NodeRegistration,
	} {
		registration.ImagePullSerial = nil
	}
	// kubeadm migrates the timeout of v1beta3 to discovery alone, although kubeadm that reads only v1beta3 has it for TLS bootstrap, too.
	controlPlane.ControlPlane = &bootstrapv1.JoinControlPlane{LocalAPIEndpoint: bootstrapv1.APIEndpoint{AdvertiseAddress: "10.0.0.3", BindPort: 6443}}
	tests := []struct {
		reason string
		render func(version string) (string, error)
	}{
		{"every field of kubeadm init", func(v string) (string, error) { return Init(shared(), initialize, cluster(), v) }},
		{"external etcd", func(v string) (string, error) { return Init(external, initialize, cluster(), v) }},
		{"a worker", func(v string) (string, error) { return Join(worker, v) }},
		{"a control plane machine", func(v string) (string, error) { return Join(controlPlane, v) }},
	}
	for _, program := range kubeadmtest.Programs(t) {
		if program.Minor() < 31 || program.Minor() > 36 {
			continue // It does not know both.
		}
		m := program.NewMachine(t)
		for _, tt := range tests {
			t.Run(program.Version+" "+tt.reason, func(t *testing.T) {
				var migrated []string
				for _, version := range []string{"v1.30.0", program.Version} {
					text, err := tt.render(version)
					if err != nil {
						t.Fatal(err)
					}
					// A version that this kubeadm supports, and that needs no download.
					m.Write(t, "/run/config.yaml", strings.Replace(text, "kubernetesVersion: v1.36.0", "kubernetesVersion: "+program.Version, 1))
					out, stderr, err := m.Try(t, "config", "migrate", "--old-config", "/run/config.yaml")
					if err != nil {
						t.Fatalf("%v: %s\n%s", err, stderr, text)
					}
					// From v1beta4, kubeadm migrates any value to 0s. The files of TestKubeadm show what it uses.
					migrated = append(migrated, regexp.MustCompile(`(controlPlaneComponentHealthCheck): \w+`).ReplaceAllString(out, "$1: x"))
				}
				if !strings.Contains(migrated[1], "apiVersion: "+v1beta4) {
					t.Fatalf("not %s:\n%s", v1beta4, migrated[1])
				}
				if diff := cmp.Diff(migrated[0], migrated[1]); diff != "" {
					t.Errorf("-v1beta3 +v1beta4:\n%s", diff)
				}
			})
		}
	}
}

// shared is a configuration with what both versions have.
func shared() *bootstrapv1.ClusterConfiguration {
	config := clusterConfiguration()
	config.CertificateValidityPeriodDays, config.CACertificateValidityPeriodDays, config.EncryptionAlgorithm = 0, 0, ""
	for _, c := range []*bootstrapv1.ControlPlaneComponent{&config.APIServer.ControlPlaneComponent, &config.ControllerManager, &config.Scheduler} {
		c.ExtraEnvs = nil
	}
	config.Etcd.Local.ExtraEnvs = nil
	return config
}
