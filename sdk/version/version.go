// Package version describes the running build of this project.
//
// Versions of providers, of Kubernetes or of releases that
// could be installed do not belong here.
package version

import (
	"fmt"
	"runtime"
	"runtime/debug"
	"strings"

	"github.com/blang/semver/v4"
)

// Set by the linker (-ldflags "-X sigs.k8s.io/cluster-api/sdk/version.gitVersion=v1.7.0 ...").
// Empty values are derived from the build information that the Go toolchain embeds.
var (
	gitMajor     string
	gitMinor     string
	gitVersion   string
	gitCommit    string
	gitTreeState string
	buildDate    string
	goProxy      string
	releases     string
	localConfig  string
)

// develVersion is the version of a build without stamps and without a module version.
const develVersion = "v0.0.0-devel"

// Info describes a build. The names are those that `clusterctl version` prints.
type Info struct {
	Major        string `json:"major,omitempty"`
	Minor        string `json:"minor,omitempty"`
	GitVersion   string `json:"gitVersion,omitempty"`
	GitCommit    string `json:"gitCommit,omitempty"`
	GitTreeState string `json:"gitTreeState,omitempty"`
	BuildDate    string `json:"buildDate,omitempty"`
	GoVersion    string `json:"goVersion,omitempty"`
	Compiler     string `json:"compiler,omitempty"`
	Platform     string `json:"platform,omitempty"`
}

// Get returns the running binary's Info: linker-stamped values first, the toolchain's build information for the rest.
func Get() Info {
	stamped := Info{
		Major: gitMajor, Minor: gitMinor, GitVersion: gitVersion, GitCommit: gitCommit,
		GitTreeState: gitTreeState, BuildDate: buildDate,
	}
	build, _ := debug.ReadBuildInfo()
	return complete(stamped, build)
}

// GoProxy returns the module proxy to use if the user's GOPROXY is empty (usually the output
// of `go env GOPROXY` at build time), or "" when none was stamped.
func GoProxy() string {
	return goProxy
}

// DefaultReleases is the address of this project's releases.
const DefaultReleases = "https://github.com/kubernetes-sigs/cluster-api/releases"

// Releases returns the address of the releases that this build belongs to: DefaultReleases, unless another one was stamped.
func Releases() string {
	return orDefault(releases, DefaultReleases)
}

// LocalConfig returns where clusterctl finds the configuration of the repository that was built with it, relative to the folder of the
// program. It is "" in releases.
func LocalConfig() string {
	return localConfig
}

// String returns the git version.
func (i Info) String() string {
	return i.GitVersion
}

// Sentence describes a build of a program in one line, without what is unknown.
func (i Info) Sentence(program string) string {
	details := []string{i.GoVersion, i.Platform}
	if i.GitCommit != "" {
		details = append([]string{"commit " + i.GitCommit[:min(len(i.GitCommit), 12)]}, details...)
	}
	if i.GitTreeState == "dirty" {
		details = append(details, "with changes that are not committed")
	}
	return fmt.Sprintf("%s %s (%s)", program, i.GitVersion, strings.Join(details, ", "))
}

// UserAgent returns the user agent of a program: name/version (os/arch).
func (i Info) UserAgent(program string) string {
	return fmt.Sprintf("%s/%s (%s)", program, i.GitVersion, i.Platform)
}

func complete(i Info, build *debug.BuildInfo) Info {
	i.GoVersion = runtime.Version()
	i.Compiler = runtime.Compiler
	i.Platform = runtime.GOOS + "/" + runtime.GOARCH
	if build != nil {
		i = fromBuild(i, build)
	}
	if i.GitVersion == "" {
		i.GitVersion = develVersion
	}
	if v, err := semver.ParseTolerant(i.GitVersion); err == nil {
		i.Major = orDefault(i.Major, fmt.Sprint(v.Major))
		i.Minor = orDefault(i.Minor, fmt.Sprint(v.Minor))
	}
	return i
}

func fromBuild(i Info, build *debug.BuildInfo) Info {
	if v := build.Main.Version; v != "" && v != "(devel)" {
		i.GitVersion = orDefault(i.GitVersion, strings.TrimSuffix(v, "+dirty"))
	}
	for _, s := range build.Settings {
		switch s.Key {
		case "vcs.revision":
			i.GitCommit = orDefault(i.GitCommit, s.Value)
		case "vcs.time":
			i.BuildDate = orDefault(i.BuildDate, s.Value)
		case "vcs.modified":
			i.GitTreeState = orDefault(i.GitTreeState, map[string]string{"true": "dirty", "false": "clean"}[s.Value])
		}
	}
	return i
}

func orDefault(value, fallback string) string {
	if value != "" {
		return value
	}
	return fallback
}
