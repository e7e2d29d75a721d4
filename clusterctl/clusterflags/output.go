package clusterflags

import (
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/api/resource"
	"sigs.k8s.io/yaml"
)

// AddOutput adds --output and -o, whose value must be one of the formats. The first one is the default.
func AddOutput(cmd *cobra.Command, value *string, formats ...string) {
	addOutput(cmd, value, "o", formats)
}

// AddObjectOutput adds --output and -o to a command that prints objects: the formats are the same for all of them.
func AddObjectOutput(cmd *cobra.Command, value *string) {
	AddOutput(cmd, value, "text", "wide", "name", "json", "yaml")
}

// ForPrograms reports whether a format is one of Print.
func ForPrograms(format string) bool { return format == "json" || format == "yaml" }

// Print writes a value as yaml, or as json for all other formats.
func Print(out io.Writer, format string, value any) error {
	raw, err := yaml.Marshal(value)
	if format != "yaml" {
		raw, err = json.MarshalIndent(value, "", "  ")
		raw = append(raw, '\n')
	}
	if err != nil {
		return err
	}
	_, err = out.Write(raw)
	return err
}

// Size returns a number of bytes as people write it, such as 12Mi.
func Size(bytes int64) string {
	for _, unit := range []int64{1 << 30, 1 << 20, 1 << 10} {
		if bytes >= 10*unit {
			bytes = bytes / unit * unit
			break
		}
	}
	return resource.NewQuantity(bytes, resource.BinarySI).String()
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
