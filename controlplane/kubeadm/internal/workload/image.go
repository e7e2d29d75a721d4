package workload

import (
	"fmt"
	"strings"

	"github.com/blang/semver/v4"
	"github.com/distribution/reference"

	bootstrapv1 "sigs.k8s.io/cluster-api/api/bootstrap/v1beta1"
)

const (
	// frozenRegistry is where Kubernetes published its images until 2023, newRegistry where all of them are now.
	frozenRegistry = "k8s.gcr.io"
	newRegistry    = "registry.k8s.io"
)

// image is a reference to a container image with a tag, "<repository>/<name>:<tag>".
type image struct {
	// repository is without the last part of the path, empty if there is none before it.
	repository, name, tag string
}

func parseImage(text string) (image, error) {
	parsed, err := reference.Parse(text)
	if err != nil {
		return image{}, fmt.Errorf("image %q cannot be parsed: %w", text, err)
	}
	named, ok := parsed.(reference.Named)
	if !ok {
		return image{}, fmt.Errorf("image %q has no name", text)
	}
	tagged, ok := parsed.(reference.Tagged)
	if !ok {
		return image{}, fmt.Errorf("image %q has no tag, so its version is not known", text)
	}
	path := named.Name()
	at := strings.LastIndex(path, "/")
	return image{repository: path[:max(at, 0)], name: path[at+1:], tag: tagged.Tag()}, nil
}

// String is the image without digest: that belonged to the tag it came with.
func (i image) String() string {
	name := i.name + ":" + i.tag
	if i.repository == "" {
		return name
	}
	return i.repository + "/" + name
}

// current is where images are of a repository that may be in the frozen registry.
func current(repository string) string {
	if rest, frozen := strings.CutPrefix(repository, frozenRegistry); frozen && (rest == "" || rest[0] == '/') {
		return newRegistry + rest
	}
	return repository
}

// tagVersion is the version that a tag begins with: "v1.11.1", "1.8.6_vmware.5" and "v1.9.3-eksbuild.2" have one.
func tagVersion(tag string) (semver.Version, error) {
	core := strings.TrimPrefix(tag, "v")
	if at := strings.IndexFunc(core, func(r rune) bool { return r != '.' && (r < '0' || r > '9') }); at >= 0 {
		core = core[:at]
	}
	version, err := semver.Parse(core)
	if err != nil {
		return semver.Version{}, fmt.Errorf("image tag %q does not begin with a version, such as v1.11.1", tag)
	}
	return version, nil
}

// dnsRepository is where CoreDNS' image of a version is, by the rules of kubeadm. Without any setting it stays where it
// is, unless that registry is frozen.
func dnsRepository(was string, version semver.Version, config *bootstrapv1.ClusterConfiguration) string {
	if config.DNS.ImageRepository != "" {
		return strings.TrimSuffix(config.DNS.ImageRepository, "/")
	}
	repository := strings.TrimSuffix(config.ImageRepository, "/")
	if repository == "" {
		repository = current(was)
	}
	nested := version.GTE(semver.Version{Major: 1, Minor: 8})
	if nested && (repository == newRegistry || repository == frozenRegistry) {
		return repository + "/coredns"
	}
	return repository
}
