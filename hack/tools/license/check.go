package license

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// Policy defines which licenses are allowed.
type Policy struct {
	// Allowed are SPDX identifiers.
	Allowed []string
	// Read has the identifiers of license files that this package does not recognize and that were reviewed, by module path
	// and file name, as "path file". For a module without a license file, whose source files refer to a known license, that is
	// "path -".
	Read map[string]string
}

// Check returns the license files of the packages that the policy does not allow, and the packages without one, in
// alphabetical order.
func (p Policy) Check(packages []Package) ([]string, error) {
	seen := map[string]bool{}
	texts := texts{}
	var findings []string
	for _, linked := range packages {
		files, err := linked.Files()
		if err != nil {
			return nil, err
		}
		path, _, _ := strings.Cut(linked.Module, "@")
		if len(files) == 0 && !slices.Contains(p.Allowed, p.Read[path+" -"]) {
			findings = append(findings, linked.Module+" has no license file")
		}
		for _, file := range files {
			if seen[file] {
				continue
			}
			seen[file] = true
			problem, err := p.judge(linked, file, texts)
			if err != nil {
				return nil, err
			}
			if problem != "" {
				findings = append(findings, problem)
			}
		}
	}
	slices.Sort(findings)
	return slices.Compact(findings), nil
}

// texts caches the identified licenses: most files have one of a few texts.
type texts map[string]identified

type identified struct {
	id  string
	err error
}

func (t texts) identify(text []byte) (string, error) {
	known, ok := t[string(text)]
	if !ok {
		known.id, known.err = Identify(text)
		t[string(text)] = known
	}
	return known.id, known.err
}

// judge returns why a license file is not allowed, or "".
func (p Policy) judge(linked Package, file string, known texts) (string, error) {
	path, _, _ := strings.Cut(linked.Module, "@")
	name, err := filepath.Rel(linked.Root, file)
	if err != nil {
		return "", err
	}
	id, read := p.Read[path+" "+filepath.ToSlash(name)]
	if !read {
		text, err := os.ReadFile(file)
		if err != nil {
			return "", fmt.Errorf("reading the license of %s: %w", linked.Module, err)
		}
		if id, err = known.identify(text); err != nil {
			return fmt.Sprintf("%s: %s is %v: review it and add it to the policy", linked.Module, name, err), nil
		}
	}
	if !slices.Contains(p.Allowed, id) {
		return fmt.Sprintf("%s: %s is %s, which is not allowed", linked.Module, name, id), nil
	}
	return "", nil
}
