package webhook

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	admissionv1 "k8s.io/api/admission/v1"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	bootstrapv1beta1 "sigs.k8s.io/cluster-api/api/bootstrap/v1beta1"
	bootstrapv1 "sigs.k8s.io/cluster-api/api/bootstrap/v1beta2"
	controlplanev1beta1 "sigs.k8s.io/cluster-api/api/controlplane/v1beta1"
	controlplanev1 "sigs.k8s.io/cluster-api/api/controlplane/v1beta2"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/sdk/conversion"
	"sigs.k8s.io/cluster-api/sdk/testenv"
)

// edit changes a control plane.
type edit func(*controlplanev1.KubeadmControlPlaneSpec)

// valid returns a valid control plane with defaults.
func valid(t *testing.T, edits ...edit) *controlplanev1.KubeadmControlPlane {
	t.Helper()
	kcp := &controlplanev1.KubeadmControlPlane{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "cp"}}
	kcp.Spec.Version = "v1.30.0"
	kcp.Spec.Replicas = ptr.To[int32](3)
	kcp.Spec.MachineTemplate.Spec.InfrastructureRef = clusterv1.ContractVersionedObjectReference{APIGroup: "infra.x", Kind: "ThingTemplate", Name: "t"}
	kcp.Spec.KubeadmConfigSpec.ClusterConfiguration.FeatureGates = map[string]bool{"A": true}
	for _, e := range edits {
		if e != nil {
			e(&kcp.Spec)
		}
	}
	if err := (controlPlanes{}).Default(t.Context(), kcp); err != nil {
		t.Fatal(err)
	}
	return kcp
}

// fields returns the fields of an invalid object.
func fields(t *testing.T, err error) []string {
	t.Helper()
	if err == nil {
		return nil
	}
	status, ok := err.(apierrors.APIStatus) // The webhook does not wrap it.
	if !ok || status.Status().Details == nil {
		t.Fatalf("not an invalid object: %v", err)
	}
	var all []string
	for _, cause := range status.Status().Details.Causes {
		all = append(all, cause.Field)
	}
	slices.Sort(all)
	return slices.Compact(all)
}

func TestDefault(t *testing.T) {
	kcp := &controlplanev1.KubeadmControlPlane{ObjectMeta: metav1.ObjectMeta{Namespace: "ns"}}
	kcp.Spec.Version = "1.30.0"
	kcp.Spec.KubeadmConfigSpec.JoinConfiguration.SkipPhases = []string{"p"}
	if err := (controlPlanes{}).Default(t.Context(), kcp); err != nil {
		t.Fatal(err)
	}
	want := controlplanev1.KubeadmControlPlaneSpec{
		Replicas: ptr.To[int32](1), Version: "v1.30.0",
		Rollout: controlplanev1.KubeadmControlPlaneRolloutSpec{Strategy: controlplanev1.KubeadmControlPlaneRolloutStrategy{
			Type: "RollingUpdate", RollingUpdate: controlplanev1.KubeadmControlPlaneRolloutStrategyRollingUpdate{MaxSurge: ptr.To(intstr.FromInt32(1))},
		}},
		KubeadmConfigSpec: bootstrapv1.KubeadmConfigSpec{Format: "cloud-config", JoinConfiguration: bootstrapv1.JoinConfiguration{
			NodeRegistration: bootstrapv1.NodeRegistrationOptions{ImagePullPolicy: "IfNotPresent"}, SkipPhases: []string{"p"},
		}},
	}
	if diff := cmp.Diff(want, kcp.Spec); diff != "" {
		t.Errorf("defaults (-want +got):\n%s", diff)
	}
}

func TestValidateCreate(t *testing.T) {
	type spec = controlplanev1.KubeadmControlPlaneSpec
	const template = "spec.machineTemplate.spec.infrastructureRef."
	external := bootstrapv1.ExternalEtcd{Endpoints: []string{"https://e"}}
	cases := []struct {
		reason string
		edit   edit
		want   []string
	}{
		{reason: "valid"},
		{"no replicas", func(s *spec) { s.Replicas = ptr.To[int32](0) }, []string{"spec.replicas"}},
		{"an even number", func(s *spec) { s.Replicas = ptr.To[int32](2) }, []string{"spec.replicas"}},
		{"an even number with external etcd", func(s *spec) {
			s.Replicas = ptr.To[int32](2)
			s.KubeadmConfigSpec.ClusterConfiguration.Etcd.External = external
		}, nil},
		{"no template", func(s *spec) { s.MachineTemplate.Spec.InfrastructureRef = clusterv1.ContractVersionedObjectReference{} }, []string{
			template + "apiGroup", template + "kind", template + "name",
		}},
		{"an incomplete version", func(s *spec) { s.Version = "v1.30" }, []string{"spec.version"}},
		{"labels", func(s *spec) { s.MachineTemplate.ObjectMeta.Labels = map[string]string{"a b": "c"} }, []string{"spec.machineTemplate.metadata.labels"}},
		{"certificatesExpiryDays too low", func(s *spec) { s.Rollout.Before.CertificatesExpiryDays = 6 }, []string{"spec.rollout.before.certificatesExpiryDays"}},
		{"unknown strategy", func(s *spec) { s.Rollout.Strategy.Type = "Other" }, []string{"spec.rollout.strategy.type"}},
		{"too much surge", surge(intstr.FromInt32(2)), []string{"spec.rollout.strategy.rollingUpdate.maxSurge"}},
		{"surge in percent", surge(intstr.FromString("1%")), []string{"spec.rollout.strategy.rollingUpdate.maxSurge"}},
		{"no surge with three replicas", surge(intstr.FromInt32(0)), nil},
		{"no surge with one replica", func(s *spec) {
			s.Replicas = ptr.To[int32](1)
			surge(intstr.FromInt32(0))(s)
		}, []string{"spec.rollout.strategy.rollingUpdate.maxSurge"}},
		{"two kinds of etcd", func(s *spec) {
			s.KubeadmConfigSpec.ClusterConfiguration.Etcd = bootstrapv1.Etcd{Local: bootstrapv1.LocalEtcd{DataDir: "/d"}, External: external}
		}, []string{"spec.kubeadmConfigSpec.clusterConfiguration.etcd.local"}},
		{"external etcd without members", func(s *spec) {
			s.KubeadmConfigSpec.ClusterConfiguration.Etcd.External = bootstrapv1.ExternalEtcd{CAFile: "ca"}
		}, []string{"spec.kubeadmConfigSpec.clusterConfiguration.etcd.external.endpoints"}},
		{"members of external etcd that are no URLs", func(s *spec) {
			s.KubeadmConfigSpec.ClusterConfiguration.Etcd.External = bootstrapv1.ExternalEtcd{
				Endpoints: []string{"https://10.0.0.5:2379", "10.0.0.6:2379", "etcd", "http://10.0.0.7:2379", "https://:2379"}, CAFile: "ca",
			}
		}, []string{
			"spec.kubeadmConfigSpec.clusterConfiguration.etcd.external.endpoints[1]", "spec.kubeadmConfigSpec.clusterConfiguration.etcd.external.endpoints[2]",
			"spec.kubeadmConfigSpec.clusterConfiguration.etcd.external.endpoints[3]", "spec.kubeadmConfigSpec.clusterConfiguration.etcd.external.endpoints[4]",
		}},
		{"external etcd without TLS", func(s *spec) {
			s.KubeadmConfigSpec.ClusterConfiguration.Etcd.External = bootstrapv1.ExternalEtcd{Endpoints: []string{"http://10.0.0.7:2379"}}
		}, nil},
		{"tags", func(s *spec) {
			c := &s.KubeadmConfigSpec.ClusterConfiguration
			c.DNS.ImageTag = "latest"
			c.Etcd.Local.ImageTag = "a:b"
		}, []string{"spec.kubeadmConfigSpec.clusterConfiguration.dns.imageTag", "spec.kubeadmConfigSpec.clusterConfiguration.etcd.local.imageTag"}},
		{"shared rules", func(s *spec) { s.KubeadmConfigSpec.Format = bootstrapv1.Ignition }, []string{"spec.kubeadmConfigSpec.format"}},
	}
	for _, tc := range cases {
		t.Run(tc.reason, func(t *testing.T) {
			_, err := controlPlanes{}.ValidateCreate(t.Context(), valid(t, tc.edit))
			if diff := cmp.Diff(tc.want, fields(t, err)); diff != "" {
				t.Errorf("%s: fields (-want +got):\n%s\n%v", tc.reason, diff, err)
			}
		})
	}
}

// Taints require their gate, in control planes and templates. Those that are stored already do not prevent other changes.
func TestValidateTaints(t *testing.T) {
	taints := []clusterv1.MachineTaint{{
		Key: "node.kubernetes.io/not-ready", Effect: corev1.TaintEffectNoSchedule, Propagation: clusterv1.MachineTaintPropagationAlways,
	}}
	kcp := valid(t, func(s *controlplanev1.KubeadmControlPlaneSpec) { s.MachineTemplate.Spec.Taints = taints })
	template := &controlplanev1.KubeadmControlPlaneTemplate{}
	template.Spec.Template.Spec.MachineTemplate.Spec.Taints = taints
	for _, tc := range []struct {
		reason  string
		enabled bool
		want    string
	}{
		{"the gate is off", false, "taints"}, {"Kubernetes manages the taint", true, "taints[0].key"},
	} {
		plane := controlPlanes{taints: tc.enabled}
		_, err := plane.ValidateCreate(t.Context(), kcp)
		if diff := cmp.Diff([]string{"spec.machineTemplate.spec." + tc.want}, fields(t, err)); diff != "" {
			t.Errorf("%s: fields of a control plane (-want +got):\n%s\n%v", tc.reason, diff, err)
		}
		if _, err = plane.ValidateUpdate(t.Context(), kcp, kcp); err != nil {
			t.Errorf("%s: a stored control plane is rejected: %v", tc.reason, err)
		}
		_, err = templates{gates: Gates{ClusterTopology: true, MachineTaintPropagation: tc.enabled}}.ValidateCreate(t.Context(), template)
		if !slices.Contains(fields(t, err), "spec.template.spec.machineTemplate.spec."+tc.want) {
			t.Errorf("%s: fields of a template: %v", tc.reason, err)
		}
	}
}

// Clients of v1beta1 can write what v1beta2 does not have.
func TestValidateOlder(t *testing.T) {
	type spec = controlplanev1beta1.KubeadmControlPlaneSpec
	const etcd = "spec.kubeadmConfigSpec.clusterConfiguration.etcd."
	some := &bootstrapv1beta1.ExternalEtcd{Endpoints: []string{"https://e"}}
	cases := []struct {
		reason string
		edit   func(*spec)
		want   []string
	}{
		{reason: "valid"},
		{"a template in another namespace", func(s *spec) { s.MachineTemplate.InfrastructureRef.Namespace = "other" },
			[]string{"spec.machineTemplate.spec.infrastructureRef.namespace"}},
		{"no certificatesExpiryDays", func(s *spec) {
			s.RolloutBefore = &controlplanev1beta1.RolloutBefore{CertificatesExpiryDays: ptr.To[int32](0)}
		}, []string{"spec.rollout.before.certificatesExpiryDays"}},
		{"two kinds of etcd, one empty", func(s *spec) {
			s.KubeadmConfigSpec.ClusterConfiguration.Etcd = bootstrapv1beta1.Etcd{Local: &bootstrapv1beta1.LocalEtcd{}, External: some}
		}, []string{etcd + "local"}},
		{"an empty external etcd", func(s *spec) {
			s.KubeadmConfigSpec.ClusterConfiguration.Etcd.External = &bootstrapv1beta1.ExternalEtcd{}
		}, []string{etcd + "external.endpoints"}},
		{"shared rules", func(s *spec) {
			s.KubeadmConfigSpec.Format, s.KubeadmConfigSpec.UseExperimentalRetryJoin = bootstrapv1beta1.Ignition, true
		}, []string{"spec.kubeadmConfigSpec.useExperimentalRetryJoin"}},
	}
	for _, tc := range cases {
		t.Run(tc.reason, func(t *testing.T) {
			_, err := controlPlanes{ignition: true}.ValidateCreate(t.Context(), received(t, validOlder(t, tc.edit)))
			if diff := cmp.Diff(tc.want, fields(t, err)); diff != "" {
				t.Errorf("%s: fields (-want +got):\n%s\n%v", tc.reason, diff, err)
			}
		})
	}
}

func surge(n intstr.IntOrString) edit {
	return func(s *controlplanev1.KubeadmControlPlaneSpec) {
		s.Rollout.Strategy.Type, s.Rollout.Strategy.RollingUpdate.MaxSurge = "RollingUpdate", &n
	}
}

func TestValidateUpdate(t *testing.T) {
	type spec = controlplanev1.KubeadmControlPlaneSpec
	const config = "spec.kubeadmConfigSpec."
	version := func(v string) edit { return func(s *spec) { s.Version = v } }
	dns := func(tag string) edit {
		return func(s *spec) { s.KubeadmConfigSpec.ClusterConfiguration.DNS.ImageTag = tag }
	}
	cases := []struct {
		reason        string
		before, after edit
		want          []string
	}{
		{"nothing", nil, nil, nil},
		{"mutable fields", nil, func(s *spec) {
			s.Replicas = ptr.To[int32](5)
			s.Version = "v1.31.0"
			s.MachineTemplate.Spec.InfrastructureRef.Name = "u"
			s.MachineTemplate.ObjectMeta.Labels = map[string]string{"a.b/c": "d"}
			s.MachineTemplate.Spec.Deletion.NodeDrainTimeoutSeconds = ptr.To[int32](1)
			s.Rollout.After = metav1.Unix(1, 0)
			s.Remediation.MaxRetry = ptr.To[int32](1)
			k := &s.KubeadmConfigSpec
			k.Files = []bootstrapv1.File{{Path: "/x"}}
			k.NTP = bootstrapv1.NTP{Servers: []string{"a"}}
			k.ClusterConfiguration.APIServer.ExtraArgs = []bootstrapv1.Arg{{Name: "feature.gates", Value: ptr.To("x")}}
			k.InitConfiguration.Timeouts.ControlPlaneComponentHealthCheckSeconds = ptr.To[int32](1)
			k.JoinConfiguration.Timeouts.DiscoverySeconds = ptr.To[int32](1)
			k.ClusterConfiguration.FeatureGates = map[string]bool{"A": true}
			k.ClusterConfiguration.ImageRepository = "r"
			k.InitConfiguration.NodeRegistration.KubeletExtraArgs = []bootstrapv1.Arg{{Name: "v", Value: ptr.To("8")}}
			k.JoinConfiguration.ControlPlane = &bootstrapv1.JoinControlPlane{}
		}, nil},
		{"immutable fields", nil, func(s *spec) {
			c := &s.KubeadmConfigSpec.ClusterConfiguration
			c.ControlPlaneEndpoint, c.CertificatesDir = "b:1", "/c"
		}, []string{config + "clusterConfiguration.certificatesDir", config + "clusterConfiguration.controlPlaneEndpoint"}},
		{"a whole section is removed", nil, func(s *spec) {
			s.KubeadmConfigSpec.ClusterConfiguration = bootstrapv1.ClusterConfiguration{}
		}, []string{config + "clusterConfiguration"}},
		{"one minor version up", nil, version("v1.31.4"), nil},
		{"two minor versions up", nil, version("v1.32.0"), []string{"spec.version"}},
		{"down", nil, version("v1.29.0"), nil},
		{"a release with a defect", version("v1.18.0"), version("v1.19.0"), []string{"spec.version"}},
		{"images from a frozen registry", version("v1.23.0"), version("v1.24.8"), []string{"spec.version"}},
		{"images from the new registry", version("v1.23.0"), version("v1.24.9"), nil},
		{"images from a private registry", func(s *spec) {
			s.Version = "v1.23.0"
			s.KubeadmConfigSpec.ClusterConfiguration.ImageRepository = "r"
		}, func(s *spec) {
			s.Version = "v1.24.8"
			s.KubeadmConfigSpec.ClusterConfiguration.ImageRepository = "r"
		}, nil},
		{"external to local etcd", func(s *spec) {
			s.KubeadmConfigSpec.ClusterConfiguration.Etcd.External.CAFile = "ca"
		}, func(s *spec) {
			s.KubeadmConfigSpec.ClusterConfiguration.Etcd.Local.DataDir = "/d"
		}, []string{
			config + "clusterConfiguration.etcd.external", config + "clusterConfiguration.etcd.local",
		}},
		{"CoreDNS up", dns("v1.8.6"), dns("v1.9.3"), nil},
		{"CoreDNS down", dns("v1.9.3"), dns("v1.8.6"), []string{config + "clusterConfiguration.dns.imageTag"}},
		{"another build of CoreDNS", dns("v1.9.3"), dns("v1.9.3-a.1"), nil},
	}
	for _, tc := range cases {
		t.Run(tc.reason, func(t *testing.T) {
			_, err := controlPlanes{}.ValidateUpdate(t.Context(), valid(t, tc.before), valid(t, tc.after))
			if diff := cmp.Diff(tc.want, fields(t, err)); diff != "" {
				t.Errorf("%s: fields (-want +got):\n%s\n%v", tc.reason, diff, err)
			}
		})
	}
}

func TestScale(t *testing.T) {
	scheme := runtime.NewScheme()
	if err := controlplanev1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	reader := fake.NewClientBuilder().WithScheme(scheme).WithObjects(valid(t)).Build()
	for replicas, allowed := range map[int32]bool{0: false, 1: true, 2: false, 3: true} {
		raw, err := json.Marshal(&autoscalingv1.Scale{Spec: autoscalingv1.ScaleSpec{Replicas: replicas}})
		if err != nil {
			t.Fatal(err)
		}
		response := scales{reader: reader}.Handle(context.Background(), admission.Request{AdmissionRequest: admissionv1.AdmissionRequest{
			Namespace: "ns", Name: "cp", Object: runtime.RawExtension{Raw: raw},
		}})
		if response.Allowed != allowed {
			t.Errorf("scaling to %d: allowed %t, want %t: %v", replicas, response.Allowed, allowed, response.Result)
		}
	}
}

func TestTemplate(t *testing.T) {
	template := &controlplanev1.KubeadmControlPlaneTemplate{ObjectMeta: metav1.ObjectMeta{Name: "t"}}
	w := templates{gates: Gates{ClusterTopology: true}}
	if err := w.Default(t.Context(), template); err != nil {
		t.Fatal(err)
	}
	if _, err := w.ValidateCreate(t.Context(), template); err != nil {
		t.Errorf("a defaulted template is invalid: %v", err)
	}
	if _, err := (templates{}).ValidateCreate(t.Context(), template); err == nil || !strings.Contains(err.Error(), "ClusterTopology") {
		t.Errorf("without the feature gate: error %v", err)
	}
	undefaulted := &controlplanev1.KubeadmControlPlaneTemplate{ObjectMeta: metav1.ObjectMeta{Name: "t"}}
	if _, err := w.ValidateUpdate(t.Context(), undefaulted, template); err != nil {
		t.Errorf("defaults count as a change: %v", err)
	}
	changed := template.DeepCopy()
	changed.Spec.Template.ObjectMeta = clusterv1.ObjectMeta{Labels: map[string]string{"a": "b"}}
	if _, err := w.ValidateUpdate(t.Context(), template, changed); err != nil {
		t.Errorf("metadata cannot be changed: %v", err)
	}
	changed.Spec.Template.Spec.KubeadmConfigSpec.PreKubeadmCommands = []string{"true"}
	older, onlyOlder := &controlplanev1beta1.KubeadmControlPlaneTemplate{}, &controlplanev1.KubeadmControlPlaneTemplate{}
	testenv.Must(t, conversion.Shared().Convert(t.Context(), template, older))
	older.Spec.Template.Spec.KubeadmConfigSpec.UseExperimentalRetryJoin = true
	testenv.Must(t, conversion.Shared().Convert(t.Context(), older, onlyOlder))
	for reason, after := range map[string]*controlplanev1.KubeadmControlPlaneTemplate{"a changed spec": changed, "a field of v1beta1": onlyOlder} {
		_, err := w.ValidateUpdate(t.Context(), template, after)
		if diff := cmp.Diff([]string{"spec.template.spec"}, fields(t, err)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", reason, diff)
		}
	}
}
