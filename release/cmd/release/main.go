// Command release writes a local provider repository: for each component its manifests (CRDs, RBAC, webhooks,
// Deployment), metadata.yaml, cluster templates and ClusterClasses, laid out as <out>/<provider label>/<version>/<file>,
// and a clusterctl configuration file for it. With --assets it also writes all files into one folder, as attached to a
// release, with the names in clusterctl's default URLs.
//
//	go run ./cmd/release --root .. --version v2.0.0 --out ../out/repository --assets ../out/release
//
// With --images, manifests have the digests of images that the program images has built. With --platforms, the folder also
// has clusterctl and capi for these platforms, packages of them, checksums, provenance and, with --key, signatures.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"strings"

	"sigs.k8s.io/cluster-api/release/attestation"
	"sigs.k8s.io/cluster-api/release/image"
	"sigs.k8s.io/cluster-api/release/program"
	"sigs.k8s.io/cluster-api/release/signature"
	"sigs.k8s.io/cluster-api/sdk/version"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	err := run(ctx, os.Args[1:], os.Getenv)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "release:", err)
		os.Exit(1)
	}
}

// options are the command line.
type options struct {
	root, version, registry, releases, out, assets, images, key, builder string
	platforms                                                            []program.Platform
}

func parse(args []string) (options, error) {
	var o options
	flags := flag.NewFlagSet("release", flag.ContinueOnError)
	flags.StringVar(&o.root, "root", "..", "root of the project")
	flags.StringVar(&o.version, "version", "", "version to release, a semantic version with a leading v")
	flags.StringVar(&o.registry, "registry", "registry.k8s.io/cluster-api", "registry of the managers' images")
	flags.StringVar(&o.releases, "releases", version.DefaultReleases, "address of the releases on GitHub")
	flags.StringVar(&o.out, "out", "", "folder to write the repository to")
	flags.StringVar(&o.assets, "assets", "", "folder to write the files of a release to; empty: none are written")
	flags.StringVar(&o.images, "images", "", "images.json of the images whose digests manifests have; empty: manifests have tags only")
	flags.StringVar(&o.key, "key", "",
		"file of the private ECDSA key that signs the release; its password is COSIGN_PASSWORD. Empty: nothing is signed")
	flags.StringVar(&o.builder, "builder", "https://sigs.k8s.io/cluster-api/build/local",
		"URI of the system that runs the build, for provenance")
	platforms := flags.String("platforms", "", "platforms to compile clusterctl and, for Linux, capi for, separated by commas; empty: none")
	if err := flags.Parse(args); err != nil {
		return o, err
	}
	if o.version == "" || o.out == "" {
		return o, errors.New("--version and --out are required")
	}
	if *platforms != "" {
		for p := range strings.SplitSeq(*platforms, ",") {
			platform, err := program.ParsePlatform(p)
			if err != nil {
				return o, fmt.Errorf("--platforms: %w", err)
			}
			o.platforms = append(o.platforms, platform)
		}
	}
	if o.assets == "" && (o.key != "" || len(o.platforms) > 0) {
		return o, errors.New("--platforms and --key require --assets")
	}
	if err := program.CheckReleases(o.releases); err != nil {
		return o, fmt.Errorf("--releases: %w", err)
	}
	return o, checkVersion(filepath.Join(filesOf(o.root), "metadata.yaml"), o.version)
}

func run(ctx context.Context, args []string, getenv func(string) string) error {
	o, err := parse(args)
	if errors.Is(err, flag.ErrHelp) {
		return nil
	}
	if err != nil {
		return err
	}
	components, err := loadComponents(o.root)
	if err != nil {
		return err
	}
	r := release{
		files: filesOf(o.root), version: o.version, registry: o.registry, releases: o.releases, out: o.out,
		imageList: o.images, platforms: o.platforms,
	}
	if o.images != "" {
		if r.images, err = image.ReadList(o.images); err != nil {
			return err
		}
	}
	for _, c := range components {
		if err := r.write(c, components); err != nil {
			return fmt.Errorf("component %s: %w", c.Label, err)
		}
	}
	if o.assets != "" {
		if err := r.assets(ctx, o, components, getenv); err != nil {
			return fmt.Errorf("files of the release: %w", err)
		}
	}
	return r.clusterctlConfig(components)
}

// assets writes the files of a release into one folder.
func (r release) assets(ctx context.Context, o options, components []component, getenv func(string) string) error {
	f, err := newFolder(o.assets)
	if err != nil {
		return err
	}
	if err := r.manifests(f, components); err != nil || len(o.platforms) == 0 {
		return err
	}
	if err := r.notes(f, o.root); err != nil {
		return err
	}
	var key *signature.Key
	if o.key != "" {
		content, err := os.ReadFile(o.key)
		if err != nil {
			return err
		}
		if key, err = signature.ParseKey(content, []byte(getenv("COSIGN_PASSWORD"))); err != nil {
			return fmt.Errorf("--key %s: %w", o.key, err)
		}
	}
	from, err := program.ReadSource(ctx, o.root, getenv)
	if err != nil {
		return err
	}
	compiler := program.Compiler{Root: o.root, Version: o.version, Releases: o.releases, Source: from}
	if err := r.programs(ctx, f, compiler); err != nil {
		return err
	}
	if err := r.distribute(f, o.root, from.Time); err != nil {
		return err
	}
	if r.imageList != "" {
		if err := r.imageFiles(f); err != nil {
			return err
		}
	}
	toolchain, err := compiler.Toolchain(ctx)
	if err != nil {
		return err
	}
	return seal(ctx, f, attestation.Build{
		Target: "release-all", Version: o.version, Releases: o.releases, Toolchain: toolchain,
		Platforms: o.platforms, Source: from, Builder: o.builder,
	}, key)
}
