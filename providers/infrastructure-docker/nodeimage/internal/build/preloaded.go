package build

import (
	"context"
	"fmt"
	"io/fs"
	"os/exec"
	"path"
	"strings"

	"github.com/google/go-containerregistry/pkg/v1"

	"sigs.k8s.io/cluster-api/providers/infrastructure-docker/nodeimage/internal/filetree"
	"sigs.k8s.io/cluster-api/providers/infrastructure-docker/nodeimage/internal/golang"
	"sigs.k8s.io/cluster-api/providers/infrastructure-docker/nodeimage/internal/oci"
	"sigs.k8s.io/cluster-api/providers/infrastructure-docker/nodeimage/programs"
)

// networkImage is the image of the pod network in kind/manifests/default-cni.yaml. Its name has no version of Kubernetes, so
// that the manifest fits nodes of several versions.
const networkImage = "localhost/node-network:v1"

const searchPath = "PATH=/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

// networkPrograms are what kube-proxy and the pod network call.
var networkPrograms = []string{
	"usr/sbin/iptables", "usr/sbin/iptables-save", "usr/sbin/iptables-restore",
	"usr/sbin/ip6tables", "usr/sbin/ip6tables-save", "usr/sbin/ip6tables-restore",
	"usr/sbin/iptables-nft", "usr/sbin/iptables-legacy", "usr/sbin/nft", "usr/sbin/conntrack", "usr/sbin/modprobe",
	"usr/bin/ip", "usr/bin/bash", "usr/bin/sh", "usr/bin/sleep", "usr/bin/cat", "usr/bin/mv",
}

// preloaded are images in containerd's store.
type preloaded struct {
	byName map[string]v1.Image
	// pause is the name of one of them.
	pause string
}

// preloaded returns the images that kubeadm names for a version, and that of the pod network.
func (b *Builder) preloaded(ctx context.Context, version, kubernetes string, system *filetree.Tree, layers oci.Layers) (preloaded, error) {
	names, err := kubeadmImages(ctx, version, kubernetes)
	if err != nil {
		return preloaded{}, err
	}
	a := assembler{b: b, layers: layers, system: system}
	if err := a.common(kubernetes); err != nil {
		return preloaded{}, err
	}
	out := preloaded{byName: map[string]v1.Image{}}
	for _, name := range append(names, networkImage) {
		image, err := a.image(ctx, name)
		if err != nil {
			return preloaded{}, fmt.Errorf("image %s: %w", name, err)
		}
		out.byName[name] = image
		if strings.HasPrefix(path.Base(name), "pause:") {
			out.pause = name
		}
	}
	return out, nil
}

// kubeadmImages returns the names of the images that kubeadm of this version uses.
func kubeadmImages(ctx context.Context, version, kubernetes string) ([]string, error) {
	cmd := exec.CommandContext(ctx, kubernetes)
	cmd.Args = []string{"kubeadm", "config", "images", "list", "--kubernetes-version", version}
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("cannot list the images of kubeadm %s: %w", version, err)
	}
	return strings.Fields(string(out)), nil
}

// assembler assembles images that share layers.
type assembler struct {
	b      *Builder
	layers oci.Layers
	system *filetree.Tree
	// kubernetes has the executable, network the programs for networks.
	kubernetes, network v1.Layer
}

func (a *assembler) common(kubernetes string) error {
	executable := filetree.New()
	if err := addProgram(executable, "usr/local/bin", kubernetes); err != nil {
		return err
	}
	executable.AddDir("tmp", 0o777|fs.ModeSticky)
	var err error
	if a.kubernetes, err = a.layers.Compressed("image-kubernetes", executable); err != nil {
		return err
	}
	network := filetree.New()
	// The extensions of iptables, which it loads by name.
	extensions := a.system.Glob("usr/lib/*-linux-gnu*/xtables/*.so")
	if len(extensions) == 0 {
		return fmt.Errorf("the Debian packages have no extensions of iptables: %w", fs.ErrNotExist)
	}
	if err := network.CopyPrograms(a.system, append(extensions, networkPrograms...)...); err != nil {
		return err
	}
	if err := network.Copy(a.system, "etc/protocols", "etc/ethertypes"); err != nil {
		return err
	}
	network.AddDir("run", 0o755)
	a.network, err = a.layers.Compressed("image-network", network)
	return err
}

// image returns the image with a name of kubeadm's, or of the pod network.
func (a *assembler) image(ctx context.Context, name string) (v1.Image, error) {
	component, tag, _ := strings.Cut(path.Base(name), ":")
	switch component {
	case "kube-apiserver", "kube-controller-manager", "kube-scheduler":
		return a.linked(component, component, a.kubernetes)
	case "kube-proxy":
		return a.linked(component, component, a.kubernetes, a.network)
	case "node-network":
		return a.linked(component, "kubectl", a.kubernetes, a.network)
	case "etcd":
		return a.compiled(ctx, programs.Etcd(tag), "usr/local/bin/etcd")
	case "coredns":
		return a.compiled(ctx, programs.CoreDNS(tag), "coredns")
	case "pause":
		return a.pause()
	}
	return nil, fmt.Errorf("kubeadm uses an image that this program cannot build; "+
		"add %s to providers/infrastructure-docker/nodeimage/internal/build", component)
}

// linked returns an image that calls the executable in its layers by a name.
func (a *assembler) linked(image, name string, shared ...v1.Layer) (v1.Image, error) {
	link := filetree.New()
	link.AddLink("usr/local/bin/"+name, "kubernetes")
	layer, err := a.layers.Compressed("image-"+image, link)
	if err != nil {
		return nil, err
	}
	return oci.Image(v1.Config{Env: []string{searchPath}}, append(shared, layer)...)
}

// compiled returns an image with one static program.
func (a *assembler) compiled(ctx context.Context, p golang.Program, target string) (v1.Image, error) {
	executable, err := a.b.program(ctx, p)
	if err != nil {
		return nil, err
	}
	tree := filetree.New()
	if err := addExecutable(tree, target, executable); err != nil {
		return nil, err
	}
	layer, err := a.layers.Compressed("image-"+p.Name, tree)
	if err != nil {
		return nil, err
	}
	return oci.Image(v1.Config{Env: []string{searchPath}, Entrypoint: []string{"/" + target}}, layer)
}

// pause returns the image of Debian's catatonit, which waits for a signal, and reaps processes.
func (a *assembler) pause() (v1.Image, error) {
	const program = "usr/bin/catatonit"
	tree := filetree.New()
	if err := tree.CopyPrograms(a.system, program); err != nil {
		return nil, err
	}
	layer, err := a.layers.Compressed("image-pause", tree)
	if err != nil {
		return nil, err
	}
	return oci.Image(v1.Config{Entrypoint: []string{"/" + program, "-P"}}, layer)
}
