package build

import (
	"bytes"
	"context"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
	"text/template"
	"time"

	"github.com/google/go-containerregistry/pkg/v1"
	"golang.org/x/sync/errgroup"

	"sigs.k8s.io/cluster-api/providers/infrastructure-docker/nodeimage/files"
	"sigs.k8s.io/cluster-api/providers/infrastructure-docker/nodeimage/internal/debian"
	"sigs.k8s.io/cluster-api/providers/infrastructure-docker/nodeimage/internal/filetree"
	"sigs.k8s.io/cluster-api/providers/infrastructure-docker/nodeimage/internal/oci"
	"sigs.k8s.io/cluster-api/providers/infrastructure-docker/nodeimage/programs"
)

// NodeImage returns the name of the image for a version of Kubernetes, which the Docker provider uses by default.
func NodeImage(version string) string { return "kindest/node:" + version }

// containerdData is containerd's data folder.
const containerdData = "var/lib/containerd"

// nodePackages are what a node needs beside Kubernetes. Some are for scripts of users, and for debugging.
var nodePackages = []string{
	"systemd", "systemd-sysv", "dbus", "libnss-myhostname", "kmod", "mount", "procps", "passwd", "ca-certificates", "openssl", // a system
	"containerd", "runc", "containernetworking-plugins", "catatonit", // containers
	"iproute2", "iptables", "nftables", "ebtables", "ethtool", "conntrack", "socat", // networks
	"curl", "iputils-ping", "jq",
}

// masked are the units that a node does not need, or that would change the machine.
var masked = []string{
	"getty.target", "getty@tty1.service", "console-getty.service", "systemd-logind.service", "systemd-firstboot.service",
	"systemd-udevd.service", "systemd-udev-trigger.service", "systemd-udevd-control.socket", "systemd-udevd-kernel.socket",
	"systemd-sysctl.service", "systemd-modules-load.service", "kmod-static-nodes.service", "systemd-binfmt.service",
	"proc-sys-fs-binfmt_misc.automount", "systemd-remount-fs.service", "dev-hugepages.mount", "dev-mqueue.mount",
	"sys-kernel-debug.mount", "sys-kernel-tracing.mount", "sys-kernel-config.mount", "sys-fs-fuse-connections.mount",
	"systemd-pcrphase.service", "systemd-pcrphase-sysinit.service", "systemd-update-utmp.service", "nftables.service",
	"apt-daily.timer", "apt-daily-upgrade.timer", "dpkg-db-backup.timer", "e2scrub_all.timer", "e2scrub_reap.service", "fstrim.timer",
}

// Node builds the image of nodes for a version of Kubernetes.
func (b *Builder) Node(ctx context.Context, version string) error {
	return b.image(ctx, NodeImage(version), func(ctx context.Context) (v1.Image, error) { return b.node(ctx, version) })
}

func (b *Builder) node(ctx context.Context, version string) (v1.Image, error) {
	program, err := programs.Kubernetes(version)
	if err != nil {
		return nil, err
	}
	// The packages take time to download, and the program to compile.
	var kubernetes string
	var archive *os.File
	parallel, buildCtx := errgroup.WithContext(ctx)
	parallel.Go(func() (err error) {
		kubernetes, err = b.program(buildCtx, program)
		return err
	})
	parallel.Go(func() (err error) {
		archive, err = b.system(buildCtx, "node", debian.System{Packages: nodePackages})
		return err
	})
	if err := parallel.Wait(); err != nil {
		return nil, err
	}
	start := time.Now()
	system, err := filetree.ReadTar(archive, func(name string) bool { return !strings.HasPrefix(name, "dev/") })
	if err != nil {
		return nil, err
	}
	image, err := b.assembleNode(ctx, version, kubernetes, system)
	if err == nil {
		b.Progress("assembled %s (%s)", NodeImage(version), since(start))
	}
	return image, err
}

func (b *Builder) assembleNode(ctx context.Context, version, kubernetes string, system *filetree.Tree) (v1.Image, error) {
	dir, err := b.Cache.Dir(fileName(NodeImage(version)))
	if err != nil {
		return nil, err
	}
	layers := oci.Layers{Dir: dir}
	images, err := b.preloaded(ctx, version, kubernetes, system, layers)
	if err != nil {
		return nil, err
	}
	dataDir := filepath.Join(dir, "containerd")
	if err := oci.WriteStore(ctx, dataDir, images.byName, oci.Modified); err != nil {
		return nil, err
	}
	data := filetree.New()
	if err := data.AddFiles(containerdData, os.DirFS(dataDir), func(string) fs.FileMode { return 0o644 }); err != nil {
		return nil, err
	}
	own, err := nodeFiles(version, system, templateValues{Pause: images.pause})
	if err != nil {
		return nil, err
	}
	executables := filetree.New()
	if err := addProgram(executables, "usr/bin", kubernetes, "kubelet", "kubeadm", "kubectl", "crictl"); err != nil {
		return nil, err
	}
	clean(system)
	var plain []v1.Layer
	for _, layer := range []struct {
		name string
		tree *filetree.Tree
	}{{"system", system}, {"files", own}, {"kubernetes", executables}, {"containerd", data}} {
		written, err := layers.Plain(layer.name, layer.tree)
		if err != nil {
			return nil, err
		}
		plain = append(plain, written)
	}
	return oci.Image(v1.Config{
		Entrypoint: []string{"/usr/local/bin/entrypoint", "/sbin/init"},
		Env:        []string{"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "container=docker"},
		StopSignal: "SIGRTMIN+3", // systemd's for halt
	}, plain...)
}

// clean removes what belongs to the machine that installed the packages, and what the engine provides.
func clean(system *filetree.Tree) {
	system.Remove("etc/apt/apt.conf.d/99mmdebstrap", "etc/dpkg/dpkg.cfg.d/99mmdebstrap", "etc/apt/sources.list",
		"etc/machine-id", "var/lib/dbus/machine-id", "etc/resolv.conf", "etc/hostname")
	for _, pattern := range []string{"var/cache/*", "var/log/*", "var/lib/apt/*", "var/lib/dpkg/*-old", "etc/*-"} {
		system.Remove(system.Glob(pattern)...)
	}
	system.AddFile("etc/machine-id", 0o444, nil)
}

// templateValues are available to the templates among the files.
type templateValues struct {
	// Pause is the name of the image that holds the namespaces of a Pod.
	Pause string
}

// nodeFiles returns the files of our own, and links that enable and mask units.
func nodeFiles(version string, system *filetree.Tree, values templateValues) (*filetree.Tree, error) {
	t := filetree.New()
	if err := addOwn(t, files.Node(), values); err != nil {
		return nil, err
	}
	t.AddFile("kind/version", 0o644, []byte(version+"\n"))
	const units = "etc/systemd/system/"
	for _, unit := range masked {
		t.AddLink(units+unit, "/dev/null")
	}
	t.AddLink(units+"default.target", "/lib/systemd/system/multi-user.target")
	t.AddLink(units+"multi-user.target.wants/containerd.service", "/lib/systemd/system/containerd.service")
	t.AddLink(units+"multi-user.target.wants/kubelet.service", "/etc/systemd/system/kubelet.service")
	// Pod networks install their plugins here.
	for _, plugin := range system.Glob("usr/lib/cni/*") {
		t.AddLink("opt/cni/bin/"+path.Base(plugin), "/"+plugin)
	}
	for _, dir := range []string{"etc/cni/net.d", "etc/kubernetes/manifests", "var/log"} {
		t.AddDir(dir, 0o755)
	}
	return t, nil
}

// addOwn adds embedded files, with templates replaced by their results. Files in bin folders are executable.
func addOwn(t *filetree.Tree, own fs.FS, values templateValues) error {
	return fs.WalkDir(own, ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		content, err := fs.ReadFile(own, name)
		if err != nil {
			return err
		}
		mode := fs.FileMode(0o644)
		if path.Base(path.Dir(name)) == "bin" {
			mode = 0o755
		}
		target, isTemplate := strings.CutSuffix(name, ".tmpl")
		if isTemplate {
			if content, err = execute(name, content, values); err != nil {
				return fmt.Errorf("template %s: %w", name, err)
			}
		}
		t.AddFile(target, mode, content)
		return nil
	})
}

func execute(name string, content []byte, values templateValues) ([]byte, error) {
	parsed, err := template.New(name).Option("missingkey=error").Parse(string(content))
	if err != nil {
		return nil, err
	}
	var out bytes.Buffer
	err = parsed.Execute(&out, values)
	return out.Bytes(), err
}

// addProgram adds the executable of Kubernetes to a folder, and links to it for each name by which it is called.
func addProgram(t *filetree.Tree, dir, executable string, names ...string) error {
	const name = "kubernetes"
	for _, link := range names {
		t.AddLink(path.Join(dir, link), name)
	}
	return addExecutable(t, path.Join(dir, name), executable)
}

// addExecutable adds a file of the machine, which stays open while the program runs.
func addExecutable(t *filetree.Tree, name, executable string) error {
	file, err := os.Open(executable)
	if err != nil {
		return err
	}
	info, err := file.Stat()
	if err != nil {
		return err
	}
	t.AddReader(name, 0o755, file, info.Size())
	return nil
}
