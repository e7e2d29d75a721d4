package standalone

import (
	"bytes"
	"context"
	"fmt"
	"regexp"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"sigs.k8s.io/cluster-api/docs/book"
	"sigs.k8s.io/cluster-api/docs/manual"
	"sigs.k8s.io/cluster-api/docs/reference"
	"sigs.k8s.io/cluster-api/sdk/manager"
)

var (
	// group matches the title of a group of flags in the help of a manager.
	group = regexp.MustCompile(`(?m)^(\S.* flags):$`)
	// gate matches a feature gate in the help of the flag.
	gate = regexp.MustCompile(`(?m)^(\w+)=true\|false \((\w+) - default=(\w+)\)`)
)

// Reference returns the pages of a book that are generated: the commands of a program, and the flags of all components that capi hosts,
// which are programs of their own, too.
func Reference(root *cobra.Command) ([]manual.Generated, error) {
	var out strings.Builder
	out.WriteString("# Flags of managers\n\nWhat `--help` of each manager prints. [Managers](managers.md) explains the flags.\n\n")
	for _, component := range constructors() {
		c := component()
		flags := pflag.NewFlagSet(c.Name, pflag.ContinueOnError)
		if c.AddFlags != nil {
			c.AddFlags(flags)
		}
		fmt.Fprintf(&out, "## %s\n\n%s\n\n%s%s", c.Name, reference.Escape(c.Purpose), reference.Table(flags), gates(c))
	}
	common, err := commonFlags()
	if err != nil {
		return nil, err
	}
	return []manual.Generated{reference.Commands(root), {
		Page:    book.Page{File: "manager-flags.md", Title: "Flags of managers", Summary: "all flags and feature gates of all managers"},
		Chapter: reference.Chapter, Source: []byte(out.String() + common),
	}}, nil
}

// gates returns the table of a component's feature gates; "" if it has none.
func gates(c manager.Component) string {
	if c.FeatureGates == nil {
		return ""
	}
	flags := pflag.NewFlagSet(c.Name, pflag.ContinueOnError)
	c.FeatureGates.AddFlag(flags)
	var out strings.Builder
	out.WriteString("| feature gate | stage | default |\n|---|---|---|\n")
	flags.VisitAll(func(f *pflag.Flag) {
		for _, match := range gate.FindAllStringSubmatch(f.Usage, -1) {
			fmt.Fprintf(&out, "| `%s` | %s | %s |\n", match[1], strings.ToLower(match[2]), match[3])
		}
	})
	return out.String() + "\n"
}

// commonFlags returns the section of the flags that all managers have.
func commonFlags() (string, error) {
	var help bytes.Buffer
	none := manager.Component{Name: "manager"}
	if err := manager.Run(context.Background(), none, []string{"--help"}, manager.Host{Stdout: &help}); err != nil {
		return "", err
	}
	var out strings.Builder
	out.WriteString("## Flags of all managers\n\nThe control plane manager has other defaults for leader election.\n\n")
	text := help.String()
	titles := group.FindAllStringSubmatchIndex(text, -1)
	for i, at := range titles {
		end := len(text)
		if i+1 < len(titles) {
			end = titles[i+1][0]
		}
		if title := text[at[2]:at[3]]; !strings.HasPrefix(title, "Feature gate") {
			fmt.Fprintf(&out, "### %s\n\n```text\n%s\n```\n\n", title, strings.Trim(text[at[1]:end], "\n"))
		}
	}
	return out.String(), nil
}
