package webhook

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	bootstrapv1 "sigs.k8s.io/cluster-api/api/bootstrap/v1beta2"
	controlplanev1 "sigs.k8s.io/cluster-api/api/controlplane/v1beta2"
)

// pinned sets the version of Kubernetes and the image tag of etcd, from text such as "v1.33.4 3.5.15-0".
func pinned(text string) edit {
	version, tag, _ := strings.Cut(text, " ")
	return func(s *controlplanev1.KubeadmControlPlaneSpec) {
		s.Version = version
		s.KubeadmConfigSpec.ClusterConfiguration.Etcd.Local.ImageTag = tag
	}
}

func TestEtcdVersionChange(t *testing.T) {
	const (
		field = "spec.kubeadmConfigSpec.clusterConfiguration.etcd.local.imageTag: "
		first = "first set this field to a tag of 3.5 from 3.5.20 on, such as 3.5.24-0, until all control plane Machines run it"
		flags = " cannot start etcd 3.5.24: it sets flags that etcd has since 3.6. Set a tag of 3.6, or remove the tag"
	)
	cases := []struct {
		reason        string
		before, after string
		want, warning string
	}{
		{reason: "the tag of an old etcd is replaced by one of 3.6", before: "v1.33.4 3.5.15-0", after: "v1.34.2 3.6.5-0",
			want: "Forbidden: etcd cannot be upgraded from 3.5.15 to 3.6, the version of tag 3.6.5-0: " + first},
		{reason: "the tag of an old etcd is removed", before: "v1.33.4 3.5.19-0", after: "v1.34.2 ",
			want: "Forbidden: etcd cannot be upgraded from 3.5.19 to 3.6, the default of kubeadm of v1.34.2: " + first},
		{reason: "etcd alone is upgraded over a minor version", before: "v1.33.4 3.4.13-0", after: "v1.33.4 3.6.5-0",
			want: "Forbidden: etcd cannot be upgraded from 3.4.13 to 3.6, the version of tag 3.6.5-0: " + first},
		{reason: "the first etcd that can be upgraded", before: "v1.33.4 3.5.20-0", after: "v1.34.2 3.6.5-0"},
		{reason: "its tag is removed", before: "v1.33.4 3.5.21-0", after: "v1.34.2 "},
		{reason: "what to do before", before: "v1.33.4 3.5.15-0", after: "v1.33.4 3.5.24-0"},
		{reason: "the tag is removed, and the version has etcd 3.5", before: "v1.32.4 3.5.15-0", after: "v1.33.4 "},
		{reason: "without tags", before: "v1.33.4 ", after: "v1.34.2 "},
		{reason: "the running etcd is unknown", before: "v1.33.4 ", after: "v1.34.2 3.6.5-0"},
		{reason: "kubeadm v1.34 and v1.35 can start an old etcd", before: "v1.33.4 3.5.15-0", after: "v1.34.2 3.5.15-0",
			warning: "etcd 3.5.15 cannot be upgraded to the default of kubeadm of v1.34.2: " + first},
		{reason: "kubeadm v1.35 can start etcd 3.5", before: "v1.34.2 3.5.24-0", after: "v1.35.0 3.5.24-0"},
		{reason: "kubeadm v1.36 cannot", before: "v1.35.0 3.5.24-0", after: "v1.36.0 3.5.24-0", want: "Forbidden: kubeadm of v1.36.0" + flags},
		{reason: "nor can later ones", before: "v1.36.0 3.6.8-0", after: "v1.37.0 3.5.24-0", want: "Forbidden: kubeadm of v1.37.0" + flags,
			warning: "members with etcd 3.5 can join those with 3.6 only after the command etcdctl downgrade enable 3.5"},
		{reason: "both are upgraded", before: "v1.35.0 3.5.24-0", after: "v1.36.0 3.6.8-0"},
		{reason: "a downgrade within a minor version", before: "v1.33.4 3.5.24-0", after: "v1.33.4 3.5.15-0"},
		{reason: "a downgrade to another minor version", before: "v1.34.2 ", after: "v1.34.2 3.5.24-0",
			warning: "members with etcd 3.5 can join those with 3.6 only after the command etcdctl downgrade enable 3.5"},
		{reason: "custom tags are accepted", before: "v1.33.4 stable", after: "v1.36.0 old"},
		{reason: "a custom tag instead of an old etcd", before: "v1.33.4 3.5.15-0", after: "v1.34.2 ours"},
		{reason: "what is stored and does not change is accepted", before: "v1.36.0 3.5.15-0", after: "v1.36.0 3.5.15-0"},
	}
	for _, tc := range cases {
		t.Run(tc.reason, func(t *testing.T) {
			before, after := valid(t, pinned(tc.before)), valid(t, pinned(tc.after))
			got := ""
			for _, err := range validateEtcdVersionChange(before, after) {
				got += err.Error()
			}
			want := tc.want
			if want != "" {
				want = field + want
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("errors (-want +got):\n%s", diff)
			}
			warning := tc.warning
			if warning != "" {
				warning = field + warning
			}
			if diff := cmp.Diff(warning, strings.Join(warnOfEtcdVersion(before, after), "; ")); diff != "" {
				t.Errorf("warnings (-want +got):\n%s", diff)
			}
		})
	}
}

func TestTheWebhookValidatesChangesOfEtcd(t *testing.T) {
	const path = "spec.kubeadmConfigSpec.clusterConfiguration.etcd.local.imageTag"
	before := valid(t, pinned("v1.33.4 3.5.15-0"))
	_, err := controlPlanes{}.ValidateUpdate(t.Context(), before, valid(t, pinned("v1.34.2 3.6.5-0")))
	if diff := cmp.Diff([]string{path}, fields(t, err)); diff != "" {
		t.Errorf("fields (-want +got):\n%s\n%v", diff, err)
	}
	warnings, err := controlPlanes{}.ValidateUpdate(t.Context(), before, valid(t, pinned("v1.34.2 3.5.15-0")))
	if len(warnings) != 1 || err != nil {
		t.Errorf("warnings %q, error %v", warnings, err)
	}
	external := func(version string) edit {
		return func(s *controlplanev1.KubeadmControlPlaneSpec) {
			s.Version = version
			s.KubeadmConfigSpec.ClusterConfiguration.Etcd.External = bootstrapv1.ExternalEtcd{Endpoints: []string{"https://e"}}
		}
	}
	if warnings, err := (controlPlanes{}).ValidateUpdate(t.Context(), valid(t, external("v1.33.4")), valid(t, external("v1.34.2"))); warnings != nil || err != nil {
		t.Errorf("external etcd: warnings %q, error %v", warnings, err)
	}
	patched := func(version string) edit {
		return func(s *controlplanev1.KubeadmControlPlaneSpec) {
			pinned(version + " 3.5.24-0")(s)
			s.KubeadmConfigSpec.JoinConfiguration.Patches.Directory = "/etc/kubernetes/patches"
		}
	}
	if _, err := (controlPlanes{}).ValidateUpdate(t.Context(), valid(t, patched("v1.35.0")), valid(t, patched("v1.36.0"))); err != nil {
		t.Errorf("patches that may replace the flags of etcd: %v", err)
	}
	if _, err := (controlPlanes{}).ValidateCreate(t.Context(), valid(t, pinned("v1.36.0 3.5.15-0"))); err != nil {
		t.Errorf("a control plane that is moved here: %v", err)
	}
}
