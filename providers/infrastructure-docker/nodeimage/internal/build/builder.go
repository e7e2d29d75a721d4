package build

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/google/go-containerregistry/pkg/v1"

	"sigs.k8s.io/cluster-api/providers/infrastructure-docker/nodeimage/internal/cache"
	"sigs.k8s.io/cluster-api/providers/infrastructure-docker/nodeimage/internal/debian"
	"sigs.k8s.io/cluster-api/providers/infrastructure-docker/nodeimage/internal/golang"
	"sigs.k8s.io/cluster-api/providers/infrastructure-docker/nodeimage/internal/oci"
	"sigs.k8s.io/cluster-api/providers/infrastructure-docker/nodeimage/programs"
)

// Builder builds images.
type Builder struct {
	// Cache keeps what takes long to build.
	Cache *cache.Cache
	// Mirror is the URL of Debian packages.
	Mirror string
	// Output is the folder that images are written to, as archives for docker load. If empty, they are loaded into Docker.
	Output string
	// Progress reports what happens.
	Progress func(format string, args ...any)
}

// image builds the image with a name, unless Docker has the image that an earlier run has built from the same inputs.
func (b *Builder) image(ctx context.Context, name string, assemble func(context.Context) (v1.Image, error)) error {
	if b.Output != "" {
		return b.write(ctx, name, assemble)
	}
	inputs, err := b.inputs(name)
	if err != nil {
		return err
	}
	// The file in the cache has the ID that Docker gave to the image.
	record, built := "record-"+fileName(name), false
	build := func(ctx context.Context, path string) error {
		built = true
		id, err := b.load(ctx, name, assemble)
		if err != nil {
			return err
		}
		return os.WriteFile(path, []byte(id), 0o644)
	}
	path, err := b.Cache.File(ctx, record, inputs, build)
	if err != nil || built {
		return err
	}
	id, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	if string(id) == oci.IDInDocker(ctx, name) {
		b.Progress("%s is up to date", name)
		return nil
	}
	if err := os.Remove(path); err != nil {
		return err
	}
	_, err = b.Cache.File(ctx, record, inputs, build)
	return err
}

func (b *Builder) load(ctx context.Context, name string, assemble func(context.Context) (v1.Image, error)) (string, error) {
	image, err := assemble(ctx)
	if err != nil {
		return "", err
	}
	start := time.Now()
	id, err := oci.LoadIntoDocker(ctx, name, image)
	if err != nil {
		return "", err
	}
	b.Progress("loaded %s into Docker (%s): %s", name, since(start), id)
	return id, b.Cache.Discard(fileName(name))
}

func (b *Builder) write(ctx context.Context, name string, assemble func(context.Context) (v1.Image, error)) error {
	image, err := assemble(ctx)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(b.Output, 0o755); err != nil {
		return err
	}
	path := filepath.Join(b.Output, fileName(name)+".tar")
	file, err := os.Create(path)
	if err != nil {
		return err
	}
	if err := errors.Join(oci.WriteArchive(file, name, image), file.Close()); err != nil {
		return fmt.Errorf("cannot write %s: %w", path, err)
	}
	digest, err := image.Digest()
	if err != nil {
		return err
	}
	b.Progress("wrote %s to %s: %s", name, path, digest)
	return b.Cache.Discard(fileName(name))
}

// inputs are everything that an image depends on, without what the mirror serves: this program, with all files, and names.
func (b *Builder) inputs(name string) (any, error) {
	path, err := os.Executable()
	if err != nil {
		return nil, err
	}
	program, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	sum := sha256.Sum256(program)
	return []string{name, hex.EncodeToString(sum[:]), b.Mirror}, nil
}

// system returns the archive of a Debian system. It is open while the program runs.
func (b *Builder) system(ctx context.Context, name string, s debian.System) (*os.File, error) {
	s.Mirror, s.Architecture = b.Mirror, debian.Architecture()
	path, err := b.Cache.File(ctx, "debian-"+strings.ReplaceAll(name, " ", "-"), []any{s, debian.Release, oci.Modified},
		func(ctx context.Context, path string) error {
			if err := debian.Install(ctx); err != nil {
				return err
			}
			b.Progress("installing Debian packages for the %s from %s", name, s.Mirror)
			start := time.Now()
			if err := s.Build(ctx, path, oci.Modified); err != nil {
				return err
			}
			b.Progress("installed Debian packages for the %s (%s)", name, since(start))
			return nil
		})
	if err != nil {
		return nil, err
	}
	return os.Open(path)
}

// Kubeadm links kubeadm of a version of Kubernetes to VERSION/kubeadm in a folder.
func (b *Builder) Kubeadm(ctx context.Context, version, dir string) error {
	program, err := programs.Kubeadm(version)
	if err != nil {
		return err
	}
	path, err := b.program(ctx, program)
	if err != nil {
		return err
	}
	link := filepath.Join(dir, version, program.Name)
	if err := os.MkdirAll(filepath.Dir(link), 0o755); err != nil {
		return err
	}
	if err := os.Remove(link); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if err := os.Symlink(path, link); err != nil {
		return fmt.Errorf("cannot link kubeadm %s: %w", version, err)
	}
	b.Progress("%s is up to date", link)
	return nil
}

// program returns the path of an executable.
func (b *Builder) program(ctx context.Context, p golang.Program) (string, error) {
	inputs, err := p.Inputs(ctx)
	if err != nil {
		return "", err
	}
	// Versions of Kubernetes are kept side by side.
	return b.Cache.File(ctx, p.Name+"-"+p.Module.Version, inputs, func(ctx context.Context, path string) error {
		dir, err := b.Cache.Dir("source-" + p.Name + "-" + p.Module.Version)
		if err != nil {
			return err
		}
		b.Progress("compiling %s", p.Module)
		start := time.Now()
		if err := p.Build(ctx, dir, path); err != nil {
			return err
		}
		b.Progress("compiled %s (%s)", p.Module, since(start))
		return b.Cache.Discard(filepath.Base(dir))
	})
}

// fileName turns the name of an image into that of a file.
func fileName(image string) string { return strings.NewReplacer("/", "-", ":", "-").Replace(image) }

func since(start time.Time) time.Duration { return time.Since(start).Round(100 * time.Millisecond) }
