package kubeadm

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"

	bootstrapv1beta1 "sigs.k8s.io/cluster-api/api/bootstrap/v1beta1"
	bootstrapv1 "sigs.k8s.io/cluster-api/api/bootstrap/v1beta2"
)

func TestValidateConfigSpec(t *testing.T) {
	secret := bootstrapv1.FileSource{Secret: bootstrapv1.SecretFileSource{Name: "s", Key: "k"}}
	// What is not in the objects of v1beta2 does not count as set.
	incomplete := bootstrapv1.FileSource{Secret: bootstrapv1.SecretFileSource{Key: "k"}}
	nameless := bootstrapv1.PasswdSource{Secret: bootstrapv1.SecretPasswdSource{Key: "k"}}
	cases := map[string]struct {
		reason   string
		spec     bootstrapv1.KubeadmConfigSpec
		ignition bool
		want     []string
	}{
		"Empty": {reason: "an empty spec is valid"},
		"Files": {
			reason: "a file has one source and a path of its own",
			spec: bootstrapv1.KubeadmConfigSpec{Files: []bootstrapv1.File{
				{Path: "/a", Content: "x", ContentFrom: secret}, {Path: "/a", ContentFrom: incomplete},
				{Path: "/b", ContentFrom: bootstrapv1.FileSource{Secret: bootstrapv1.SecretFileSource{Name: "s"}}},
			}},
			want: []string{"spec.files[0]", "spec.files[1].contentFrom.secret.name", "spec.files[1].path", "spec.files[2].contentFrom.secret.key"},
		},
		"Templates": {
			reason: "content with the format Template is a Go template; other content may be anything",
			spec: bootstrapv1.KubeadmConfigSpec{Files: []bootstrapv1.File{
				{Path: "/a", Content: "{{ .controlPlane.version }}", ContentFormat: bootstrapv1.FileContentFormatTemplate},
				{Path: "/b", Content: "{{ broken", ContentFormat: bootstrapv1.FileContentFormatTemplate},
				{Path: "/c", Content: "{{ broken", ContentFormat: bootstrapv1.FileContentFormatRaw}, {Path: "/d", Content: "{{ broken"},
				{Path: "/e", ContentFrom: secret, ContentFormat: bootstrapv1.FileContentFormatTemplate},
			}},
			want: []string{"spec.files[1].content"},
		},
		"Users": {
			reason: "a password has one source",
			spec: bootstrapv1.KubeadmConfigSpec{Users: []bootstrapv1.User{
				{Name: "u", Passwd: "x", PasswdFrom: nameless},
				{Name: "v", PasswdFrom: bootstrapv1.PasswdSource{Secret: bootstrapv1.SecretPasswdSource{Name: "s"}}},
			}},
			want: []string{"spec.users[0]", "spec.users[0].passwdFrom.secret.name", "spec.users[1].passwdFrom.secret.key"},
		},
		"Partitions": {
			reason: "partitions fit on their device, and a device has one layout",
			spec: bootstrapv1.KubeadmConfigSpec{DiskSetup: bootstrapv1.DiskSetup{Partitions: []bootstrapv1.Partition{
				{Device: "/dev/a", DiskLayout: []bootstrapv1.PartitionSpec{{Percentage: 50}, {Percentage: 50}}},
				{Device: "/dev/b", DiskLayout: []bootstrapv1.PartitionSpec{{Percentage: 50}, {Percentage: 51}}},
				{Device: "/dev/c", Layout: ptr.To(false), DiskLayout: []bootstrapv1.PartitionSpec{{Percentage: 50}}},
			}}},
			want: []string{"spec.diskSetup.partitions[1].diskLayout", "spec.diskSetup.partitions[2]"},
		},
		"Validity": {
			reason: "certificates are not valid for longer than their CA",
			spec: bootstrapv1.KubeadmConfigSpec{ClusterConfiguration: bootstrapv1.ClusterConfiguration{
				CertificateValidityPeriodDays: 91, CACertificateValidityPeriodDays: 90}},
			want: []string{"spec.clusterConfiguration.certificateValidityPeriodDays"},
		},
		"ValidityOfTheCA": {
			reason: "the default of CAs is ten years",
			spec:   bootstrapv1.KubeadmConfigSpec{ClusterConfiguration: bootstrapv1.ClusterConfiguration{CertificateValidityPeriodDays: 1095}},
		},
		"IgnitionOff": {
			reason: "ignition needs its gate",
			spec: bootstrapv1.KubeadmConfigSpec{Format: bootstrapv1.Ignition, Ignition: bootstrapv1.IgnitionSpec{
				ContainerLinuxConfig: bootstrapv1.ContainerLinuxConfig{AdditionalConfig: "x"}}},
			want: []string{"spec.format", "spec.ignition"},
		},
		"IgnitionOn": {
			reason: "what ignition cannot express is refused", ignition: true,
			spec: bootstrapv1.KubeadmConfigSpec{
				Format:       bootstrapv1.Ignition,
				BootCommands: []string{"true"},
				Users:        []bootstrapv1.User{{Name: "u", Inactive: ptr.To(true)}},
				Files:        []bootstrapv1.File{{Path: "/a", Encoding: bootstrapv1.Gzip}},
				DiskSetup:    bootstrapv1.DiskSetup{Partitions: []bootstrapv1.Partition{{TableType: "mbr"}}, Filesystems: []bootstrapv1.Filesystem{{Partition: "1"}}},
			},
			want: []string{"spec.users[0].inactive", "spec.bootCommands", "spec.files[0].encoding",
				"spec.diskSetup.partitions[0].tableType", "spec.diskSetup.filesystems[0].partition"},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			var got []string
			for _, err := range ValidateConfigSpec(nil, &tc.spec, field.NewPath("spec"), tc.ignition) {
				got = append(got, err.Field)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s\n-want +got:\n%s", tc.reason, diff)
			}
		})
	}
}

// Clients of v1beta1 get errors and defaults for what v1beta2 does not have.
func TestOlderConfigSpec(t *testing.T) {
	older := &bootstrapv1beta1.KubeadmConfigSpec{Format: bootstrapv1beta1.Ignition, UseExperimentalRetryJoin: true}
	for ignition, want := range map[bool]int{true: 1, false: 0} {
		if errs := ValidateOlderConfigSpec(older, field.NewPath("spec"), ignition); len(errs) != want {
			t.Errorf("ignition %t: %v", ignition, errs)
		}
	}
	older.Format = bootstrapv1beta1.CloudConfig
	older.Files = []bootstrapv1beta1.File{{Path: "/a"}, {Path: "/b", ContentFrom: &bootstrapv1beta1.FileSource{}}}
	older.Users = []bootstrapv1beta1.User{{Name: "u", PasswdFrom: &bootstrapv1beta1.PasswdSource{}}}
	var fields []string
	for _, err := range ValidateOlderConfigSpec(older, field.NewPath("spec"), true) {
		fields = append(fields, err.Field)
	}
	want := []string{"spec.files[1].contentFrom.secret.name", "spec.files[1].contentFrom.secret.key",
		"spec.users[0].passwdFrom.secret.name", "spec.users[0].passwdFrom.secret.key"}
	if diff := cmp.Diff(want, fields); diff != "" {
		t.Errorf("sources without name and key, -want +got:\n%s", diff)
	}
	older.Files, older.Users = nil, nil
	if errs := ValidateOlderConfigSpec(older, field.NewPath("spec"), true); len(errs) > 0 {
		t.Errorf("cloud-config: %v", errs)
	}

	older.JoinConfiguration = &bootstrapv1beta1.JoinConfiguration{}
	var got, defaulted bootstrapv1.KubeadmConfigSpec
	defaulted.JoinConfiguration.NodeRegistration.ImagePullPolicy = "IfNotPresent"
	DefaultOlderConfigSpec(&got, older)
	if diff := cmp.Diff(defaulted, got); diff != "" {
		t.Errorf("a configuration without fields is one, -want +got:\n%s", diff)
	}
}

// A configuration that has only timeouts is none for clients of v1beta1, who have them elsewhere.
func TestDefaultConfigSpecWithTimeouts(t *testing.T) {
	spec := bootstrapv1.KubeadmConfigSpec{}
	spec.InitConfiguration.Timeouts.ControlPlaneComponentHealthCheckSeconds = ptr.To[int32](1)
	spec.JoinConfiguration.SkipPhases = []string{"x"}
	want := *spec.DeepCopy()
	want.Format = bootstrapv1.CloudConfig
	want.JoinConfiguration.NodeRegistration.ImagePullPolicy = "IfNotPresent"
	DefaultConfigSpec(&spec)
	if diff := cmp.Diff(want, spec); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}
