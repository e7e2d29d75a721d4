// Package license finds out under which licenses the modules are that a program links.
//
// It asks the go command what is linked and reads the license files beside it in the module cache, so it needs no network.
// Which licenses are acceptable is for the caller to say. Text that other code quotes inside its files is not looked at.
package license

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/go-enry/go-license-detector/v4/licensedb"
)

// certain is how much a text has to be like that of a license, 1 being the same. Copyright lines and reformatting cost a few
// percent; the closest license that says something else, such as BSD-3-Clause for BSD-2-Clause, is below 0.9.
const certain = 0.85

// ErrUnknown is matched by errors about a text that is not that of a known license.
var ErrUnknown = errors.New("not the text of a known license")

// Package is a linked package of another module.
type Package struct {
	// Module is the module's path and version, path@version.
	Module string
	// Dir is the package's directory, Root that of its module.
	Dir, Root string
}

// Linked lists the packages that the programs of a module link, without those of the standard library and of modules that
// have no version because they are directories of the same repository. dir is a directory of the module, patterns name the
// programs.
func Linked(ctx context.Context, dir string, patterns ...string) ([]Package, error) {
	const format = `{{with .Module}}{{if .Replace}}{{.Path}}@{{.Replace.Version}}{{else}}{{.Path}}@{{.Version}}{{end}}	{{.Dir}}	{{$.Dir}}{{end}}`
	list := exec.CommandContext(ctx, "go", append([]string{"list", "-deps", "-f", format, "--"}, patterns...)...)
	list.Dir = dir
	var out, problem bytes.Buffer
	list.Stdout, list.Stderr = &out, &problem
	if err := list.Run(); err != nil {
		return nil, fmt.Errorf("listing what %s in %s links: %w: %s", strings.Join(patterns, " "), dir, err, strings.TrimSpace(problem.String()))
	}
	var packages []Package
	for line := range strings.Lines(out.String()) {
		fields := strings.Split(strings.TrimSpace(line), "\t")
		if len(fields) == 3 && !strings.HasSuffix(fields[0], "@") {
			packages = append(packages, Package{Module: fields[0], Root: fields[1], Dir: fields[2]})
		}
	}
	return packages, nil
}

// Files lists the license files that are valid for a package: those in its directory, or in the closest one above it that has
// any, up to the root of the module.
func (p Package) Files() ([]string, error) {
	for dir := p.Dir; ; dir = filepath.Dir(dir) {
		entries, err := os.ReadDir(dir)
		if err != nil {
			return nil, fmt.Errorf("reading licenses of %s: %w", p.Module, err)
		}
		var files []string
		for _, entry := range entries {
			if entry.Type().IsRegular() && licenseName(entry.Name()) {
				files = append(files, filepath.Join(dir, entry.Name()))
			}
		}
		if len(files) > 0 || dir == p.Root || len(dir) < len(p.Root) {
			return files, nil
		}
	}
}

// licenseName tells whether a file of this name says under which license the code is. LICENSE.docs is for documents.
func licenseName(file string) bool {
	return regexp.MustCompile(`(?i)^(licen[cs]e|copying|unlicense)([-._ ].*)?$`).MatchString(file) &&
		!slices.Contains([]string{".go", ".docs"}, filepath.Ext(file))
}

// Identify returns the SPDX identifier of a license's text. An error that matches ErrUnknown names the closest license.
func Identify(text []byte) (string, error) {
	likely := licensedb.InvestigateLicenseText(text)
	best := slices.MaxFunc(append(slices.Sorted(maps.Keys(likely)), ""), func(a, b string) int {
		return cmp.Or(cmp.Compare(likely[a], likely[b]), cmp.Compare(b, a))
	})
	if likely[best] >= certain {
		return best, nil
	}
	if best == "" {
		return "", ErrUnknown
	}
	return "", fmt.Errorf("%w: it is closest to %s (%.0f %%)", ErrUnknown, best, 100*likely[best])
}
