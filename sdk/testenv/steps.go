package testenv

import (
	"os"
	"regexp"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// listed matches a line of a package comment with a step: its name, indented by a tab, and what it guarantees.
var listed = regexp.MustCompile(`(?m)^//\t([a-z][a-z-]*)(?:  *(\S.*))?$`)

// StepsDocumented fails the test if doc.go of its package does not list exactly these steps, in this order. The names are those of
// step.Controller.Names, of one controller after the other if the package has several.
//
// A step is explained where it is first listed. If controllers share steps, or an object that is being deleted takes some of the
// others, only the name is listed again.
func StepsDocumented(t testing.TB, names ...[]string) {
	t.Helper()
	content, err := os.ReadFile("doc.go")
	if err != nil {
		t.Fatal(err)
	}
	for _, problem := range undocumented(string(content), slices.Concat(names...)) {
		t.Error("doc.go " + problem)
	}
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
