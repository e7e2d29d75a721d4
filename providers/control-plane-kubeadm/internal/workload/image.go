package workload

import (
	"fmt"
	"strings"

	"github.com/blang/semver/v4"
	"github.com/distribution/reference"

	bootstrapv1 "sigs.k8s.io/cluster-api/api/bootstrap/v1beta2"
)

const (
	// frozenRegistry is the registry of Kubernetes until 2023. All of its images are in newRegistry, too.
	frozenRegistry = "k8s.gcr.io"
	newRegistry    = "registry.k8s.io"
)

// image is a reference to a container image with a tag, "<repository>/<name>:<tag>".
type image struct {
	// repository is the path without its last part, which may leave nothing.
	repository, name, tag string
}

func parseImage(text string) (image, error) {
	parsed, err := reference.Parse(text)
	if err != nil {
		return image{}, fmt.Errorf("cannot parse image %q: %w", text, err)
	}
	named, ok := parsed.(reference.Named)
	if !ok {
		return image{}, fmt.Errorf("image %q has no name", text)
	}
	tagged, ok := parsed.(reference.Tagged)
	if !ok {
		return image{}, fmt.Errorf("image %q has no tag, so its version is unknown", text)
	}
	path := named.Name()
	at := strings.LastIndex(path, "/")
	return image{repository: path[:max(at, 0)], name: path[at+1:], tag: tagged.Tag()}, nil
}

// String returns the reference to the image, without a digest.
func (i image) String() string {
	name := i.name + ":" + i.tag
	if i.repository == "" {
		return name
	}
	return i.repository + "/" + name
}

// current returns the repository, moved to the new registry if it is in the frozen one.
func current(repository string) string {
	if rest, frozen := strings.CutPrefix(repository, frozenRegistry); frozen && (rest == "" || rest[0] == '/') {
		return newRegistry + rest
	}
	return repository
}

// tagVersion returns the version at the beginning of a tag, such as "v1.11.1", "1.8.6_vmware.5" or "v1.9.3-eksbuild.2".
func tagVersion(tag string) (semver.Version, error) {
	core := strings.TrimPrefix(tag, "v")
	if at := strings.IndexFunc(core, func(r rune) bool { return r != '.' && (r < '0' || r > '9') }); at >= 0 {
		core = core[:at]
	}
	version, err := semver.Parse(core)
	if err != nil {
		return semver.Version{}, fmt.Errorf("image tag %q must begin with a version, such as v1.11.1", tag)
	}
	return version, nil
}

// dnsRepository returns the repository of the CoreDNS image for a version, according to the rules of kubeadm. Without any
// setting it does not change, unless its registry is frozen.
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
