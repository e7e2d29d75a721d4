package clusterflags

import (
	"regexp"
	"slices"
	"strings"

	"github.com/spf13/cobra"
)

// FollowUp completes the commands that a command proposes, so that they are about the same management cluster and configuration.
type FollowUp struct {
	root                        *cobra.Command
	config, kubeconfig, context string
}

// NewFollowUp returns the FollowUp of a command whose flags have been parsed.
func NewFollowUp(cmd *cobra.Command) *FollowUp {
	value := func(flag string) string {
		if f := cmd.Flags().Lookup(flag); f != nil {
			return f.Value.String()
		}
		return ""
	}
	return &FollowUp{root: cmd.Root(), config: value("config"), kubeconfig: value("kubeconfig"), context: value("kubeconfig-context")}
}

var (
	// separator is between the commands of a line, and before its output file.
	separator = regexp.MustCompile(` (?:\||&&|>) `)
	// proposed matches commands that texts tell users to run, not those that they only mention.
	proposed = regexp.MustCompile("(?:^|: |(?i:\\b(?:run|see|with|or|use|and)) )`(?:clusterctl|kubectl) [^`\\n]+`")
	// plain matches values that shells take as they are.
	plain = regexp.MustCompile(`^[\w@%+=:,./-]+$`)
)

// Line returns a command line with the flags --config, --kubeconfig and --kubeconfig-context of this command, if they were set. Each
// command gets those that it has.
func (f *FollowUp) Line(line string) string {
	var out strings.Builder
	begin := 0
	for _, at := range append(separator.FindAllStringIndex(line, -1), []int{len(line), len(line)}) {
		command := line[begin:at[0]]
		out.WriteString(command + f.flags(strings.Fields(command)) + line[at[0]:at[1]])
		begin = at[1]
	}
	return out.String()
}

// Text returns a text whose commands in backquotes are complete, as far as it tells users to run them.
func (f *FollowUp) Text(text string) string {
	return proposed.ReplaceAllStringFunc(text, func(match string) string {
		before, line, _ := strings.Cut(match, "`")
		return before + "`" + f.Line(strings.TrimSuffix(line, "`")) + "`"
	})
}

// flags returns the flags for a command.
func (f *FollowUp) flags(words []string) string {
	var text string
	add := func(flag, value string) {
		if value != "" {
			text += " --" + flag + " " + quoted(value)
		}
	}
	switch {
	case len(words) == 0, slices.Contains(words, "--kubeconfig"), slices.Contains(words, "--help"):
	case words[0] == "kubectl":
		add("kubeconfig", f.kubeconfig)
		add("context", f.context)
	case words[0] == "clusterctl":
		cmd := f.root
		for _, word := range words[1:] {
			next := subcommand(cmd, word)
			if next == nil {
				break
			}
			cmd = next
		}
		add("config", f.config)
		if cmd.Flag("kubeconfig") != nil {
			add("kubeconfig", f.kubeconfig)
			add("kubeconfig-context", f.context)
		}
	}
	return text
}

func subcommand(cmd *cobra.Command, name string) *cobra.Command {
	for _, c := range cmd.Commands() {
		if c.Name() == name || c.HasAlias(name) {
			return c
		}
	}
	return nil
}

// quoted returns a value as one word of a shell.
func quoted(value string) string {
	if plain.MatchString(value) {
		return value
	}
	return "'" + strings.ReplaceAll(value, "'", `'\''`) + "'"
}
