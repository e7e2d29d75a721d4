package check

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/util/validation/field"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
)

func TestClassVersions(t *testing.T) {
	for _, tt := range []struct {
		reason   string
		versions []string
		want     []string
	}{
		{reason: "none"},
		{reason: "several of a minor version, and build metadata", versions: []string{"v1.30.0", "v1.30.4+a.1", "v1.30.4+a.2", "v1.31.0-rc.1", "v1.31.0"}},
		{reason: "no leading v", versions: []string{"1.30.0", "v1.31.0"},
			want: []string{`versions[0]: Invalid value: "1.30.0": must be a semantic version with a leading "v", such as v1.30.2`}},
		{reason: "descending", versions: []string{"v1.31.0", "v1.30.0"},
			want: []string{`versions[1]: Invalid value: "v1.30.0": must be higher than v1.31.0, which is before it`}},
		{reason: "twice", versions: []string{"v1.31.0", "v1.31.0"},
			want: []string{`versions[1]: Invalid value: "v1.31.0": must be higher than v1.31.0, which is before it`}},
		{reason: "a gap", versions: []string{"v1.30.0", "v1.30.2", "v1.32.0"},
			want: []string{`versions[2]: Invalid value: "v1.32.0": must not skip a minor version: add one of v1.31 after v1.30.2`}},
		{reason: "another major version", versions: []string{"v1.30.0", "v2.0.0"},
			want: []string{`versions[1]: Invalid value: "v2.0.0": must not skip a minor version: add one of v1.31 after v1.30.0`}},
	} {
		if diff := cmp.Diff(tt.want, texts(classVersions(tt.versions, field.NewPath("versions")))); diff != "" {
			t.Errorf("%s (-want +got):\n%s", tt.reason, diff)
		}
	}
}

// TestRemovedVersions is about Clusters whose version a class no longer lists: they could not be validated, nor planned.
func TestRemovedVersions(t *testing.T) {
	clusters := parseYAML[[]clusterv1.Cluster](t, `
- {metadata: {name: b}, spec: {topology: {classRef: {name: class}, version: v1.31.0}}}
- {metadata: {name: a}, spec: {topology: {classRef: {name: class}, version: v1.30.0}}}
- {metadata: {name: no-topology}}
- {metadata: {name: pinned}, spec: {topology: {classRef: {name: class}, version: v1.31.0, workers: {machinePools: [{class: p, name: p, version: v1.28.0}]}}}}
`)
	for _, tt := range []struct {
		reason    string
		was, is   []string
		reads     bool
		forbidden string
	}{
		{reason: "a version is added", was: []string{"v1.30.0", "v1.31.0"}, is: []string{"v1.30.0", "v1.31.0", "v1.32.0"}},
		{reason: "a version that no Cluster has", was: []string{"v1.29.0", "v1.30.0", "v1.31.0"}, is: []string{"v1.30.0", "v1.31.0"}, reads: true},
		{reason: "a version in use", was: []string{"v1.30.0", "v1.31.0"}, is: []string{"v1.31.0"}, reads: true, forbidden: "a"},
		{reason: "a version that pinned workers have", was: []string{"v1.28.0", "v1.30.0", "v1.31.0"}, is: []string{"v1.30.0", "v1.31.0"}, reads: true, forbidden: "pinned"},
		{reason: "the first list must have all versions in use", is: []string{"v1.32.0"}, reads: true, forbidden: "a, b, pinned"},
		{reason: "without a list, all versions are possible", was: []string{"v1.30.0"}, reads: true},
		{reason: "versions that were not listed before do not hold up other changes", was: []string{"v1.31.0", "v1.32.0"}, is: []string{"v1.31.0"}, reads: true},
	} {
		old, current := &clusterv1.ClusterClass{}, &clusterv1.ClusterClass{}
		old.Spec.KubernetesVersions, current.Spec.KubernetesVersions = tt.was, tt.is
		var want []string
		if tt.forbidden != "" {
			want = []string{"spec.kubernetesVersions: Forbidden: must have the versions of all Clusters of the class: those of " + tt.forbidden + " are missing"}
		}
		if diff := cmp.Diff(want, texts(Removals(old, current, clusters))); diff != "" || Removes(old, current) != tt.reads {
			t.Errorf("%s: removes %v, want %v (-want +got):\n%s", tt.reason, Removes(old, current), tt.reads, diff)
		}
	}
}

// TestVersionsUnderway is about Clusters that are being upgraded by several minor versions, along those that their class lists.
func TestVersionsUnderway(t *testing.T) {
	clusters := parseYAML[[]clusterv1.Cluster](t, `
- {metadata: {name: two}, spec: {topology: {classRef: {name: class}, version: v1.33.0}},
   status: {controlPlane: {upgradePlan: [{version: v1.32.4}, {version: v1.33.0}]}}}
- {metadata: {name: one}, spec: {topology: {classRef: {name: class}, version: v1.33.0}}, status: {controlPlane: {upgradePlan: [{version: v1.33.0}]}}}
- {metadata: {name: none}, spec: {topology: {classRef: {name: class}, version: v1.33.0}}, status: {controlPlane: {}}}
- {metadata: {name: unlisted}, spec: {topology: {classRef: {name: class}, version: v1.40.0}}, status: {controlPlane: {upgradePlan: [{version: v1.40.0}]}}}
`)
	for _, tt := range []struct {
		reason    string
		is        []string
		extension string
		want      bool
	}{
		{reason: "a version that all have passed", is: []string{"v1.32.4", "v1.33.0"}},
		{reason: "another version of the minor version", is: []string{"v1.31.0", "v1.32.0", "v1.33.0"}},
		{reason: "a minor version that one has yet to pass", is: []string{"v1.33.0"}, want: true},
		{reason: "the list, which one needs for two more steps", want: true},
		{reason: "an extension chooses the versions", is: []string{"v1.33.0"}, extension: "plan.example"},
	} {
		old, current := &clusterv1.ClusterClass{}, &clusterv1.ClusterClass{}
		old.Spec.KubernetesVersions, current.Spec.KubernetesVersions = []string{"v1.31.0", "v1.32.0", "v1.32.4", "v1.33.0"}, tt.is
		current.Spec.Upgrade.External.GenerateUpgradePlanExtension = tt.extension
		var want []string
		if tt.want {
			want = []string{"spec.kubernetesVersions: Forbidden: must keep a version of each minor version that Clusters which are being upgraded have yet to pass: two"}
		}
		if diff := cmp.Diff(want, texts(Removals(old, current, clusters))); diff != "" || !Removes(old, current) {
			t.Errorf("%s: removes %t (-want +got):\n%s", tt.reason, Removes(old, current), diff)
		}
	}
}
