package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/layout"

	"sigs.k8s.io/cluster-api/release/attestation"
	"sigs.k8s.io/cluster-api/release/image"
	"sigs.k8s.io/cluster-api/release/program"
	"sigs.k8s.io/cluster-api/release/signature"
)

// Annotations that cosign looks for in layouts ("cosign verify --local-image").
const (
	kind             = "kind"
	kindIndex        = "dev.cosignproject.cosign/imageIndex"
	kindSignatures   = "dev.cosignproject.cosign/sigs"
	kindAttestations = "dev.cosignproject.cosign/atts"
	// containerdName is the annotation by which containerd names the images of an archive.
	containerdName = "io.containerd.image.name"
)

// builder builds images.
type builder struct {
	options
	compiler    program.Compiler
	origin      attestation.Build
	moduleCache string
	stderr      io.Writer
	// executables by platform and program.
	executables map[program.Platform]map[string]string
}

func newBuilder(ctx context.Context, o options, getenv func(string) string, stderr io.Writer) (*builder, error) {
	from, err := program.ReadSource(ctx, o.root, getenv)
	if err != nil {
		return nil, err
	}
	compiler := program.Compiler{Root: o.root, Version: o.version, Releases: o.releases, Source: from}
	toolchain, err := compiler.Toolchain(ctx)
	if err != nil {
		return nil, err
	}
	cache, err := exec.CommandContext(ctx, "go", "env", "GOMODCACHE").Output()
	if err != nil {
		return nil, fmt.Errorf("cannot find the module cache: %w", err)
	}
	return &builder{
		options: o, compiler: compiler, moduleCache: strings.TrimSpace(string(cache)), stderr: stderr,
		origin: attestation.Build{
			Target: "images", Version: o.version, Releases: o.releases, Toolchain: toolchain,
			Platforms: o.platforms, Source: from, Builder: o.builder,
		},
		executables: map[program.Platform]map[string]string{},
	}, nil
}

func (b *builder) build(ctx context.Context) error {
	for _, p := range b.platforms {
		start := time.Now()
		executables, err := b.compiler.Compile(ctx, p, filepath.Join(b.out, "bin", p.Suffix()), b.programs...)
		if err != nil {
			return err
		}
		b.executables[p] = executables
		fmt.Fprintf(b.stderr, "compiled for %s (%s)\n", p, time.Since(start).Round(time.Second))
	}
	list := image.List{Registry: b.registry, Version: b.version, Images: map[string]image.Built{}}
	for _, name := range b.programs {
		built, err := b.image(ctx, list.Repository(name), name)
		if err != nil {
			return fmt.Errorf("image of %s: %w", name, err)
		}
		list.Images[name] = built
		fmt.Fprintf(b.stderr, "%s:%s@%s\n", list.Repository(name), b.version, built.Digest)
	}
	return list.Write(filepath.Join(b.out, "images.json"))
}

// image builds the image of a program for all platforms, with everything that belongs to it.
func (b *builder) image(ctx context.Context, repository, name string) (image.Built, error) {
	config := image.Config{Executable: executable(name), Annotations: b.annotations(name), Time: b.origin.Source.Time}
	images := map[program.Platform]v1.Image{}
	built := image.Built{Platforms: map[string]string{}}
	for _, p := range b.platforms {
		platformImage, err := image.New(config, p, b.executables[p][name])
		if err != nil {
			return built, err
		}
		digest, err := platformImage.Digest()
		if err != nil {
			return built, err
		}
		images[p], built.Platforms[p.String()] = platformImage, digest.String()
	}
	index, err := image.Index(config, b.platforms, images)
	if err != nil {
		return built, err
	}
	digest, err := index.Digest()
	if err != nil {
		return built, err
	}
	built.Digest = digest.String()
	path, err := image.NewLayout(filepath.Join(b.out, "oci", name))
	if err != nil {
		return built, err
	}
	full := repository + ":" + b.version
	if err := path.AppendIndex(index, annotated(full, kindIndex)); err != nil {
		return built, err
	}
	if err := b.attach(ctx, path, repository, name, digest, images); err != nil {
		return built, err
	}
	if err := b.archives(ctx, full, name, images); err != nil {
		return built, err
	}
	if b.push {
		return built, image.Push(ctx, path)
	}
	return built, nil
}

// executable is the path of a program in its image. Manifests run managers under one name.
func executable(name string) string {
	if slices.Contains(program.Managers(), name) {
		return "/manager"
	}
	return "/" + name
}

func annotated(ref, cosignKind string) layout.Option {
	annotations := map[string]string{image.RefName: ref}
	if cosignKind != "" {
		annotations[kind] = cosignKind
	}
	if cosignKind == kindIndex {
		annotations[containerdName] = ref
	}
	return layout.WithAnnotations(annotations)
}

func (b *builder) annotations(name string) map[string]string {
	out := map[string]string{
		"org.opencontainers.image.title":       name,
		"org.opencontainers.image.description": "Cluster API: " + name,
		"org.opencontainers.image.version":     b.version,
		"org.opencontainers.image.created":     b.origin.Source.Time.Format(time.RFC3339),
		"org.opencontainers.image.licenses":    "Apache-2.0",
		"org.opencontainers.image.url":         "https://cluster-api.sigs.k8s.io",
	}
	if revision := b.origin.Source.Revision(); revision != "" {
		out["org.opencontainers.image.revision"] = revision
	}
	return out
}

// attach writes the bills of materials and the provenance as files and, with a key, signs them and the images.
func (b *builder) attach(
	ctx context.Context, path layout.Path, repository, name string, index v1.Hash, images map[program.Platform]v1.Image,
) error {
	checksums := map[string]string{repository: index.Hex}
	statement, err := attestation.NewStatement(checksums, attestation.SLSA, b.origin.Predicate())
	if err != nil {
		return err
	}
	if err := writeFile(filepath.Join(b.out, "provenance", name+".json"), statement); err != nil {
		return err
	}
	if err := b.sign(ctx, path, repository, index, true, map[string][]byte{attestation.SLSA: statement}); err != nil {
		return err
	}
	for _, p := range b.platforms {
		document, err := attestation.BillOfMaterials(attestation.Executable{
			Name: name, Path: b.executables[p][name], Version: b.version, Platform: p, Time: b.origin.Source.Time, ModuleCache: b.moduleCache,
		})
		if err != nil {
			return err
		}
		if err := writeFile(filepath.Join(b.out, "sbom", name+"-"+p.Suffix()+".spdx.json"), document); err != nil {
			return err
		}
		digest, err := images[p].Digest()
		if err != nil {
			return err
		}
		checksums := map[string]string{repository: digest.Hex}
		materials, err := attestation.NewStatement(checksums, attestation.SPDX, json.RawMessage(document))
		if err != nil {
			return err
		}
		made, err := attestation.NewStatement(checksums, attestation.SLSA, b.origin.Predicate())
		if err != nil {
			return err
		}
		statements := map[string][]byte{attestation.SLSA: made, attestation.SPDX: materials}
		if err := b.sign(ctx, path, repository, digest, false, statements); err != nil {
			return err
		}
	}
	return nil
}

// sign adds the signature of an image and signed statements, by the type of their predicate, to a layout. main is the image that
// the layout is about.
func (b *builder) sign(
	ctx context.Context, path layout.Path, repository string, digest v1.Hash, main bool, statements map[string][]byte,
) error {
	if b.key == nil {
		return nil
	}
	signed, err := b.key.Image(ctx, repository, digest)
	if err != nil {
		return err
	}
	attested, err := b.key.Attestations(ctx, statements, attestation.PayloadType)
	if err != nil {
		return err
	}
	for _, artifact := range []struct {
		image        v1.Image
		suffix, kind string
	}{{signed, "sig", kindSignatures}, {attested, "att", kindAttestations}} {
		cosignKind := ""
		if main {
			cosignKind = artifact.kind
		}
		if err := path.AppendImage(artifact.image, annotated(repository+":"+signature.Tag(digest, artifact.suffix), cosignKind)); err != nil {
			return err
		}
	}
	return nil
}

// archives writes an archive per platform, and loads that of this machine's platform.
func (b *builder) archives(ctx context.Context, full, of string, images map[program.Platform]v1.Image) error {
	ref, err := name.NewTag(full)
	if err != nil {
		return err
	}
	for p, platformImage := range images {
		path := filepath.Join(b.out, "archive", of+"-"+p.Suffix()+".tar")
		if err := image.WriteArchive(path, ref, platformImage); err != nil {
			return err
		}
		if !b.load || p.Arch != runtime.GOARCH {
			continue
		}
		//nolint:gosec // without a shell; the file was written above
		cmd := exec.CommandContext(ctx, "docker", "load", "--quiet", "--input", path)
		var problem bytes.Buffer
		cmd.Stderr = &problem
		if err := cmd.Run(); err != nil {
			return fmt.Errorf("cannot load %s into Docker: %w: %s", path, err, strings.TrimSpace(problem.String()))
		}
	}
	return nil
}

func writeFile(path string, content []byte) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	return os.WriteFile(path, content, 0o600)
}
