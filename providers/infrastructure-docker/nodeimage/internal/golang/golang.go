// Package golang builds programs from published Go modules: without a checkout of their repositories, and only from what
// the module proxy serves and the checksum database confirms.
package golang

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/mod/modfile"
	"golang.org/x/mod/module"
)

// Program is a program that is built from a module.
type Program struct {
	// Name of the executable.
	Name string
	// Module has the program, or the packages that Source imports.
	Module module.Version
	// Package to build, by import path. Ignored if there is Source.
	Package string
	// Source are the Go files of a main package.
	Source fs.FS
	// Staged is the version of those modules that Module replaces by folders of its repository.
	Staged string
	// AtLeast are versions of other modules that the program needs if Module requires earlier ones.
	AtLeast []module.Version
	// Variables are set to values at link time.
	Variables map[string]string
}

// Inputs returns what the executable depends on, beside the versions of other modules, which follow from Module's go.mod.
func (p Program) Inputs(ctx context.Context) (any, error) {
	version, err := run(ctx, "", "env", "GOVERSION", "GOOS", "GOARCH")
	if err != nil {
		return nil, err
	}
	source := map[string]string{}
	if p.Source != nil {
		err = fs.WalkDir(p.Source, ".", func(name string, entry fs.DirEntry, err error) error {
			if err != nil || entry.IsDir() {
				return err
			}
			content, err := fs.ReadFile(p.Source, name)
			source[name] = string(content)
			return err
		})
	}
	inputs := []any{p.Name, p.Module, p.Package, p.Staged, p.Variables, source, strings.Fields(string(version))}
	if len(p.AtLeast) > 0 {
		inputs = append(inputs, p.AtLeast)
	}
	return inputs, err
}

// Build builds the executable at path, in an empty folder dir. It is static, and the same on every machine.
func (p Program) Build(ctx context.Context, dir, path string) error {
	if err := p.writeModule(ctx, dir); err != nil {
		return err
	}
	target := p.Package
	if p.Source != nil {
		target = "."
		if err := os.CopyFS(dir, p.Source); err != nil {
			return fmt.Errorf("cannot write the source of %s: %w", p.Name, err)
		}
	}
	// -mod=mod completes go.mod and go.sum, with the versions that the requirement implies.
	_, err := run(ctx, dir, "build", "-mod=mod", "-trimpath", "-buildvcs=false", "-ldflags", p.linkerFlags(), "-o", path, target)
	if err != nil {
		return fmt.Errorf("cannot build %s from %s: %w", p.Name, p.Module, err)
	}
	return nil
}

func (p Program) linkerFlags() string {
	flags := []string{"-s", "-w"}
	for name, value := range p.Variables {
		flags = append(flags, "-X "+name+"="+value)
	}
	slices.Sort(flags[2:])
	return strings.Join(flags, " ")
}

// writeModule writes the go.mod file of a module that requires p.Module.
func (p Program) writeModule(ctx context.Context, dir string) error {
	required, err := p.required(ctx, dir)
	if err != nil {
		return err
	}
	file := new(modfile.File)
	if err := file.AddModuleStmt("sigs.k8s.io/cluster-api/providers/infrastructure-docker/nodeimage/programs/" + p.Name); err != nil {
		return err
	}
	if required.Go != nil {
		if err := file.AddGoStmt(required.Go.Version); err != nil {
			return err
		}
	}
	for _, setting := range required.Godebug {
		if err := file.AddGodebug(setting.Key, setting.Value); err != nil {
			return err
		}
	}
	for _, m := range append([]module.Version{p.Module}, p.AtLeast...) {
		if err := file.AddRequire(m.Path, m.Version); err != nil {
			return err
		}
	}
	for _, replaced := range required.Replace {
		if replaced.New.Version != "" || p.Staged == "" {
			continue
		}
		if err := file.AddReplace(replaced.Old.Path, "", replaced.Old.Path, p.Staged); err != nil {
			return err
		}
	}
	content, err := file.Format()
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(dir, "go.mod"), content, 0o644)
}

// required returns the go.mod file of p.Module.
func (p Program) required(ctx context.Context, dir string) (*modfile.File, error) {
	out, err := run(ctx, dir, "mod", "download", "-json", p.Module.String())
	var downloaded struct{ GoMod, Error string }
	if parseErr := json.Unmarshal(out, &downloaded); parseErr != nil {
		return nil, fmt.Errorf("cannot download %s: %w", p.Module, errors.Join(err, parseErr))
	}
	if downloaded.Error != "" {
		return nil, fmt.Errorf("cannot download %s; check the version, and the module proxy in GOPROXY: %s", p.Module, downloaded.Error)
	}
	content, err := os.ReadFile(downloaded.GoMod)
	if err != nil {
		return nil, err
	}
	return modfile.Parse(downloaded.GoMod, content, nil)
}

// run runs the go command for static programs of this architecture, whatever the flags and workspace of the user are.
func run(ctx context.Context, dir string, args ...string) ([]byte, error) {
	cmd := exec.CommandContext(ctx, "go", args...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOFLAGS=", "GOWORK=off", "GOOS=linux", "GOAMD64=v1", "GOARM64=v8.0", "GOEXPERIMENT=")
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Run(); err != nil {
		return stdout.Bytes(), fmt.Errorf("go %s: %w: %s", args[0], err, lastLines(stderr.String(), 8))
	}
	return stdout.Bytes(), nil
}

func lastLines(s string, n int) string {
	lines := strings.Split(strings.TrimSpace(s), "\n")
	lines = slices.DeleteFunc(lines, func(line string) bool { return strings.HasPrefix(line, "go: downloading ") })
	return strings.Join(lines[max(0, len(lines)-n):], "\n")
}
