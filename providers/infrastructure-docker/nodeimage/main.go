// Command node builds images for clusters of the Docker provider, from Debian packages and Go modules: kindest/node for each
// version of Kubernetes, and kindest/haproxy. It loads them into Docker, or writes them to files. No container registry is used.
//
//	go run . v1.36.3
//
// With a flag it builds kubeadm alone, for tests that need it in many versions:
//
//	go run . --kubeadm FOLDER v1.30.14 v1.36.3
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"

	"sigs.k8s.io/cluster-api/providers/infrastructure-docker/nodeimage/internal/build"
	"sigs.k8s.io/cluster-api/providers/infrastructure-docker/nodeimage/internal/cache"
	"sigs.k8s.io/cluster-api/providers/infrastructure-docker/nodeimage/internal/debian"
	"sigs.k8s.io/cluster-api/providers/infrastructure-docker/nodeimage/internal/oci"
	"sigs.k8s.io/cluster-api/providers/infrastructure-docker/nodeimage/programs"
)

func main() {
	if err := run(os.Args[1:], os.Stderr); err != nil {
		fmt.Fprintln(os.Stderr, "node:", err)
		os.Exit(1)
	}
}

func run(args []string, out io.Writer) (err error) {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	flags := flag.NewFlagSet("node", flag.ContinueOnError)
	flags.SetOutput(out)
	dir := flags.String("cache", "",
		"folder for programs and packages of earlier builds (default cluster-api/node-image in the user's cache folder)")
	mirror := flags.String("mirror", debian.Mirror(os.DirFS("/")),
		"URL of Debian packages. Defaults to the mirror that apt is configured with")
	output := flags.String("output", "", "folder to write images to, for docker load, instead of loading them into Docker")
	kubeadm := flags.String("kubeadm", "", "folder to link kubeadm of each version to, as VERSION/kubeadm, instead of building images")
	flags.Usage = func() {
		fmt.Fprintln(out, "usage: go run . [flags] VERSION...   (of Kubernetes, such as v1.36.3)")
		flags.PrintDefaults()
	}
	if err := flags.Parse(args); err != nil {
		return err
	}
	versions := flags.Args()
	if len(versions) == 0 {
		return errors.New("specify versions of Kubernetes, such as v1.36.3")
	}
	if err := check(ctx, versions, *kubeadm, *mirror, *output); err != nil {
		return err
	}
	start := time.Now()
	progress := func(format string, args ...any) {
		fmt.Fprintf(out, "[%6.1fs] %s\n", time.Since(start).Seconds(), fmt.Sprintf(format, args...))
	}
	kept, err := openCache(*dir, progress)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, kept.Close()) }()
	b := build.Builder{Cache: kept, Mirror: *mirror, Output: *output, Progress: progress}
	if *kubeadm != "" {
		return programsOf(ctx, b, versions, *kubeadm)
	}
	for _, version := range versions {
		if err := b.Node(ctx, version); err != nil {
			return err
		}
	}
	return b.LoadBalancer(ctx)
}

// check returns what is wrong with arguments, or with this machine, before anything is built.
func check(ctx context.Context, versions []string, kubeadm, mirror, output string) error {
	described := programs.Kubernetes
	if kubeadm != "" {
		described = programs.Kubeadm
	}
	for _, version := range versions {
		if _, err := described(version); err != nil {
			return err
		}
	}
	switch {
	case kubeadm != "":
		return nil
	case mirror == "":
		return errors.New("apt of this machine has no Debian mirror: specify one with --mirror, such as --mirror http://MIRROR/debian")
	case output == "":
		return oci.CheckDocker(ctx)
	}
	return nil
}

// programsOf builds kubeadm of all versions that can be built, and returns the errors of the others.
func programsOf(ctx context.Context, b build.Builder, versions []string, dir string) error {
	absolute, err := filepath.Abs(dir)
	if err != nil {
		return err
	}
	var failed []error
	for _, version := range versions {
		failed = append(failed, b.Kubeadm(ctx, version, absolute))
	}
	return errors.Join(failed...)
}

func openCache(dir string, progress func(string, ...any)) (*cache.Cache, error) {
	if dir == "" {
		user, err := os.UserCacheDir()
		if err != nil {
			return nil, fmt.Errorf("cannot find a folder for the cache; set --cache: %w", err)
		}
		dir = filepath.Join(user, "cluster-api", "node-image")
	}
	return cache.Open(dir, func() { progress("waiting for another build that uses %s", dir) })
}
