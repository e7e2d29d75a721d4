package conformance

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	clusterctlv1 "sigs.k8s.io/cluster-api/api/clusterctl/v1alpha3"
	"sigs.k8s.io/cluster-api/packages"
	"sigs.k8s.io/cluster-api/sdk/contract"
)

// Severity is the weight of a Finding.
type Severity string

// The severities.
const (
	// Error is a violation of what the contract requires.
	Error Severity = "error"
	// Warning is a deviation from what the contract recommends.
	Warning Severity = "warning"
)

// The chapters of the contract, the sources of the rules.
const (
	chapterRepository = "provider repositories"
	chapterMetadata   = "metadata YAML"
	chapterComponents = "components YAML"
	chapterTemplates  = "workload cluster templates"
	chapterClasses    = "ClusterClass definitions"
	chapterCRDs       = "rules for provider CRDs"
	chapterRBAC       = "RBAC aggregation"
)

// Finding is one violation of the contract.
type Finding struct {
	Severity Severity `json:"severity"`
	// File is the path of the file, or of the folder that lacks one.
	File string `json:"file"`
	// Line starts at 1; 0 means the whole file.
	Line int `json:"line,omitempty"`
	// Rule is the chapter of the contract that has the rule.
	Rule string `json:"rule"`
	// Message says what is wrong, and how to correct it.
	Message string `json:"message"`
}

// String formats the finding like a compiler.
func (f Finding) String() string {
	position := f.File
	if f.Line > 0 {
		position = fmt.Sprintf("%s:%d", f.File, f.Line)
	}
	return fmt.Sprintf("%s: %s: %s (%s)", position, f.Severity, f.Message, f.Rule)
}

// Release is the files of one version of a provider.
type Release struct {
	// Folder holds the files: a path, or the URL of a repository.
	Folder string
	// Provider is the provider's type and name.
	Provider packages.Provider
	// Version is a semantic version.
	Version string

	names func() ([]string, error)
	// read returns a file, nil if it does not exist.
	read func(name string) ([]byte, error)
}

// Open returns the Release in a folder of a local repository, whose path ends with {manifest label}/{version}. label and
// version, unless empty, are used instead of the names of the folders.
func Open(folder, label, version string) (*Release, error) {
	absolute, err := filepath.Abs(folder)
	if err != nil {
		return nil, err
	}
	info, err := os.Stat(absolute)
	if err != nil {
		return nil, fmt.Errorf("cannot read the release: %w", err)
	}
	if !info.IsDir() {
		return nil, fmt.Errorf("%s is a file: set the folder that holds all files of the release", folder)
	}
	files := localFolder(filepath.Clean(folder))
	r := &Release{Folder: string(files), Version: cmp.Or(version, filepath.Base(absolute)), names: files.names, read: files.read}
	if _, err := packages.ParseVersion(r.Version); err != nil {
		return nil, fmt.Errorf("cannot determine the version of the release in %s: %w: rename the folder, or use --version", folder, err)
	}
	label = cmp.Or(label, filepath.Base(filepath.Dir(absolute)))
	if r.Provider, err = ParseLabel(label); err != nil {
		return nil, fmt.Errorf("cannot determine the provider of the release in %s: %w: rename the parent folder, or use --provider", folder, err)
	}
	return r, nil
}

// ParseLabel returns the provider with a manifest label, such as infrastructure-aws.
func ParseLabel(label string) (packages.Provider, error) {
	if label == clusterctlv1.ClusterAPIProviderName {
		return packages.Provider{Name: label, Type: clusterctlv1.CoreProviderType}, nil
	}
	for _, t := range packages.Types() {
		name, found := strings.CutPrefix(label, packages.Word(t)+"-")
		p := packages.Provider{Name: name, Type: t}
		if found && t != clusterctlv1.CoreProviderType && p.Validate() == nil {
			return p, nil
		}
	}
	return packages.Provider{}, fmt.Errorf("%q is not a provider label, for example infrastructure-aws", label)
}

// path returns the path or URL of a file.
func (r *Release) path(file string) string {
	if strings.Contains(r.Folder, "://") {
		return strings.TrimSuffix(r.Folder+"/"+file, "/")
	}
	return filepath.Join(r.Folder, file)
}

// checker collects findings.
type checker struct {
	*Release
	// series is the contract of the release's series, which all kinds that the core provider refers to must support.
	series   contract.Version
	findings []Finding
}

func (c *checker) add(s Severity, file string, line int, rule, format string, args ...any) {
	c.findings = append(c.findings, Finding{Severity: s, File: c.path(file), Line: line, Rule: rule, Message: fmt.Sprintf(format, args...)})
}

// Check returns the findings, sorted by file and line. The error is that of reading the folder.
func (r *Release) Check() ([]Finding, error) {
	c := &checker{Release: r, series: contract.V1Beta1}
	names, err := r.names()
	if err != nil {
		return nil, fmt.Errorf("cannot read the release: %w", err)
	}
	if err := errors.Join(c.metadata(), c.components(names), c.templates(names)); err != nil {
		return nil, err
	}
	slices.SortStableFunc(c.findings, func(a, b Finding) int { return cmp.Or(cmp.Compare(a.File, b.File), cmp.Compare(a.Line, b.Line)) })
	return c.findings, nil
}

// localFolder is a Release in files.
type localFolder string

func (f localFolder) names() ([]string, error) {
	entries, err := os.ReadDir(string(f))
	var names []string
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names, err
}

func (f localFolder) read(name string) ([]byte, error) {
	raw, err := os.ReadFile(filepath.Join(string(f), name))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("cannot read the release: %w", err)
	}
	return append([]byte{}, raw...), nil
}
