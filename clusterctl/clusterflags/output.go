package clusterflags

import (
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
)

// AddOutput adds --output and -o, whose value must be one of the formats. The first one is the default.
func AddOutput(cmd *cobra.Command, value *string, formats ...string) {
	addOutput(cmd, value, "o", formats)
}

// AddLongOutput adds --output alone, to a command whose -o is something else.
func AddLongOutput(cmd *cobra.Command, value *string, formats ...string) {
	addOutput(cmd, value, "", formats)
}

func addOutput(cmd *cobra.Command, value *string, short string, formats []string) {
	*value = formats[0]
	cmd.Flags().VarP(&format{value, formats}, "output", short, "Output `format`: "+oneOf(formats))
	register(cmd, "output", func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
		return formats, cobra.ShellCompDirectiveNoFileComp
	})
}

// format is the value of --output.
type format struct {
	value   *string
	formats []string
}

func (f *format) String() string { return *f.value }

func (*format) Type() string { return "format" }

func (f *format) Set(text string) error {
	if !slices.Contains(f.formats, text) {
		return fmt.Errorf("--output %q is not supported: use %s", text, oneOf(f.formats))
	}
	*f.value = text
	return nil
}

// oneOf returns "a, b or c".
func oneOf(list []string) string {
	last := len(list) - 1
	return strings.TrimPrefix(strings.Join(list[:last], ", ")+" or "+list[last], " or ")
}
