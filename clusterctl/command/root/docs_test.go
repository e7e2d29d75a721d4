package root

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"sigs.k8s.io/cluster-api/clusterctl/factory"
	"sigs.k8s.io/cluster-api/clusterctl/iostreams"
)

// TestDocs writes the book of clusterctl, which has all commands, and completes the flags of the command.
func TestDocs(t *testing.T) {
	c := newCLI(t)
	dir := filepath.Join(t.TempDir(), "book")
	c.works("docs", "--output-dir", dir)
	raw, err := os.ReadFile(filepath.Join(dir, "clusterctl-commands.html"))
	if err != nil {
		t.Fatal(err)
	}
	streams, _ := iostreams.Test()
	var visit func(*cobra.Command)
	visit = func(cmd *cobra.Command) {
		id := ` id="` + strings.ReplaceAll(cmd.CommandPath(), " ", "-") + `"`
		if !cmd.HasSubCommands() && !cmd.Hidden && !strings.Contains(string(raw), id) {
			t.Errorf("%s is not in the book", cmd.CommandPath())
		}
		for _, sub := range cmd.Commands() {
			if sub.Name() != "alpha" { // It has other names of commands that are in the book.
				visit(sub)
			}
		}
	}
	visit(NewCmd(factory.New(streams, func(string) (string, bool) { return "", false }, nil)))
	for flag, directive := range map[string]string{"--address": ":4\n", "--output-dir": ":16\n"} {
		if out := c.works("__completeNoDesc", "docs", flag, "").Out; out != directive {
			t.Errorf("%s: got %q, want %q", flag, out, directive)
		}
	}
	c.fails("An argument is no page.", []string{"docs", "upgrade"}, `unknown command "upgrade" for "clusterctl docs"`)
}
