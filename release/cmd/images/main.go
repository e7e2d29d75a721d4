// Command images builds container images of all programs: an OCI layout per image, with one image per platform, and an archive
// per image and platform that container runtimes load. With a key, images, bills of materials and provenance are signed. The
// same source and toolchain give the same images.
//
//	go run ./cmd/images --root .. --version v2.0.0 --out ../out/images
//
// docs/book/artifacts.md describes the files that it writes.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"

	"sigs.k8s.io/cluster-api/release/program"
	"sigs.k8s.io/cluster-api/release/signature"
	"sigs.k8s.io/cluster-api/sdk/version"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	err := run(ctx, os.Args[1:], os.Getenv, os.Stderr)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "images:", err)
		os.Exit(1)
	}
}

// options are the command line.
type options struct {
	root, version, registry, releases, out string
	platforms                              []program.Platform
	programs                               []string
	key                                    *signature.Key
	builder                                string
	load, push                             bool
}

func run(ctx context.Context, args []string, getenv func(string) string, stderr io.Writer) error {
	o, err := parse(args, getenv, stderr)
	if errors.Is(err, flag.ErrHelp) {
		return nil
	}
	if err != nil {
		return err
	}
	b, err := newBuilder(ctx, o, getenv, stderr)
	if err != nil {
		return err
	}
	return b.build(ctx)
}

func parse(args []string, getenv func(string) string, stderr io.Writer) (options, error) {
	var o options
	flags := flag.NewFlagSet("images", flag.ContinueOnError)
	flags.SetOutput(stderr)
	flags.StringVar(&o.root, "root", "..", "root of the project")
	flags.StringVar(&o.version, "version", "", "version of the programs and tag of the images")
	flags.StringVar(&o.registry, "registry", "registry.k8s.io/cluster-api", "registry and folder of the images' names")
	flags.StringVar(&o.releases, "releases", version.DefaultReleases, "address of the releases on GitHub")
	flags.StringVar(&o.out, "out", "", "folder to write to")
	flags.StringVar(&o.builder, "builder", "https://sigs.k8s.io/cluster-api/build/local",
		"URI of the system that runs the build, for provenance")
	flags.BoolVar(&o.load, "load", false, "load the images for this machine's platform into Docker")
	flags.BoolVar(&o.push, "push", false, "push the images, their signatures and attestations to the registry")
	platforms := flags.String("platforms", "linux/amd64,linux/arm64", "platforms to build for, separated by commas")
	programs := flags.String("programs", strings.Join(program.All(), ","), "programs to build images of, separated by commas")
	key := flags.String("key", "",
		"file of the private ECDSA key that signs images; its password is COSIGN_PASSWORD. Empty: nothing is signed")
	if err := flags.Parse(args); err != nil {
		return o, err
	}
	if o.version == "" || o.out == "" {
		return o, errors.New("--version and --out are required")
	}
	if err := program.CheckReleases(o.releases); err != nil {
		return o, fmt.Errorf("--releases: %w", err)
	}
	for p := range strings.SplitSeq(*platforms, ",") {
		platform, err := program.ParsePlatform(p)
		if err != nil {
			return o, fmt.Errorf("--platforms: %w", err)
		}
		if platform.OS != "linux" {
			return o, fmt.Errorf("--platforms: there are no images for %s, only for linux", platform)
		}
		o.platforms = append(o.platforms, platform)
	}
	o.programs = strings.Split(*programs, ",")
	if *key == "" {
		return o, nil
	}
	content, err := os.ReadFile(*key)
	if err != nil {
		return o, fmt.Errorf("--key: %w", err)
	}
	if o.key, err = signature.ParseKey(content, []byte(getenv("COSIGN_PASSWORD"))); err != nil {
		return o, fmt.Errorf("--key %s: %w", *key, err)
	}
	return o, nil
}
