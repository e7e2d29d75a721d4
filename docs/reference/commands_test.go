package reference

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/cobra"
)

// program returns a program with all that pages distinguish.
func program() *cobra.Command {
	do := func(*cobra.Command, []string) {}
	root := &cobra.Command{Use: "prog"}
	root.PersistentFlags().Bool("quiet", false, "Print `nothing` | less")
	root.AddGroup(&cobra.Group{ID: "first"}, &cobra.Group{ID: "last"})
	leaf := &cobra.Command{
		Use: "leaf NAME", GroupID: "first", Short: "Short", Run: do,
		Long: "Do *it* to <name>, see `prog a|b`.\n\nExit status:\n  0  fine", Example: "  # One\n  prog leaf x\n\n  prog leaf y \\\n    --size 2",
	}
	leaf.Flags().IntP("size", "s", 3, "The `number` of a|b")
	leaf.Flags().String("hidden", "", "x")
	_ = leaf.Flags().MarkHidden("hidden")
	group := &cobra.Command{Use: "group", GroupID: "last", Short: "A group"}
	group.PersistentFlags().String("context", "", "The `context`")
	group.AddCommand(&cobra.Command{Use: "sub", Short: "In a group", Run: do})
	other := &cobra.Command{Use: "other", GroupID: "first", Short: "Of another program", Run: do, Annotations: map[string]string{Elsewhere: "https://example.org"}}
	other.AddCommand(&cobra.Command{Use: "sub", Short: "x", Run: do})
	silent := &cobra.Command{Use: "silent", Short: "x", Run: do, Hidden: true}
	only := &cobra.Command{Use: "only", GroupID: "last", Short: "Only a group", Run: do}
	only.AddCommand(&cobra.Command{Use: "sub", Short: "In another", Run: do})
	root.AddCommand(group, leaf, only, other, silent)
	return root
}

const want = "# Commands of prog\n\nWhat `prog COMMAND --help` prints.\n\n" +
	"## prog leaf\n\nDo \\*it\\* to \\<name\\>, see `prog a|b`.\n\n```text\nExit status:\n  0  fine\n```\n\n\n" +
	"```text\nprog leaf NAME [flags]\n```\n\n" +
	"```example\n# One\nprog leaf x\n\nprog leaf y \\\n  --size 2\n```\n\n" +
	"| flag | default | |\n|---|---|---|\n| `-s, --size number` | `3` | The number of a\\|b |\n\n" +
	"## prog other\n\nOf another program.\n\n\nIts subcommands and flags are [documented elsewhere](https://example.org).\n\n" +
	"## prog group\n\nA group.\n\n\n```text\nprog group [flags]\n```\n\n" +
	"| flag | default | |\n|---|---|---|\n| `--context context` |  | The context |\n\n" +
	"## prog group sub\n\nIn a group.\n\n\n```text\nprog group sub [flags]\n```\n\n" +
	"| flag | default | |\n|---|---|---|\n| `--context context` |  | The context |\n\n" +
	"## prog only sub\n\nIn another.\n\n\n```text\nprog only sub [flags]\n```\n\n" +
	"## Flags of all commands of prog\n\n| flag | default | |\n|---|---|---|\n| `--quiet nothing` |  | Print nothing \\| less |\n\n"

func TestCommands(t *testing.T) {
	page := Commands(program())
	if diff := cmp.Diff(want, string(page.Source)); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if page.File != "prog-commands.md" || page.Title != "Commands of prog" || page.Chapter != "Reference" {
		t.Errorf("the page is %s, %s, in %s", page.File, page.Title, page.Chapter)
	}
}

func TestInHome(t *testing.T) {
	t.Setenv("HOME", "/home/jane")
	for path, want := range map[string]string{"/home/jane/x": "~/x", "/home/janet/x": "/home/janet/x", "3": "3"} {
		if got := inHome(path); got != want {
			t.Errorf("%s: got %s, want %s", path, got, want)
		}
	}
	t.Setenv("HOME", "")
	if got := inHome("/x"); got != "/x" {
		t.Errorf("without a home directory: got %s", got)
	}
}
