package testenv

import (
	"os"
	"regexp"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// listed matches a line of a package comment with a step: its name, indented by a tab, and what it guarantees.
var listed = regexp.MustCompile(`(?m)^//\t([a-z][a-z-]*)  *\S`)

// StepsDocumented fails the test if doc.go of its package does not list exactly these steps, in this order. The names are those of
// step.Controller.Names.
func StepsDocumented(t testing.TB, names []string) {
	t.Helper()
	content, err := os.ReadFile("doc.go")
	if err != nil {
		t.Fatal(err)
	}
	var documented []string
	for _, match := range listed.FindAllStringSubmatch(string(content), -1) {
		documented = append(documented, match[1])
	}
	if diff := cmp.Diff(names, documented); diff != "" {
		t.Errorf("doc.go does not list the steps of the controller, -steps +doc.go:\n%s", diff)
	}
}
