// Package license determines the licenses of the modules that a program links.
//
// It lists linked packages with the go command, and reads the license files in the module cache, so it needs no network. The
// caller decides which licenses are allowed. License texts in source files are ignored.
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

// certain is the minimum similarity of a text to a license; 1 is identical. Copyright lines and formatting cost a few percent;
// similar licenses, such as BSD-3-Clause and BSD-2-Clause, are below 0.9.
const certain = 0.85

// ErrUnknown is returned for texts of unknown licenses.
var ErrUnknown = errors.New("not the text of a known license")

// Package is a linked package of another module.
type Package struct {
	// Module is the module's path and version, path@version.
	Module string
	// Dir is the package's directory, Root that of its module.
	Dir, Root string
}

// Linked lists the packages that the programs of a module link, without the standard library and modules of this repository,
// which have no version. dir is a directory of the module, patterns select the programs.
func Linked(ctx context.Context, dir string, patterns ...string) ([]Package, error) {
	const format = `{{with .Module}}{{if .Replace}}{{.Path}}@{{.Replace.Version}}{{else}}{{.Path}}@{{.Version}}{{end}}` +
		`	{{.Dir}}	{{$.Dir}}{{end}}`
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

// Files lists the license files of a package: those in its directory, or in the closest parent directory that has any, up to
// the root of the module.
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

// licenseName reports whether a file with this name has the license of code. LICENSE.docs is for documents.
func licenseName(file string) bool {
	return regexp.MustCompile(`(?i)^(licen[cs]e|copying|unlicense)([-._ ].*)?$`).MatchString(file) &&
		!slices.Contains([]string{".go", ".docs"}, filepath.Ext(file))
}

// Identify returns the SPDX identifier of a license's text. An ErrUnknown error includes the closest license.
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
	return "", fmt.Errorf("%w: the closest is %s (%.0f %%)", ErrUnknown, best, 100*likely[best])
}
