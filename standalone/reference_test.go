package standalone

import (
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"sigs.k8s.io/cluster-api/docs/manual"
	"sigs.k8s.io/cluster-api/sdk/version"
)

// TestReference checks that all managers are in the page of their flags, and that the book renders it.
func TestReference(t *testing.T) {
	pages, err := Reference(&cobra.Command{Use: "capi"})
	if err != nil {
		t.Fatal(err)
	}
	text := string(pages[1].Source)
	for _, want := range []string{
		"| `--machine-concurrency int` | `100` | Number of Machines to process at the same time |", "| `ClusterTopology` | alpha | false |",
		"## Flags of all managers", "### Watch flags\n\n```text\n", "### Leader election flags", "      --webhook-port int\n",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("the page does not have %q", want)
		}
	}
	for name := range Components() {
		if !strings.Contains(text, "\n## "+name+"\n") {
			t.Errorf("the page does not have %s", name)
		}
	}
	site, err := manual.New(version.Info{GitVersion: "v2.0.0"}, pages...)
	if err != nil || len(site["manager-flags.html"]) == 0 || len(site["capi-commands.html"]) == 0 {
		t.Errorf("the book does not have the pages: %v", err)
	}
}
