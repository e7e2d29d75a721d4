package book

import (
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"strings"
)

var (
	quoted       = regexp.MustCompile("`([^`\\s]+)`")
	placeholders = regexp.MustCompile(`<[^<>/]*>`)
	alternatives = regexp.MustCompile(`\{([^{}]*)\}`)
	// members are what follows a package or a file: an exported name, or a line.
	members = regexp.MustCompile(`(\.[A-Z]\w*)+(\(\))?$|:[\w.]+$`)
	// described is a line of the tree: indentation, comma-separated names, and after two spaces a description.
	described = regexp.MustCompile(`^( *)(\S+(?:, \S+)*)(?:  +(.*))?$`)
)

// repository is the folders and files of the repository, by their paths below its root.
type repository map[string]bool

// list lists a repository, without hidden folders and what is built (generated).
func list(tree fs.FS) (repository, error) {
	all := repository{}
	err := fs.WalkDir(tree, ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if entry.IsDir() && (name == "bin" || name == "out" || name != "." && strings.HasPrefix(entry.Name(), ".")) {
			return fs.SkipDir
		}
		all[name] = true
		return nil
	})
	return all, err
}

// names reports whether text is meant as a path of the repository: it starts with a folder of the root, or ends like a file of
// source code, or is internal.
func (r repository) names(text string) bool {
	first, rest, ok := strings.Cut(text, "/")
	switch {
	case strings.HasPrefix(text, "/") || strings.HasPrefix(text, ".") || strings.Contains(text, "://") || strings.ContainsAny(text, "$=@"):
		return false
	case ok && r[first] && (rest != "" || !strings.Contains(text, ".")):
		return true
	}
	return strings.HasPrefix(text, "internal/") || strings.Contains(text, "/internal/") ||
		ok && strings.HasSuffix(members.ReplaceAllString(text, ""), ".go")
}

// has reports whether a path exists. It may have globs, {alternatives} and <placeholders>, and be relative to any folder of the repository
// unless it starts in the root. What follows "..." is not checked.
func (r repository) has(text string) bool {
	text, _, _ = strings.Cut(text, "...")
	text = strings.TrimSuffix(placeholders.ReplaceAllString(text, "*"), "/")
	if group := alternatives.FindStringSubmatchIndex(text); group != nil {
		for each := range strings.SplitSeq(text[group[2]:group[3]], ",") {
			if !r.has(text[:group[0]] + each + text[group[1]:]) {
				return false
			}
		}
		return true
	}
	first, _, _ := strings.Cut(text, "/")
	for known := range r {
		candidate := known
		if parts := strings.Count(known, "/") - strings.Count(text, "/"); parts > 0 && !r[first] {
			candidate = strings.Join(strings.Split(known, "/")[parts:], "/")
		}
		if ok, err := path.Match(text, candidate); ok && err == nil {
			return true
		}
	}
	short := members.ReplaceAllString(text, "")
	return short != text && r.has(short)
}

// missing returns the paths in the prose of a page that do not exist.
func (r repository) missing(p page) []string {
	var found []string
	for _, match := range quoted.FindAllStringSubmatch(p.prose(), -1) {
		if r.names(match[1]) && !r.has(match[1]) {
			found = append(found, fmt.Sprintf("%s: `%s` does not exist", p.name, match[1]))
		}
	}
	return found
}

// missingInTree returns the paths in a drawing of the tree that do not exist. Lines that are indented are below the one before.
func (r repository) missingInTree(drawing string) []string {
	var found, above []string
	for line := range strings.SplitSeq(drawing, "\n") {
		match := described.FindStringSubmatch(line)
		if match == nil || len(match[1]) > 6 {
			continue // The rest of a description.
		}
		depth := min(len(match[1])/2, len(above))
		names := strings.Split(match[2], ", ")
		folder := path.Join(above[:depth]...)
		above = append(above[:depth:depth], names[0])
		if strings.HasPrefix(match[3], "(files)") {
			names = filesOf(names[0])
		}
		for i, name := range names {
			if i > 0 && !r.has(path.Join(folder, name)) {
				name = path.Join(path.Dir(names[0]), name) // "internal/a, b" is short for internal/a and internal/b.
			}
			if !r.has(path.Join(folder, name)) {
				found = append(found, fmt.Sprintf("the tree has %s, which does not exist", path.Join(folder, name)))
			}
		}
	}
	return found
}

// filesOf returns the Go files that "a/b" stands for.
func filesOf(names string) []string {
	var files []string
	for name := range strings.SplitSeq(names, "/") {
		files = append(files, name+".go")
	}
	return files
}

// listRoot lists the repository at a root.
func listRoot(root string) (repository, error) {
	absolute, err := filepath.Abs(root)
	if err != nil {
		return nil, err
	}
	return list(os.DirFS(absolute))
}
