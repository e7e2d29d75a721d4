// Package image assembles container images of static programs, without a base image, and writes them as OCI layouts and as
// archives that container runtimes load.
//
// Signatures and attestations are made in package signature. Images of nodes are built by the module
// providers/infrastructure-docker/nodeimage.
package image

import (
	"archive/tar"
	"bytes"
	"encoding/pem"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"time"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"
	"golang.org/x/crypto/x509roots/fallback/bundle"

	"sigs.k8s.io/cluster-api/release/program"
)

// user is the user and group of containers, unless a manifest sets another.
const user = 65532

// RefName is the annotation with the name of an image in a layout.
const RefName = "org.opencontainers.image.ref.name"

// Config describes the image of a program.
type Config struct {
	// Executable is the path of the program in the image.
	Executable string
	// Annotations are those of the image, its index and, as labels, its configuration.
	Annotations map[string]string
	// Time of all files and of the image.
	Time time.Time
}

// New returns the image of a compiled program for a platform.
func New(c Config, p program.Platform, executable string) (v1.Image, error) {
	base, err := layer(c.Time, base()...)
	if err != nil {
		return nil, err
	}
	content, err := os.ReadFile(executable)
	if err != nil {
		return nil, err
	}
	top, err := layer(c.Time, file{name: c.Executable[1:], mode: 0o755, content: content})
	if err != nil {
		return nil, err
	}
	image := mutate.ConfigMediaType(mutate.MediaType(empty.Image, types.OCIManifestSchema1), types.OCIConfigJSON)
	image, err = mutate.Append(image,
		mutate.Addendum{Layer: base, History: v1.History{Created: v1.Time{Time: c.Time}, CreatedBy: "certificates, users"}},
		mutate.Addendum{Layer: top, History: v1.History{Created: v1.Time{Time: c.Time}, CreatedBy: c.Executable}})
	if err != nil {
		return nil, fmt.Errorf("cannot add layers: %w", err)
	}
	config, err := image.ConfigFile()
	if err != nil {
		return nil, err
	}
	config = config.DeepCopy()
	config.OS, config.Architecture, config.Created = p.OS, p.Arch, v1.Time{Time: c.Time}
	config.Config = v1.Config{
		User:       fmt.Sprintf("%d:%d", user, user),
		Env:        []string{"PATH=/", "HOME=/home/nonroot", "SSL_CERT_FILE=/" + certificatesFile},
		Entrypoint: []string{c.Executable},
		WorkingDir: "/home/nonroot",
		Labels:     maps.Clone(c.Annotations),
	}
	if image, err = mutate.ConfigFile(image, config); err != nil {
		return nil, err
	}
	annotated, ok := mutate.Annotations(image, c.Annotations).(v1.Image)
	if !ok {
		return nil, fmt.Errorf("cannot annotate an image of type %T", image)
	}
	return annotated, nil
}

// Index returns an index of images of several platforms.
func Index(c Config, platforms []program.Platform, images map[program.Platform]v1.Image) (v1.ImageIndex, error) {
	index := mutate.IndexMediaType(empty.Index, types.OCIImageIndex)
	for _, p := range platforms {
		index = mutate.AppendManifests(index, mutate.IndexAddendum{
			Add:        images[p],
			Descriptor: v1.Descriptor{Platform: &v1.Platform{OS: p.OS, Architecture: p.Arch}},
		})
	}
	annotated, ok := mutate.Annotations(index, c.Annotations).(v1.ImageIndex)
	if !ok {
		return nil, fmt.Errorf("cannot annotate an index of type %T", index)
	}
	return annotated, nil
}

// NewLayout creates an empty OCI layout in a folder, which it replaces.
func NewLayout(dir string) (layout.Path, error) {
	if err := os.RemoveAll(dir); err != nil {
		return "", err
	}
	path, err := layout.Write(dir, empty.Index)
	if err != nil {
		return "", fmt.Errorf("cannot create the OCI layout %s: %w", dir, err)
	}
	return path, nil
}

// WriteArchive writes an image as an archive that docker load, podman load and ctr images import read.
func WriteArchive(path string, tag name.Tag, image v1.Image) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	if err := tarball.WriteToFile(path, tag, image); err != nil {
		return fmt.Errorf("cannot write %s: %w", path, err)
	}
	return nil
}

const certificatesFile = "etc/ssl/certs/ca-certificates.crt"

// file is a file or, without content, a directory of an image.
type file struct {
	name    string
	mode    int64
	content []byte
	owner   int
}

// base returns the files that all programs share: users, the certificates of public CAs, and writable directories for containers
// whose root file system is not read-only.
func base() []file {
	return []file{
		{name: "etc/", mode: 0o755},
		{name: "etc/group", mode: 0o644, content: fmt.Appendf(nil, "root:x:0:\nnonroot:x:%d:\n", user)},
		{name: "etc/passwd", mode: 0o644, content: fmt.Appendf(nil,
			"root:x:0:0:root:/root:/sbin/nologin\nnonroot:x:%d:%d:nonroot:/home/nonroot:/sbin/nologin\n", user, user)},
		{name: "etc/ssl/", mode: 0o755},
		{name: "etc/ssl/certs/", mode: 0o755},
		{name: certificatesFile, mode: 0o644, content: certificates()},
		{name: "home/", mode: 0o755},
		{name: "home/nonroot/", mode: 0o700, owner: user},
		{name: "tmp/", mode: 0o1777},
	}
}

// certificates returns the root certificates of Mozilla that have no further constraints, which a file cannot express.
func certificates() []byte {
	var out bytes.Buffer
	for root := range bundle.Roots() {
		if root.Constraint == nil {
			// Writing to a buffer does not fail.
			_ = pem.Encode(&out, &pem.Block{Type: "CERTIFICATE", Bytes: root.Certificate})
		}
	}
	return out.Bytes()
}

// layer returns a layer with files.
func layer(modified time.Time, files ...file) (v1.Layer, error) {
	var archive bytes.Buffer
	writer := tar.NewWriter(&archive)
	for _, f := range files {
		header := &tar.Header{
			Typeflag: tar.TypeReg, Name: f.name, Mode: f.mode, Size: int64(len(f.content)), Uid: f.owner, Gid: f.owner,
			ModTime: modified, Format: tar.FormatPAX,
		}
		if f.name[len(f.name)-1] == '/' {
			header.Typeflag = tar.TypeDir
		}
		if err := writer.WriteHeader(header); err != nil {
			return nil, fmt.Errorf("cannot archive %s: %w", f.name, err)
		}
		if _, err := writer.Write(f.content); err != nil {
			return nil, fmt.Errorf("cannot archive %s: %w", f.name, err)
		}
	}
	if err := writer.Close(); err != nil {
		return nil, err
	}
	opener := func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(archive.Bytes())), nil }
	return tarball.LayerFromOpener(opener, tarball.WithMediaType(types.OCILayer), tarball.WithCompressedCaching)
}
