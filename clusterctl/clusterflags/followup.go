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
	program                     string
	config, kubeconfig, context string
}

// NewFollowUp returns the FollowUp of a command whose flags have been parsed. program is how the user calls clusterctl.
func NewFollowUp(cmd *cobra.Command, program string) *FollowUp {
	value := func(flag string) string {
		if f := cmd.Flags().Lookup(flag); f != nil {
			return f.Value.String()
		}
		return ""
	}
	return &FollowUp{
		root: cmd.Root(), program: program,
		config: value("config"), kubeconfig: value("kubeconfig"), context: value("kubeconfig-context"),
	}
}

var (
	// separator is between the commands of a line, and before its output file.
	separator = regexp.MustCompile(` (?:\||&&|>) `)
	// proposed matches commands that texts tell users to run, not those that they only mention.
	proposed = regexp.MustCompile("(?:^|: |(?i:\\b(?:run|see|with|or|use|and)) )`(?:clusterctl|kubectl) [^`\\n]+`")
	// plain matches values that shells take as they are.
	plain = regexp.MustCompile(`^[\w@%+=:,./-]+$`)
)

// Line returns a command line with the flags --config, --kubeconfig and --kubeconfig-context of this command, if they were set, and with
// clusterctl as the user calls it. Each command gets the flags that it has.
func (f *FollowUp) Line(line string) string {
	var out strings.Builder
	begin := 0
	for _, at := range append(separator.FindAllStringIndex(line, -1), []int{len(line), len(line)}) {
		command := line[begin:at[0]]
		out.WriteString(f.called(command) + f.flags(strings.Fields(command)) + line[at[0]:at[1]])
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

// called returns a command with clusterctl as the user calls it.
func (f *FollowUp) called(command string) string {
	if arguments, ok := strings.CutPrefix(command, "clusterctl "); ok && f.program != "" {
		return f.program + " " + arguments
	}
	return command
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

// Program returns how a user calls clusterctl, by the first word of the command line: as a plugin of kubectl, by a path, or by its name.
func Program(called string) string {
	switch name := strings.TrimSuffix(called[strings.LastIndexAny(called, `/\`)+1:], ".exe"); {
	case strings.HasPrefix(name, "kubectl-operator"):
		return "clusterctl" // That plugin has some commands alone.
	case strings.HasPrefix(name, "kubectl-"):
		return "kubectl " + strings.TrimPrefix(name, "kubectl-")
	case name == called || name+".exe" == called:
		return name
	}
	return quoted(called)
}

// quoted returns a value as one word of a shell.
func quoted(value string) string {
	if plain.MatchString(value) {
		return value
	}
	return "'" + strings.ReplaceAll(value, "'", `'\''`) + "'"
}
