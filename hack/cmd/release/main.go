// Command release writes a local provider repository: for each component its manifests (CRDs, RBAC, webhooks,
// Deployment), metadata.yaml, cluster templates and ClusterClasses, laid out as <out>/<provider label>/<version>/<file>,
// and a clusterctl configuration file for it. With --assets it also writes all files into one folder, as attached to a
// release, with the names in clusterctl's default URLs.
//
//	go run ./cmd/release --root .. --version v2.0.0 --out ../out/repository --assets ../out/release
package main

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "release:", err)
		os.Exit(1)
	}
}

func run(args []string) error {
	flags := flag.NewFlagSet("release", flag.ContinueOnError)
	root := flags.String("root", "..", "root of the project")
	version := flags.String("version", "", "version to release, a semantic version with a leading v")
	registry := flags.String("registry", "registry.k8s.io/cluster-api", "registry of the managers' images")
	out := flags.String("out", "", "folder to write the repository to")
	assets := flags.String("assets", "", "folder to write the files of a release to; empty: none are written")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if *version == "" || *out == "" {
		return fmt.Errorf("--version and --out are required")
	}
	if err := checkVersion(filepath.Join(*root, "config", "metadata.yaml"), *version); err != nil {
		return err
	}
	components, err := loadComponents(filepath.Join(*root, "config"))
	if err != nil {
		return err
	}
	r := release{config: filepath.Join(*root, "config"), version: *version, registry: *registry, out: *out}
	for _, c := range components {
		if err := r.write(c); err != nil {
			return fmt.Errorf("component %s: %w", c.Label, err)
		}
	}
	if *assets != "" {
		if err := r.assets(*assets, components); err != nil {
			return fmt.Errorf("files of the release: %w", err)
		}
	}
	return r.clusterctlConfig(components)
}
