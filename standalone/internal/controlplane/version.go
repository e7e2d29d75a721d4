package controlplane

import (
	"runtime/debug"
	"strings"

	apimachineryversion "k8s.io/apimachinery/pkg/version"
	"k8s.io/component-base/compatibility"
	"k8s.io/component-base/version"
)

// Version is the Kubernetes version that the API server reports, such as "v1.36.3".
//
// A build that stamps k8s.io/component-base/version (see ldflags.sh) sets it; a plain `go build` uses the version of the
// k8s.io/kubernetes module it was built from. Without either it would be v0.0.0, which clients reject.
func Version() string {
	stamped := version.Get().GitVersion
	if !strings.HasPrefix(stamped, "v0.0.0") {
		return stamped
	}
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, module := range info.Deps {
			if module.Path == "k8s.io/kubernetes" {
				return module.Version
			}
		}
	}
	return "v" + version.DefaultKubeBinaryVersion + ".0"
}

// reported is an effective version whose git version is never the placeholder of unstamped builds.
type reported struct {
	compatibility.EffectiveVersion
}

// Info implements compatibility.EffectiveVersion; the API server serves it at /version.
func (r reported) Info() *apimachineryversion.Info {
	info := r.EffectiveVersion.Info()
	if info == nil {
		return nil
	}
	out := *info
	out.GitVersion = Version()
	if strings.Contains(out.GitCommit, "$Format") {
		out.GitCommit = ""
	}
	return &out
}
