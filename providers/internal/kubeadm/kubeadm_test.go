package kubeadm

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"

	bootstrapv1 "sigs.k8s.io/cluster-api/api/bootstrap/v1beta1"
)

func TestValidateConfigSpec(t *testing.T) {
	secret := &bootstrapv1.FileSource{Secret: bootstrapv1.SecretFileSource{Name: "s", Key: "k"}}
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
				{Path: "/a", Content: "x", ContentFrom: secret}, {Path: "/a", ContentFrom: &bootstrapv1.FileSource{}},
			}},
			want: []string{"spec.files[0]", "spec.files[1].contentFrom.secret.name", "spec.files[1].contentFrom.secret.key", "spec.files[1].path"},
		},
		"Users": {
			reason: "a password has one source",
			spec:   bootstrapv1.KubeadmConfigSpec{Users: []bootstrapv1.User{{Name: "u", Passwd: ptr.To("x"), PasswdFrom: &bootstrapv1.PasswdSource{}}}},
			want:   []string{"spec.users[0]", "spec.users[0].passwdFrom.secret.name", "spec.users[0].passwdFrom.secret.key"},
		},
		"IgnitionOff": {
			reason: "ignition needs its gate",
			spec:   bootstrapv1.KubeadmConfigSpec{Format: bootstrapv1.Ignition, Ignition: &bootstrapv1.IgnitionSpec{}},
			want:   []string{"spec.format", "spec.ignition"},
		},
		"IgnitionOn": {
			reason: "what ignition cannot express is refused", ignition: true,
			spec: bootstrapv1.KubeadmConfigSpec{
				Format: bootstrapv1.Ignition, UseExperimentalRetryJoin: true,
				Users:     []bootstrapv1.User{{Name: "u", Inactive: ptr.To(true)}},
				Files:     []bootstrapv1.File{{Path: "/a", Encoding: bootstrapv1.Gzip}},
				DiskSetup: &bootstrapv1.DiskSetup{Partitions: []bootstrapv1.Partition{{TableType: ptr.To("mbr")}}, Filesystems: []bootstrapv1.Filesystem{{Partition: ptr.To("1")}}},
			},
			want: []string{"spec.users[0].inactive", "spec.useExperimentalRetryJoin", "spec.files[0].encoding",
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
