package build

import (
	"context"
	"time"

	"github.com/google/go-containerregistry/pkg/v1"

	"sigs.k8s.io/cluster-api/providers/infrastructure-docker/nodeimage/files"
	"sigs.k8s.io/cluster-api/providers/infrastructure-docker/nodeimage/internal/debian"
	"sigs.k8s.io/cluster-api/providers/infrastructure-docker/nodeimage/internal/filetree"
	"sigs.k8s.io/cluster-api/providers/infrastructure-docker/nodeimage/internal/oci"
)

// LoadBalancerImage is the image of load balancers that the Docker provider uses by default.
const LoadBalancerImage = "kindest/haproxy:v20230510-486859a6"

// loadBalancerPrograms are for replacing the configuration, and for debugging. They are links to busybox.
var loadBalancerPrograms = []string{
	"cat", "chmod", "chown", "cp", "cut", "find", "grep", "head", "kill", "ls", "mkdir", "mv", "netstat", "ps", "rm", "sed", "sh",
	"sleep", "stat", "tail", "tar", "tee", "timeout", "touch", "wget",
}

// LoadBalancer builds the image of load balancers.
func (b *Builder) LoadBalancer(ctx context.Context) error {
	return b.image(ctx, LoadBalancerImage, b.loadBalancer)
}

func (b *Builder) loadBalancer(ctx context.Context) (v1.Image, error) {
	archive, err := b.system(ctx, "load balancer", debian.System{Packages: []string{"haproxy", "busybox-static"}, Extract: true})
	if err != nil {
		return nil, err
	}
	start := time.Now()
	system, err := filetree.ReadTar(archive, func(string) bool { return true })
	if err != nil {
		return nil, err
	}
	tree := filetree.New()
	if err := tree.CopyPrograms(system, "usr/sbin/haproxy", "bin/busybox"); err != nil {
		return nil, err
	}
	for _, name := range loadBalancerPrograms {
		tree.AddLink("usr/bin/"+name, "busybox")
	}
	for _, dir := range []string{"run", "tmp", "var/lib/haproxy"} {
		tree.AddDir(dir, 0o755)
	}
	if err := addOwn(tree, files.LoadBalancer(), templateValues{}); err != nil {
		return nil, err
	}
	dir, err := b.Cache.Dir(fileName(LoadBalancerImage))
	if err != nil {
		return nil, err
	}
	layer, err := oci.Layers{Dir: dir}.Plain("loadbalancer", tree)
	if err != nil {
		return nil, err
	}
	b.Progress("assembled %s (%s)", LoadBalancerImage, since(start))
	return oci.Image(v1.Config{
		Entrypoint: []string{"haproxy", "-W", "-db", "-f", "/usr/local/etc/haproxy/haproxy.cfg"},
		Env:        []string{"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"},
	}, layer)
}
