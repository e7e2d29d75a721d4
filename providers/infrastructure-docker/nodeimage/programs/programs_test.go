package programs_test

import (
	"io/fs"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/mod/module"

	"sigs.k8s.io/cluster-api/providers/infrastructure-docker/nodeimage/internal/golang"
	"sigs.k8s.io/cluster-api/providers/infrastructure-docker/nodeimage/programs"
)

func TestKubernetes(t *testing.T) {
	got, err := programs.Kubernetes("v1.36.3")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := fs.Stat(got.Source, "main.go"); err != nil {
		t.Error(err)
	}
	got.Source = nil
	want := golang.Program{
		Name:   "kubernetes",
		Module: module.Version{Path: "k8s.io/kubernetes", Version: "v1.36.3"},
		Staged: "v0.36.3",
		Variables: map[string]string{
			"k8s.io/component-base/version.gitVersion":   "v1.36.3",
			"k8s.io/component-base/version.gitMajor":     "1",
			"k8s.io/component-base/version.gitMinor":     "36",
			"k8s.io/component-base/version.gitTreeState": "clean",
			"k8s.io/client-go/pkg/version.gitVersion":    "v1.36.3",
			"k8s.io/client-go/pkg/version.gitMajor":      "1",
			"k8s.io/client-go/pkg/version.gitMinor":      "36",
			"k8s.io/client-go/pkg/version.gitTreeState":  "clean",
		},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestKubernetesRejects(t *testing.T) {
	for version, reason := range map[string]string{
		"":              "no version",
		"1.36.3":        "no v",
		"v1.36":         "no patch version",
		"v2.0.0":        "another major version",
		"v1.36.3+build": "a build that is not published as a module",
		"v1.37.0-rc.0":  "a version that is not released",
		"v1.30.9":       "kubelet does not have flags that it is called with",
	} {
		if _, err := programs.Kubernetes(version); err == nil {
			t.Errorf("%q: got no error: %s", version, reason)
		}
	}
}

func TestKubeadm(t *testing.T) {
	for version, atLeast := range map[string]int{"v1.36.3": 0, "v1.23.0": 0, "v1.22.17": 2, "v1.21.14": 2} {
		got, err := programs.Kubeadm(version)
		if err != nil {
			t.Fatal(err)
		}
		if got.Name != "kubeadm" || got.Package != "k8s.io/kubernetes/cmd/kubeadm" || got.Source != nil || got.Module.Version != version || len(got.AtLeast) != atLeast {
			t.Errorf("%s: %+v", version, got)
		}
	}
	for _, version := range []string{"", "v1.36", "v1.37.0-rc.0"} {
		if _, err := programs.Kubeadm(version); err == nil {
			t.Errorf("%q is accepted", version)
		}
	}
}

func TestTags(t *testing.T) {
	if got := programs.Etcd("3.6.8-0").Module; got.String() != "go.etcd.io/etcd/server/v3@v3.6.8" {
		t.Errorf("the version of etcd is its image's, without the revision of the image, got %s", got)
	}
	if got := programs.CoreDNS("v1.14.2").Module; got.String() != "github.com/coredns/coredns@v1.14.2" {
		t.Errorf("the version of CoreDNS is its image's, got %s", got)
	}
}
