package snapshot

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/utils/ptr"

	bootstrapv1beta1 "sigs.k8s.io/cluster-api/api/bootstrap/v1beta1"
	bootstrapv1 "sigs.k8s.io/cluster-api/api/bootstrap/v1beta2"
	controlplanev1beta1 "sigs.k8s.io/cluster-api/api/controlplane/v1beta1"
	controlplanev1 "sigs.k8s.io/cluster-api/api/controlplane/v1beta2"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/sdk/conversion"
	"sigs.k8s.io/cluster-api/sdk/testenv"
)

var now = time.Date(2026, 6, 1, 0, 0, 0, 0, time.UTC)

// controlPlane returns the control plane that all cases start from, as clients of v1beta1 write it: v1beta2 has less.
func controlPlane() *controlplanev1beta1.KubeadmControlPlane {
	kcp := &controlplanev1beta1.KubeadmControlPlane{}
	kcp.CreationTimestamp = metav1.NewTime(now.Add(-48 * time.Hour))
	kcp.Spec.Version = "v1.30.0"
	kcp.Spec.MachineTemplate.InfrastructureRef = corev1.ObjectReference{APIVersion: "infra.x/v1", Kind: "ThingTemplate", Name: "t"}
	kcp.Spec.KubeadmConfigSpec = bootstrapv1beta1.KubeadmConfigSpec{
		ClusterConfiguration: &bootstrapv1beta1.ClusterConfiguration{ImageRepository: "r"},
		InitConfiguration:    &bootstrapv1beta1.InitConfiguration{},
		JoinConfiguration:    &bootstrapv1beta1.JoinConfiguration{},
		PreKubeadmCommands:   []string{"true"},
	}
	return kcp
}

// specOf returns the spec of a control plane after it was stored.
func specOf(t *testing.T, older *controlplanev1beta1.KubeadmControlPlane) Spec {
	t.Helper()
	kcp := &controlplanev1.KubeadmControlPlane{}
	testenv.Must(t, conversion.Shared().Convert(t.Context(), older, kcp))
	s, err := SpecOf(t.Context(), kcp)
	testenv.Must(t, err)
	return s
}

// configOf returns a KubeadmConfig after it was stored.
func configOf(t *testing.T, older *bootstrapv1beta1.KubeadmConfig) *bootstrapv1.KubeadmConfig {
	t.Helper()
	config := &bootstrapv1.KubeadmConfig{}
	testenv.Must(t, conversion.Shared().Convert(t.Context(), older, config))
	return config
}

// hashOf returns the hash that Machines have.
func hashOf(t *testing.T, older *controlplanev1beta1.KubeadmControlPlane) string {
	t.Helper()
	spec := older.Spec.KubeadmConfigSpec.DeepCopy()
	spec.ClusterConfiguration = nil
	encoded, err := json.Marshal(spec)
	testenv.Must(t, err)
	return fmt.Sprintf("%x", sha256.Sum256(encoded))
}

// created returns a Machine that was created from the control plane and then changed by the bootstrap provider.
func created(t *testing.T, from *controlplanev1beta1.KubeadmControlPlane, initializes bool) *Machine {
	t.Helper()
	record, err := json.Marshal(from.Spec.KubeadmConfigSpec.ClusterConfiguration)
	if err != nil {
		t.Fatal(err)
	}
	hash := hashOf(t, from)
	config := &bootstrapv1beta1.KubeadmConfig{Spec: *from.Spec.KubeadmConfigSpec.DeepCopy()}
	config.Spec.Format = bootstrapv1beta1.CloudConfig
	if initializes {
		config.Spec.JoinConfiguration = nil
		config.Spec.ClusterConfiguration.ClusterName = "defaulted"
		config.Spec.InitConfiguration.NodeRegistration.ImagePullPolicy = "IfNotPresent"
	} else {
		config.Spec.InitConfiguration, config.Spec.ClusterConfiguration = nil, nil
		config.Spec.JoinConfiguration.Discovery.BootstrapToken = &bootstrapv1beta1.BootstrapTokenDiscovery{Token: "a.b"}
		config.Spec.JoinConfiguration.ControlPlane = &bootstrapv1beta1.JoinControlPlane{}
		config.Spec.JoinConfiguration.NodeRegistration.ImagePullPolicy = "IfNotPresent"
	}
	return &Machine{
		Machine: &clusterv1.Machine{
			ObjectMeta: metav1.ObjectMeta{
				CreationTimestamp: metav1.NewTime(now.Add(-24 * time.Hour)),
				Annotations:       map[string]string{controlplanev1beta1.KubeadmClusterConfigurationAnnotation: string(record), ConfigAnnotation: hash},
			},
			Spec: clusterv1.MachineSpec{Version: from.Spec.Version},
		},
		Config: configOf(t, config),
		Infrastructure: infrastructure(map[string]string{
			clusterv1.TemplateClonedFromNameAnnotation: "t", clusterv1.TemplateClonedFromGroupKindAnnotation: "ThingTemplate.infra.x",
		}),
	}
}

// infrastructure returns an infrastructure machine with these annotations.
func infrastructure(annotations map[string]string) *unstructured.Unstructured {
	u := &unstructured.Unstructured{}
	u.SetAnnotations(annotations)
	return u
}

// reasonCase is a change of the control plane or of a Machine that was created from it, with the expected reasons.
type reasonCase struct {
	reason  string
	joins   bool
	spec    func(*controlplanev1beta1.KubeadmControlPlaneSpec)
	machine func(*Machine)
	want    []string
}

// asOfV114 makes a Machine one that Cluster API v1.14 has created.
func asOfV114(m *Machine) {
	m.Annotations = nil
	m.Config.Spec.ClusterConfiguration = bootstrapv1.ClusterConfiguration{
		ImageRepository: "r", ControlPlaneEndpoint: "example.com:6443", DNS: bootstrapv1.DNS{ImageMeta: bootstrapv1.ImageMeta{ImageTag: "v1.11.1"}},
		FeatureGates: map[string]bool{"ControlPlaneKubeletLocalMode": true},
	}
}

// clusterCases are about the version and clusterConfiguration.
func clusterCases() []reasonCase {
	return []reasonCase{
		{reason: "fields that the bootstrap provider sets for the first Machine do not matter"},
		{reason: "fields that the bootstrap provider sets for a joining Machine do not matter", joins: true},
		{reason: "version", spec: func(s *controlplanev1beta1.KubeadmControlPlaneSpec) { s.Version = "v1.31.0" }, want: []string{"version v1.30.0 is not v1.31.0"}},
		{reason: "without a version it is not compared", spec: func(s *controlplanev1beta1.KubeadmControlPlaneSpec) { s.Version = "v1.31.0" }, machine: func(m *Machine) { m.Spec.Version = "" }},
		{
			reason: "clusterConfiguration", want: []string{"clusterConfiguration changed"},
			spec: func(s *controlplanev1beta1.KubeadmControlPlaneSpec) {
				s.KubeadmConfigSpec.ClusterConfiguration.ImageRepository = "other"
			},
		},
		{reason: "DNS is updated in place", spec: func(s *controlplanev1beta1.KubeadmControlPlaneSpec) {
			s.KubeadmConfigSpec.ClusterConfiguration.DNS.ImageTag = "v9"
		}},
		{
			reason: "an adopted Machine has no annotation, and its clusterConfiguration is not compared",
			spec: func(s *controlplanev1beta1.KubeadmControlPlaneSpec) {
				s.KubeadmConfigSpec.ClusterConfiguration.ImageRepository = "other"
			},
			machine: func(m *Machine) {
				m.Annotations, m.CreationTimestamp = nil, metav1.NewTime(now.Add(-72*time.Hour))
			},
		},
		{reason: "Machines of v1.14 have clusterConfiguration in their KubeadmConfig", machine: asOfV114},
		{reason: "Machines of v1.14 have it if they have joined, too", joins: true, machine: asOfV114},
		{
			reason: "clusterConfiguration changed since v1.14 created the Machine", machine: asOfV114, want: []string{"clusterConfiguration changed"},
			spec: func(s *controlplanev1beta1.KubeadmControlPlaneSpec) {
				s.KubeadmConfigSpec.ClusterConfiguration.APIServer.ExtraArgs = map[string]string{"v": "4"}
			},
		},
		{
			reason: "a feature gate was chosen since v1.14 created the Machine", joins: true, machine: asOfV114, want: []string{"clusterConfiguration changed"},
			spec: func(s *controlplanev1beta1.KubeadmControlPlaneSpec) {
				s.KubeadmConfigSpec.ClusterConfiguration.FeatureGates = map[string]bool{"ControlPlaneKubeletLocalMode": false}
			},
		},
		{
			reason: "of a Machine that joined under an earlier version, clusterConfiguration is unknown", joins: true,
			spec: func(s *controlplanev1beta1.KubeadmControlPlaneSpec) {
				s.KubeadmConfigSpec.ClusterConfiguration.ImageRepository = "other"
			},
			machine: func(m *Machine) { m.Annotations = nil },
		},
		{
			reason:  "an annotation with null",
			spec:    func(s *controlplanev1beta1.KubeadmControlPlaneSpec) { s.KubeadmConfigSpec.ClusterConfiguration = nil },
			machine: func(m *Machine) { m.Annotations[controlplanev1beta1.KubeadmClusterConfigurationAnnotation] = "null" },
		},
		{
			reason: "an invalid annotation", machine: func(m *Machine) { m.Annotations[controlplanev1beta1.KubeadmClusterConfigurationAnnotation] = "{" },
			want: []string{"its annotation with clusterConfiguration is invalid"},
		},
	}
}

// configCases are about the rest of kubeadmConfigSpec.
func configCases() []reasonCase {
	return []reasonCase{
		{
			reason: "commands", want: []string{"kubeadmConfigSpec changed"},
			spec: func(s *controlplanev1beta1.KubeadmControlPlaneSpec) { s.KubeadmConfigSpec.PreKubeadmCommands = nil },
		},
		{
			reason: "without a KubeadmConfig it is not compared", machine: func(m *Machine) { m.Config = nil },
			spec: func(s *controlplanev1beta1.KubeadmControlPlaneSpec) { s.KubeadmConfigSpec.PreKubeadmCommands = nil },
		},
		{
			reason: "joinConfiguration does not matter for the first Machine",
			spec: func(s *controlplanev1beta1.KubeadmControlPlaneSpec) {
				s.KubeadmConfigSpec.JoinConfiguration.CACertPath = "/x"
			},
		},
		{
			reason: "joinConfiguration of a Machine that has joined", joins: true, want: []string{"kubeadmConfigSpec changed"},
			spec: func(s *controlplanev1beta1.KubeadmControlPlaneSpec) {
				s.KubeadmConfigSpec.JoinConfiguration.CACertPath = "/x"
			},
		},
		{
			reason: "initConfiguration does not matter for a Machine that has joined", joins: true,
			spec: func(s *controlplanev1beta1.KubeadmControlPlaneSpec) {
				s.KubeadmConfigSpec.InitConfiguration.NodeRegistration.Name = "x"
			},
		},
		{
			reason: "discovery is not compared", joins: true,
			spec: func(s *controlplanev1beta1.KubeadmControlPlaneSpec) {
				s.KubeadmConfigSpec.JoinConfiguration.Discovery.TLSBootstrapToken = "x"
			},
		},
		{
			reason: "a section that is not set equals an empty one", joins: true,
			spec: func(s *controlplanev1beta1.KubeadmControlPlaneSpec) { s.KubeadmConfigSpec.JoinConfiguration = nil },
		},
		{
			reason: "an empty list of taints", want: []string{"kubeadmConfigSpec changed"},
			spec: func(s *controlplanev1beta1.KubeadmControlPlaneSpec) {
				s.KubeadmConfigSpec.InitConfiguration.NodeRegistration.Taints = []corev1.Taint{}
			},
		},
		{
			reason: "an empty list of taints when joining", joins: true, want: []string{"kubeadmConfigSpec changed"},
			spec: func(s *controlplanev1beta1.KubeadmControlPlaneSpec) {
				s.KubeadmConfigSpec.JoinConfiguration.NodeRegistration.Taints = []corev1.Taint{}
			},
		},
	}
}

// policyCases are about webhooks of others that change every KubeadmConfig: that of a replacement would differ, too.
func policyCases() []reasonCase {
	mutated := func(m *Machine) {
		m.Config.Spec.Files = []bootstrapv1.File{{Path: "/etc/motd", Permissions: "0600"}}
	}
	return []reasonCase{
		{reason: "a KubeadmConfig was changed by others, and the spec has not changed", machine: mutated},
		{
			reason: "it was changed by others, and the spec has changed", machine: mutated, want: []string{"kubeadmConfigSpec changed"},
			spec: func(s *controlplanev1beta1.KubeadmControlPlaneSpec) { s.KubeadmConfigSpec.PreKubeadmCommands = nil },
		},
		{
			reason: "without the annotation all fields are compared", want: []string{"kubeadmConfigSpec changed"},
			machine: func(m *Machine) {
				mutated(m)
				delete(m.Annotations, ConfigAnnotation)
			},
		},
		{
			reason:  "without the annotation all fields are the same",
			machine: func(m *Machine) { delete(m.Annotations, ConfigAnnotation) },
		},
	}
}

// otherCases are about infrastructure, dates, and fields that do not matter.
func otherCases() []reasonCase {
	days := func(n int32) *controlplanev1beta1.RolloutBefore {
		return &controlplanev1beta1.RolloutBefore{CertificatesExpiryDays: &n}
	}
	return []reasonCase{
		{
			reason: "another template", want: []string{"its infrastructure is from ThingTemplate.infra.x t, not u"},
			spec: func(s *controlplanev1beta1.KubeadmControlPlaneSpec) { s.MachineTemplate.InfrastructureRef.Name = "u" },
		},
		{reason: "the API version of the template does not matter", spec: func(s *controlplanev1beta1.KubeadmControlPlaneSpec) {
			s.MachineTemplate.InfrastructureRef.APIVersion = "infra.x/v2"
		}},
		{
			reason: "infrastructure without annotations is not compared", machine: func(m *Machine) { m.Infrastructure = infrastructure(nil) },
			spec: func(s *controlplanev1beta1.KubeadmControlPlaneSpec) { s.MachineTemplate.InfrastructureRef.Name = "u" },
		},
		{
			reason: "rolloutAfter has passed", want: []string{"it was created before spec.rolloutAfter"},
			spec: func(s *controlplanev1beta1.KubeadmControlPlaneSpec) {
				s.RolloutAfter = ptr.To(metav1.NewTime(now.Add(-time.Minute)))
			},
		},
		{reason: "rolloutAfter is in the future", spec: func(s *controlplanev1beta1.KubeadmControlPlaneSpec) {
			s.RolloutAfter = ptr.To(metav1.NewTime(now.Add(time.Minute)))
		}},
		{reason: "the Machine is newer than rolloutAfter", spec: func(s *controlplanev1beta1.KubeadmControlPlaneSpec) {
			s.RolloutAfter = ptr.To(metav1.NewTime(now.Add(-48 * time.Hour)))
		}},
		{
			reason: "certificates expire soon", want: []string{"its certificates expire soon"},
			spec:    func(s *controlplanev1beta1.KubeadmControlPlaneSpec) { s.RolloutBefore = days(10) },
			machine: func(m *Machine) { m.Status.CertificatesExpiryDate = metav1.NewTime(now.AddDate(0, 0, 9)) },
		},
		{
			reason: "certificates expire exactly so many days from now", want: []string{"its certificates expire soon"},
			spec:    func(s *controlplanev1beta1.KubeadmControlPlaneSpec) { s.RolloutBefore = days(10) },
			machine: func(m *Machine) { m.Status.CertificatesExpiryDate = metav1.NewTime(now.AddDate(0, 0, 10)) },
		},
		{
			reason: "certificates expire a second later",
			spec:   func(s *controlplanev1beta1.KubeadmControlPlaneSpec) { s.RolloutBefore = days(10) },
			machine: func(m *Machine) {
				m.Status.CertificatesExpiryDate = metav1.NewTime(now.AddDate(0, 0, 10).Add(time.Second))
			},
		},
		{
			reason:  "certificates do not expire soon",
			spec:    func(s *controlplanev1beta1.KubeadmControlPlaneSpec) { s.RolloutBefore = days(10) },
			machine: func(m *Machine) { m.Status.CertificatesExpiryDate = metav1.NewTime(now.AddDate(0, 0, 11)) },
		},
		{reason: "metadata, replicas, timeouts and strategies do not matter", spec: func(s *controlplanev1beta1.KubeadmControlPlaneSpec) {
			s.Replicas = ptr.To[int32](5)
			s.MachineTemplate.ObjectMeta.Labels = map[string]string{"a": "b"}
			s.MachineTemplate.NodeDrainTimeout = &metav1.Duration{Duration: time.Hour}
			s.RolloutStrategy = &controlplanev1beta1.RolloutStrategy{}
			s.RemediationStrategy = &controlplanev1beta1.RemediationStrategy{}
		}},
		{
			reason: "a Machine that is being deleted is not compared", machine: func(m *Machine) { m.DeletionTimestamp = ptr.To(metav1.NewTime(now)) },
			spec: func(s *controlplanev1beta1.KubeadmControlPlaneSpec) { s.Version = "v1.31.0" },
		},
	}
}

func TestOutdatedReasons(t *testing.T) {
	cases := slices.Concat(clusterCases(), configCases(), policyCases(), otherCases())
	for _, tc := range cases {
		t.Run(tc.reason, func(t *testing.T) {
			kcp := controlPlane()
			m := created(t, kcp, !tc.joins)
			if tc.spec != nil {
				tc.spec(&kcp.Spec)
			}
			if tc.machine != nil {
				tc.machine(m)
			}
			got, err := OutdatedReasons(t.Context(), specOf(t, kcp), m, now)
			testenv.Must(t, err)
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
		})
	}
}

func TestDue(t *testing.T) {
	in := func(days int) *metav1.Time { return ptr.To(metav1.NewTime(now.AddDate(0, 0, days))) }
	tests := []struct {
		reason  string
		spec    controlplanev1beta1.KubeadmControlPlaneSpec
		expiry  *metav1.Time
		created time.Time
		want    time.Time
	}{
		{reason: "nothing is scheduled", expiry: in(20)},
		{reason: "certificates of unknown expiry", spec: controlplanev1beta1.KubeadmControlPlaneSpec{RolloutBefore: &controlplanev1beta1.RolloutBefore{CertificatesExpiryDays: ptr.To[int32](7)}}},
		{reason: "a rolloutBefore without days", spec: controlplanev1beta1.KubeadmControlPlaneSpec{RolloutBefore: &controlplanev1beta1.RolloutBefore{}}, expiry: in(20)},
		{
			reason: "seven days before the expiry", expiry: in(20), want: now.AddDate(0, 0, 13),
			spec: controlplanev1beta1.KubeadmControlPlaneSpec{RolloutBefore: &controlplanev1beta1.RolloutBefore{CertificatesExpiryDays: ptr.To[int32](7)}},
		},
		{
			reason: "the earlier of both", expiry: in(20), want: now.AddDate(0, 0, 2),
			spec: controlplanev1beta1.KubeadmControlPlaneSpec{RolloutAfter: in(2), RolloutBefore: &controlplanev1beta1.RolloutBefore{CertificatesExpiryDays: ptr.To[int32](7)}},
		},
		{
			reason: "the Machine is newer than rolloutAfter", expiry: in(20), created: now.AddDate(0, 0, 3), want: now.AddDate(0, 0, 13),
			spec: controlplanev1beta1.KubeadmControlPlaneSpec{RolloutAfter: in(2), RolloutBefore: &controlplanev1beta1.RolloutBefore{CertificatesExpiryDays: ptr.To[int32](7)}},
		},
	}
	for _, tt := range tests {
		m := &Machine{Machine: &clusterv1.Machine{Status: clusterv1.MachineStatus{CertificatesExpiryDate: ptr.Deref(tt.expiry, metav1.Time{})}}}
		m.CreationTimestamp = metav1.NewTime(tt.created)
		if got := due(specOf(t, &controlplanev1beta1.KubeadmControlPlane{Spec: tt.spec}), m); !got.Equal(tt.want) {
			t.Errorf("%s: due %s, want %s", tt.reason, got, tt.want)
		}
	}
}
