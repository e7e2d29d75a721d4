package testenv

import (
	"io/fs"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// listed matches a line of a package comment with a step: its name, indented by a tab, and what it guarantees.
var listed = regexp.MustCompile(`(?m)^//\t([a-z][a-z-]*)(?:  *(\S.*))?$`)

// StepsDocumented fails the test unless doc.go of its package lists exactly these steps, in this order, and each is in a file of its
// name: step delete-node in deletenode.go. The names are those of step.Controller.Names, of one controller after the other if the
// package has several.
//
// A step is explained where it is first listed. If controllers share steps, or an object that is being deleted takes some of the
// others, only the name is listed again.
func StepsDocumented(t testing.TB, names ...[]string) {
	t.Helper()
	StepsDocumentedExcept(t, nil, names...)
}

// StepsDocumentedExcept is StepsDocumented for a package with steps that have no file of their own. It fails if one of these has, or does
// not exist.
func StepsDocumentedExcept(t testing.TB, withoutFile []string, names ...[]string) {
	t.Helper()
	content, err := os.ReadFile("doc.go")
	if err != nil {
		t.Fatal(err)
	}
	all := slices.Concat(names...)
	for _, problem := range undocumented(string(content), all) {
		t.Error("doc.go " + problem)
	}
	for _, problem := range withoutFiles(os.DirFS("."), all, withoutFile) {
		t.Error(problem)
	}
}

// withoutFiles returns which steps have no file of their own, except for some.
func withoutFiles(folder fs.FS, names, except []string) []string {
	var problems []string
	for i, name := range names {
		file := strings.ReplaceAll(name, "-", "") + ".go"
		if _, err := fs.Stat(folder, file); err != nil && !slices.Contains(except, name) && !slices.Contains(names[:i], name) {
			problems = append(problems, "step "+name+" is not in a file of its own: move it to "+file)
		}
	}
	for _, name := range except {
		_, err := fs.Stat(folder, strings.ReplaceAll(name, "-", "")+".go")
		if err == nil || !slices.Contains(names, name) {
			problems = append(problems, "step "+name+" needs no exception: it is in a file of its own, or does not exist")
		}
	}
	return problems
}

// undocumented returns how a package comment differs from the names of steps.
func undocumented(comment string, names []string) []string {
	var problems, documented []string
	for _, match := range listed.FindAllStringSubmatch(comment, -1) {
		name, explanation := match[1], match[2]
		switch repeated := slices.Contains(documented, name); {
		case repeated && explanation != "":
			problems = append(problems, "explains step "+name+" twice: list only its name the second time")
		case !repeated && explanation == "":
			problems = append(problems, "does not explain step "+name)
		}
		documented = append(documented, name)
	}
	if diff := cmp.Diff(names, documented); diff != "" {
		problems = append(problems, "does not list the steps of the controller, -steps +doc.go:\n"+diff)
	}
	return problems
}
