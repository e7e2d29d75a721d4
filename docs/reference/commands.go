// Package reference generates pages of the book: commands and flags of programs, as --help has them; the fields of the API, as kubectl
// explain has them; and the names, conditions, metrics and messages that the source code declares.
//
// What they are for does not belong here; it is explained in the pages that are written by hand.
package reference

import (
	"cmp"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"sigs.k8s.io/cluster-api/docs/book"
	"sigs.k8s.io/cluster-api/docs/manual"
)

// Chapter is the chapter of generated pages.
const Chapter = "Reference"

// Elsewhere is an annotation of commands whose subcommands are not listed. The value is the URL of their documentation, such as that of
// kubectl in capi; it may be empty if the description of the command says where it is.
const Elsewhere = "docs.cluster.x-k8s.io/elsewhere"

var (
	// code matches text in backticks, which stays as it is.
	code = regexp.MustCompile("`[^`]+`")
	// special are the characters that Markdown could interpret.
	special = regexp.MustCompile(`[\\*_<>\[\]#|&~]`)
	// block matches a paragraph that has to keep its lines, because some of them are indented.
	block = regexp.MustCompile(`(?m)^(  |\t)`)
)

// Commands returns the page of a program's commands.
func Commands(root *cobra.Command) manual.Generated {
	name := root.Name()
	var out strings.Builder
	fmt.Fprintf(&out, "# Commands of %[1]s\n\nWhat `%[1]s COMMAND --help` prints.\n\n", name)
	list(&out, root)
	if flags := Table(root.PersistentFlags()); flags != "" {
		fmt.Fprintf(&out, "## Flags of all commands of %s\n\n%s", name, flags)
	}
	return manual.Generated{
		Page:    book.Page{File: name + "-commands.md", Title: "Commands of " + name, Summary: "all commands of " + name + " with their flags"},
		Chapter: Chapter, Source: []byte(out.String()),
	}
}

// list writes the sections of a command's subcommands.
func list(out *strings.Builder, parent *cobra.Command) {
	for _, cmd := range grouped(parent) {
		if !cmd.IsAvailableCommand() || cmd.Name() == "help" {
			continue
		}
		_, elsewhere := cmd.Annotations[Elsewhere]
		leaf := cmd.Name() == "completion" || elsewhere || !cmd.HasAvailableSubCommands()
		if own := cmd.LocalFlags(); leaf || len(visible(own)) > 0 {
			command(out, cmd, own)
		}
		if !leaf {
			list(out, cmd)
		}
	}
}

// grouped returns the subcommands of a command in the order of its help.
func grouped(parent *cobra.Command) []*cobra.Command {
	position := func(cmd *cobra.Command) int {
		return slices.IndexFunc(parent.Groups(), func(g *cobra.Group) bool { return g.ID == cmd.GroupID })
	}
	commands := slices.Clone(parent.Commands())
	slices.SortStableFunc(commands, func(a, b *cobra.Command) int { return cmp.Compare(position(a), position(b)) })
	return commands
}

// command writes the section of a command.
func command(out *strings.Builder, cmd *cobra.Command, own *pflag.FlagSet) {
	description := cmd.Long
	if description == "" {
		description = cmd.Short + "."
	}
	fmt.Fprintf(out, "## %s\n\n%s\n", cmd.CommandPath(), prose(description))
	if url, ok := cmd.Annotations[Elsewhere]; ok {
		if url != "" {
			fmt.Fprintf(out, "Its subcommands and flags are [documented elsewhere](%s).\n\n", url)
		}
		return
	}
	fmt.Fprintf(out, "```text\n%s\n```\n\n", cmd.UseLine())
	if cmd.Example != "" {
		fmt.Fprintf(out, "```example\n%s\n```\n\n", unindented(cmd.Example))
	}
	out.WriteString(Table(own))
	for parent := cmd.Parent(); parent != cmd.Root(); parent = parent.Parent() {
		out.WriteString(Table(parent.PersistentFlags()))
	}
}

// visible returns the flags that users should see.
func visible(flags *pflag.FlagSet) []*pflag.Flag {
	var list []*pflag.Flag
	flags.VisitAll(func(f *pflag.Flag) {
		if !f.Hidden && f.Deprecated == "" && f.Name != "help" {
			list = append(list, f)
		}
	})
	return list
}

// Table returns the table of flags in Markdown; "" if there are none.
func Table(flags *pflag.FlagSet) string {
	list := visible(flags)
	if len(list) == 0 {
		return ""
	}
	var out strings.Builder
	out.WriteString("| flag | default | |\n|---|---|---|\n")
	for _, f := range list {
		value, usage := pflag.UnquoteUsage(f)
		name := "--" + f.Name
		if f.Shorthand != "" {
			name = "-" + f.Shorthand + ", " + name
		}
		standard := ""
		if !slices.Contains([]string{"", "[]", "false"}, f.DefValue) {
			standard = "`" + strings.ReplaceAll(inHome(f.DefValue), "|", `\|`) + "`"
		}
		fmt.Fprintf(&out, "| `%s` | %s | %s |\n", strings.TrimSpace(name+" "+strings.ReplaceAll(value, "|", `\|`)), standard, cell(usage))
	}
	return out.String() + "\n"
}

// inHome returns a path with ~ for the home directory of the user, who may not be the one that reads the page.
func inHome(path string) string {
	home, err := os.UserHomeDir()
	if rest, ok := strings.CutPrefix(path, home+"/"); ok && err == nil && home != "" {
		return "~/" + rest
	}
	return path
}

// cell returns text for a cell of a table.
func cell(text string) string {
	text = Escape(strings.Join(strings.Fields(text), " "))
	return code.ReplaceAllStringFunc(text, func(code string) string { return strings.ReplaceAll(code, "|", `\|`) })
}

// prose returns the paragraphs of a help text as Markdown. Those with indented lines become blocks.
func prose(text string) string {
	var out strings.Builder
	for paragraph := range strings.SplitSeq(strings.TrimSpace(text), "\n\n") {
		if block.MatchString(paragraph) {
			fmt.Fprintf(&out, "```text\n%s\n```\n\n", paragraph)
		} else {
			fmt.Fprintf(&out, "%s\n\n", Escape(paragraph))
		}
	}
	return out.String()
}

// Escape returns text so that Markdown interprets only what is in backticks.
func Escape(text string) string {
	var out strings.Builder
	end := 0
	for _, at := range code.FindAllStringIndex(text, -1) {
		out.WriteString(special.ReplaceAllString(text[end:at[0]], `\$0`) + text[at[0]:at[1]])
		end = at[1]
	}
	return out.String() + special.ReplaceAllString(text[end:], `\$0`)
}

// unindented returns text without the indentation of its first line.
func unindented(text string) string {
	indent := text[:len(text)-len(strings.TrimLeft(text, " "))]
	return strings.TrimSpace(strings.ReplaceAll("\n"+text, "\n"+indent, "\n"))
}
