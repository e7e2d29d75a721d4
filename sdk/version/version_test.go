package version

import (
	"runtime"
	"runtime/debug"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestComplete(t *testing.T) {
	platform := runtime.GOOS + "/" + runtime.GOARCH
	tests := map[string]struct {
		reason  string
		stamped Info
		build   *debug.BuildInfo
		want    Info
	}{
		"Stamped": {
			reason:  "What the linker stamped wins over what the toolchain embedded.",
			stamped: Info{GitVersion: "v1.7.2", GitCommit: "abc", GitTreeState: "clean", BuildDate: "2024-01-01T00:00:00Z"},
			build: &debug.BuildInfo{
				Main:     debug.Module{Version: "v1.0.0"},
				Settings: []debug.BuildSetting{{Key: "vcs.revision", Value: "def"}, {Key: "vcs.modified", Value: "true"}},
			},
			want: Info{
				Major: "1", Minor: "7", GitVersion: "v1.7.2", GitCommit: "abc", GitTreeState: "clean",
				BuildDate: "2024-01-01T00:00:00Z",
			},
		},
		"FromBuildInfo": {
			reason: "An unstamped build in a repository takes version, commit, date and tree state from the toolchain.",
			build: &debug.BuildInfo{
				Main: debug.Module{Version: "v1.8.0+dirty"},
				Settings: []debug.BuildSetting{
					{Key: "vcs.revision", Value: "def"},
					{Key: "vcs.time", Value: "2024-02-02T00:00:00Z"},
					{Key: "vcs.modified", Value: "true"},
				},
			},
			want: Info{
				Major: "1", Minor: "8", GitVersion: "v1.8.0", GitCommit: "def", GitTreeState: "dirty",
				BuildDate: "2024-02-02T00:00:00Z",
			},
		},
		"Nothing": {
			reason: "A build that knows nothing about itself still has a version that parses.",
			build:  &debug.BuildInfo{Main: debug.Module{Version: "(devel)"}},
			want:   Info{Major: "0", Minor: "0", GitVersion: develVersion},
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			tc.want.GoVersion, tc.want.Compiler, tc.want.Platform = runtime.Version(), runtime.Compiler, platform
			if diff := cmp.Diff(tc.want, complete(tc.stamped, tc.build)); diff != "" {
				t.Errorf("%s\ncomplete(): -want +got:\n%s", tc.reason, diff)
			}
		})
	}
}

func TestSentence(t *testing.T) {
	for _, tc := range []struct {
		reason string
		info   Info
		want   string
	}{
		{"a release", Info{GitVersion: "v2.0.0", GitCommit: "0123456789abcdef", GoVersion: "go1.26", Platform: "linux/amd64"}, "capi v2.0.0 (commit 0123456789ab, go1.26, linux/amd64)"},
		{"an unknown commit is left out", Info{GitVersion: "v2.0.0", GoVersion: "go1.26", Platform: "linux/amd64"}, "capi v2.0.0 (go1.26, linux/amd64)"},
		{
			"a build of a changed checkout", Info{GitVersion: "v2.0.0", GitCommit: "abc", GitTreeState: "dirty", GoVersion: "go1.26", Platform: "linux/amd64"},
			"capi v2.0.0 (commit abc, go1.26, linux/amd64, with changes that are not committed)",
		},
	} {
		if got := tc.info.Sentence("capi"); got != tc.want {
			t.Errorf("%s: %q, want %q", tc.reason, got, tc.want)
		}
	}
}
