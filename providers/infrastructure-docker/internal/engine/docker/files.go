package docker

import (
	"archive/tar"
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"strconv"
	"strings"

	"github.com/moby/moby/client"

	"sigs.k8s.io/cluster-api/providers/infrastructure-docker/internal/engine"
)

// script writes its input to the file $1 with mode $2 and owner $3; $4 is "append" or "replace". The file is never readable by
// others than root before it has its mode.
const script = `set -eu
mkdir -p "${1%/*}/"
if [ "$4" = append ]; then (umask 077; cat >> "$1"); else (umask 077; cat > "$1"); fi
chown "$3" "$1"
chmod "$2" "$1"
`

// Write implements engine.Engine.
func (d *Docker) Write(ctx context.Context, name string, files ...engine.File) error {
	for len(files) > 0 {
		run := 0
		for run < len(files) && archivable(files[run]) {
			run++
		}
		if run == 0 {
			if err := d.writeOne(ctx, name, files[0]); err != nil {
				return err
			}
			files = files[1:]
			continue
		}
		archive, err := archiveOf(files[:run])
		if err != nil {
			return &engine.Error{Reason: engine.Invalid, Attempt: fmt.Sprintf("cannot write files into container %q", name), Err: err}
		}
		err = d.Exec(ctx, name, engine.Command{Args: []string{"tar", "-x", "-p", "-f", "-", "-C", "/"}, Stdin: archive})
		if err != nil {
			return err
		}
		files = files[run:]
	}
	return nil
}

// writeOne writes a file with a shell.
func (d *Docker) writeOne(ctx context.Context, name string, f engine.File) error {
	if err := checkPath(f.Path); err != nil {
		return &engine.Error{Reason: engine.Invalid, Attempt: fmt.Sprintf("cannot write a file into container %q", name), Err: err}
	}
	action := "replace"
	if f.Append {
		action = "append"
	}
	user, group, _ := strings.Cut(f.Owner, ":")
	owner := cmp.Or(user, "0") + ":" + cmp.Or(group, "0")
	return d.Exec(ctx, name, engine.Command{
		Args:  []string{"sh", "-c", script, "sh", f.Path, strconv.FormatInt(modeOf(f), 8), owner, action},
		Stdin: bytes.NewReader(f.Content),
	})
}

// Copy implements engine.Engine.
func (d *Docker) Copy(ctx context.Context, name string, files ...engine.File) error {
	if len(files) == 0 {
		return nil
	}
	attempt := fmt.Sprintf("cannot copy files into container %q", name)
	if err := checkName(attempt, name); err != nil {
		return err
	}
	for _, f := range files {
		if !archivable(f) {
			return &engine.Error{
				Reason: engine.Invalid, Attempt: attempt, Err: fmt.Errorf("%s: cannot append, or look up owner %q", f.Path, f.Owner),
			}
		}
	}
	archive, err := archiveOf(files)
	if err != nil {
		return &engine.Error{Reason: engine.Invalid, Attempt: attempt, Err: err}
	}
	return d.within(ctx, longTimeout, attempt, func(ctx context.Context) error {
		_, err := d.api.CopyToContainer(ctx, name, client.CopyToContainerOptions{DestinationPath: "/", Content: archive})
		return err
	})
}

// archivable reports whether an archive has everything that a file needs: it has no names that must be looked up.
func archivable(f engine.File) bool {
	_, _, err := ids(f.Owner)
	return err == nil && !f.Append
}

// ids returns the numbers of an owner.
func ids(owner string) (user, group int, err error) {
	of := func(s string) (int, error) {
		if s == "" || s == "root" {
			return 0, nil
		}
		n, err := strconv.ParseUint(s, 10, 31)
		return int(n), err
	}
	u, g, _ := strings.Cut(owner, ":")
	if user, err = of(u); err != nil {
		return 0, 0, err
	}
	group, err = of(g)
	return user, group, err
}

// archiveOf returns a tar archive of files, relative to the root.
func archiveOf(files []engine.File) (io.Reader, error) {
	out := &bytes.Buffer{}
	w := tar.NewWriter(out)
	for _, f := range files {
		if err := checkPath(f.Path); err != nil {
			return nil, err
		}
		user, group, err := ids(f.Owner)
		if err != nil {
			return nil, err
		}
		header := &tar.Header{
			Typeflag: tar.TypeReg, Name: strings.TrimPrefix(f.Path, "/"), Size: int64(len(f.Content)), Mode: modeOf(f), Uid: user, Gid: group,
		}
		if err := w.WriteHeader(header); err != nil {
			return nil, fmt.Errorf("%s: %w", f.Path, err)
		}
		if _, err := w.Write(f.Content); err != nil {
			return nil, fmt.Errorf("%s: %w", f.Path, err)
		}
	}
	return out, w.Close()
}

// checkPath accepts the absolute path of a file, without elements such as "..".
func checkPath(p string) error {
	if !strings.HasPrefix(p, "/") || path.Clean(p) != p || p == "/" || strings.ContainsRune(p, 0) {
		return fmt.Errorf("path %q must be absolute and clean", p)
	}
	return nil
}

// modeOf returns the mode as Unix counts.
func modeOf(f engine.File) int64 {
	if f.Mode == 0 {
		return 0o644
	}
	mode := int64(f.Mode.Perm())
	for bit, unix := range map[os.FileMode]int64{os.ModeSetuid: 0o4000, os.ModeSetgid: 0o2000, os.ModeSticky: 0o1000} {
		if f.Mode&bit != 0 {
			mode |= unix
		}
	}
	return mode
}

// Read implements engine.Engine.
func (d *Docker) Read(ctx context.Context, name, file string) ([]byte, error) {
	var content []byte
	err := d.onContainer(ctx, longTimeout, "cannot read "+file+" in", name, func(ctx context.Context) error {
		copied, err := d.api.CopyFromContainer(ctx, name, client.CopyFromContainerOptions{SourcePath: file})
		if err != nil {
			return err
		}
		defer func() { _ = copied.Content.Close() }()
		archive := tar.NewReader(copied.Content)
		header, err := archive.Next()
		if err != nil {
			return err
		}
		if header.Typeflag != tar.TypeReg {
			return errors.New("it is not a regular file")
		}
		if header.Size > engine.ReadLimit {
			return fmt.Errorf("it has %d bytes: at most %d are allowed", header.Size, engine.ReadLimit)
		}
		content, err = io.ReadAll(archive)
		return err
	})
	return content, err
}
