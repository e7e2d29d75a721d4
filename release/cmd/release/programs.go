package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"sigs.k8s.io/cluster-api/release/attestation"
	"sigs.k8s.io/cluster-api/release/program"
)

// programs compiles clusterctl for all platforms, and capi for Linux, and writes them with their bills of materials.
func (r release) programs(ctx context.Context, f *folder, compiler program.Compiler) (err error) {
	cache, err := exec.CommandContext(ctx, "go", "env", "GOMODCACHE").Output()
	if err != nil {
		return fmt.Errorf("cannot find the module cache: %w", err)
	}
	work, err := os.MkdirTemp("", "cluster-api-release-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(work)) }()
	for _, p := range r.platforms {
		names := []string{program.Clusterctl}
		if p.OS == "linux" {
			names = append(names, program.Capi)
		}
		compiled, err := compiler.Compile(ctx, p, filepath.Join(work, p.Suffix()), names...)
		if err != nil {
			return err
		}
		for _, name := range names {
			content, err := os.ReadFile(compiled[name])
			if err != nil {
				return err
			}
			if err := f.write(name+"-"+p.Suffix(), name, 0o755, content); err != nil {
				return err
			}
			document, err := attestation.BillOfMaterials(attestation.Executable{
				Name: name, Path: compiled[name], Version: r.version, Platform: p, Time: compiler.Source.Time,
				ModuleCache: strings.TrimSpace(string(cache)),
			})
			if err != nil {
				return err
			}
			if err := f.write(name+"-"+p.Suffix()+".spdx.json", name, 0o600, document); err != nil {
				return err
			}
		}
	}
	return nil
}

// imageFiles copies the list of images, and the bills of materials of the programs in them.
func (r release) imageFiles(f *folder) error {
	if err := f.copy(r.imageList, "images"); err != nil {
		return err
	}
	documents, err := filepath.Glob(filepath.Join(filepath.Dir(r.imageList), "sbom", "*.spdx.json"))
	if err != nil {
		return err
	}
	for _, document := range documents {
		name := filepath.Base(document)
		if f.from[name] != "" {
			continue // the same executable as a program of the release
		}
		if err := f.copy(document, "images"); err != nil {
			return err
		}
	}
	return nil
}
