package house

import (
	"cmp"
	"fmt"
	"io/fs"
	"maps"
	"path"
	"slices"
	"strings"

	"golang.org/x/mod/modfile"
	gomodule "golang.org/x/mod/module"
)

// RootModule is the file with the authoritative versions.
const RootModule = "go.mod"

// kubernetes is the prefix of the modules that are released together, one version for all of them.
const kubernetes = "k8s.io/"

// CheckModules compares all go.mod files below the root of tree with the root's:
//
//   - the version of Go is the same;
//   - direct requirements have the root's version if the root also requires them;
//   - modules of a Kubernetes release have the root's version, even if they are indirect or replaced.
//
// Other indirect requirements may differ: each module has its own module graph, and a tool may need newer versions. Modules in
// the directories in separate are not linked with others; only their version of Go is compared.
func CheckModules(tree fs.FS, separate ...string) ([]Finding, error) {
	files, err := readModules(tree)
	if err != nil {
		return nil, err
	}
	root, ok := files[RootModule]
	if !ok {
		return nil, fmt.Errorf("%s: %w", RootModule, fs.ErrNotExist)
	}
	c := moduleChecker{goVersion: root.Go.Version, wanted: versions(root)}
	for _, name := range slices.Sorted(maps.Keys(files)) {
		c.compareGo(name, files[name])
		if !slices.Contains(separate, path.Dir(name)) {
			c.compare(name, files[name])
		}
	}
	slices.SortStableFunc(c.findings, func(a, b Finding) int {
		return cmp.Or(cmp.Compare(a.File, b.File), cmp.Compare(a.Line, b.Line))
	})
	return c.findings, nil
}

// readModules parses all go.mod files, except in directories that the go command ignores.
func readModules(tree fs.FS) (map[string]*modfile.File, error) {
	files := map[string]*modfile.File{}
	err := fs.WalkDir(tree, ".", func(name string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir() && name != "." &&
			(entry.Name() == "testdata" || strings.HasPrefix(entry.Name(), ".") || strings.HasPrefix(entry.Name(), "_")):
			return fs.SkipDir
		case entry.IsDir() || entry.Name() != "go.mod":
			return nil
		}
		raw, err := fs.ReadFile(tree, name)
		if err != nil {
			return err
		}
		parsed, err := modfile.Parse(name, raw, nil)
		if err != nil {
			return err
		}
		if parsed.Go == nil {
			return fmt.Errorf("%s has no version of Go", name)
		}
		files[name] = parsed
		return nil
	})
	return files, err
}

// versions returns the requirements of a module by path, without modules of this repository, which are replaced by
// directories.
func versions(f *modfile.File) map[string]string {
	out := map[string]string{}
	for _, r := range f.Require {
		out[r.Mod.Path] = r.Mod.Version
	}
	for _, r := range f.Replace {
		if r.New.Version == "" {
			delete(out, r.Old.Path)
		}
	}
	return out
}

// moduleChecker collects the findings about versions.
type moduleChecker struct {
	goVersion string
	wanted    map[string]string
	findings  []Finding
}

func (c *moduleChecker) compareGo(name string, f *modfile.File) {
	if f.Go.Version != c.goVersion {
		c.reportf(name, f.Go.Syntax, "go %s, but the root module has %s", f.Go.Version, c.goVersion)
	}
}

func (c *moduleChecker) compare(name string, f *modfile.File) {
	release := c.wanted[kubernetes+"apimachinery"]
	for _, r := range f.Require {
		switch wanted, shared := c.wanted[r.Mod.Path]; {
		case strings.HasPrefix(r.Mod.Path, kubernetes) && staging(r.Mod.Version) && staging(release):
			c.version(name, r.Syntax, r.Mod, release)
		case shared && !r.Indirect:
			c.version(name, r.Syntax, r.Mod, wanted)
		}
	}
	for _, r := range f.Replace {
		if strings.HasPrefix(r.New.Path, kubernetes) && staging(r.New.Version) && staging(release) {
			c.version(name, r.Syntax, r.New, release)
		}
	}
}

// staging reports whether a version is that of a library in a Kubernetes release: v0.36.3 is part of Kubernetes 1.36.3.
// k8s.io/klog and others have their own releases, k8s.io/utils has none.
func staging(version string) bool {
	return strings.HasPrefix(version, "v0.") && version != "v0.0.0" && !gomodule.IsPseudoVersion(version)
}

func (c *moduleChecker) version(name string, at *modfile.Line, got gomodule.Version, wanted string) {
	if got.Version != wanted {
		c.reportf(name, at, "%s %s, but the root module has %s", got.Path, got.Version, wanted)
	}
}

func (c *moduleChecker) reportf(name string, at *modfile.Line, format string, args ...any) {
	c.findings = append(c.findings, Finding{File: name, Line: at.Start.Line, Message: fmt.Sprintf(format, args...)})
}
