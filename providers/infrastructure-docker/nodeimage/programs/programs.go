// Package programs describes the programs of node images that are built from Go modules.
//
// Their own source is in folders that the go command ignores: it needs Kubernetes and CoreDNS, in the version of an image,
// which the module of this package does not require.
package programs

import (
	"embed"
	"fmt"
	"io/fs"
	"strings"

	"golang.org/x/mod/module"
	"golang.org/x/mod/semver"

	"sigs.k8s.io/cluster-api/providers/infrastructure-docker/nodeimage/internal/golang"
)

// MinKubernetes is the lowest minor version of Kubernetes that the files of node images are made for: its kubelet accepts the
// flag that allows cgroup v1.
const MinKubernetes = "v1.31"

//go:embed _kubernetes _coredns
var source embed.FS

// Kubernetes returns every program of Kubernetes that a node needs, in one executable.
func Kubernetes(version string) (golang.Program, error) {
	program, err := kubernetes(version)
	if err != nil {
		return golang.Program{}, err
	}
	if semver.Compare(semver.MajorMinor(version), MinKubernetes) < 0 {
		return golang.Program{}, fmt.Errorf("kubernetes %s is not supported: node images can be built from %s", version, MinKubernetes)
	}
	program.Name, program.Source = "kubernetes", sub("_kubernetes")
	return program, nil
}

// Kubeadm returns kubeadm alone, of any version that the go command can still compile. Tests read our configuration with it.
func Kubeadm(version string) (golang.Program, error) {
	program, err := kubernetes(version)
	program.Name, program.Package = "kubeadm", program.Module.Path+"/cmd/kubeadm"
	if semver.Compare(semver.MajorMinor(version), "v1.23") < 0 {
		// The encoder of JSON that these require crashes with maps of Go 1.18 and later.
		program.AtLeast = []module.Version{
			{Path: "github.com/json-iterator/go", Version: "v1.1.12"}, {Path: "github.com/modern-go/reflect2", Version: "v1.0.2"},
		}
	}
	return program, err
}

// kubernetes returns what programs of a version of Kubernetes have in common.
func kubernetes(version string) (golang.Program, error) {
	if semver.Canonical(version) != version || semver.Prerelease(version) != "" || semver.Major(version) != "v1" {
		return golang.Program{}, fmt.Errorf("%q is not a version of Kubernetes: specify one such as v1.36.3", version)
	}
	minor, patch, _ := strings.Cut(strings.TrimPrefix(version, "v1."), ".")
	variables := map[string]string{}
	for _, pkg := range []string{"k8s.io/component-base/version", "k8s.io/client-go/pkg/version"} {
		variables[pkg+".gitVersion"] = version
		variables[pkg+".gitMajor"] = "1"
		variables[pkg+".gitMinor"] = minor
		variables[pkg+".gitTreeState"] = "clean"
	}
	return golang.Program{
		Module:    module.Version{Path: "k8s.io/kubernetes", Version: version},
		Staged:    "v0." + minor + "." + patch,
		Variables: variables,
	}, nil
}

// Etcd returns etcd for the tag of an image, such as 3.6.8-0.
func Etcd(tag string) golang.Program {
	version, _, _ := strings.Cut(tag, "-")
	const path = "go.etcd.io/etcd/server/v3"
	return golang.Program{Name: "etcd", Module: module.Version{Path: path, Version: "v" + version}, Package: path}
}

// CoreDNS returns CoreDNS for the tag of an image, such as v1.14.2.
func CoreDNS(tag string) golang.Program {
	return golang.Program{
		Name: "coredns", Module: module.Version{Path: "github.com/coredns/coredns", Version: tag}, Source: sub("_coredns"),
	}
}

func sub(dir string) fs.FS {
	out, err := fs.Sub(source, dir)
	if err != nil {
		panic(err) // the name is a constant, and valid
	}
	return out
}
