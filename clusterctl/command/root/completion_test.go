package root

import (
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"sigs.k8s.io/cluster-api/clusterctl/factory"
	"sigs.k8s.io/cluster-api/clusterctl/iostreams"
	"sigs.k8s.io/cluster-api/packages"
)

// TestNamesAreCompleted checks that every argument and flag that takes the name of an object has completion.
func TestNamesAreCompleted(t *testing.T) {
	flags := []string{"namespace", "target-namespace", "kubeconfig-context", "to-kubeconfig-context", "from-config-map", "from-config-map-namespace",
		"flavor", "kubernetes-version", "show-conditions", "sort-by", "cluster"}
	for _, providerType := range packages.Types() {
		flags = append(flags, packages.Word(providerType))
	}
	streams, _ := iostreams.Test()
	var visit func(*cobra.Command)
	visit = func(c *cobra.Command) {
		_, argument, _ := strings.Cut(c.Use, " ")
		if named := strings.HasPrefix(argument, "NAME") || strings.HasPrefix(argument, "RESOURCE"); named && c.ValidArgsFunction == nil {
			t.Errorf("%s: %s is not completed", c.CommandPath(), argument)
		}
		c.Flags().VisitAll(func(f *pflag.Flag) {
			if _, ok := c.GetFlagCompletionFunc(f.Name); f.Name == "output" && !ok {
				t.Errorf("%s: the formats of --output are not completed", c.CommandPath())
			}
			if _, ok := c.GetFlagCompletionFunc(f.Name); !ok && slices.Contains(flags, f.Name) && f.Value.Type() != "bool" {
				t.Errorf("%s: --%s is not completed", c.CommandPath(), f.Name)
			}
		})
		for _, sub := range c.Commands() {
			visit(sub)
		}
	}
	visit(NewCmd(factory.New(streams, func(string) (string, bool) { return "", false }, nil)))
}

// TestFormatsAndFlavors completes what needs no management cluster.
func TestFormatsAndFlavors(t *testing.T) {
	c := newCLI(t)
	for _, tc := range []struct {
		reason string
		args   []string
		want   string
	}{
		{"flavors are those of the provider's release", []string{"generate", "cluster", "c1", "-i", "toy:v1.0.0", "--flavor", ""}, "small\n"},
		{"create has those, too", []string{"create", "cluster", "c1", "-i", "toy:v1.0.0", "-f", ""}, "small\n"},
		{"versions are not files", []string{"generate", "cluster", "c1", "--kubernetes-version", ""}, ""},
		{"formats of objects", []string{"get", "clusters", "-o", ""}, "text\nwide\nname\njson\nyaml\n"},
		{"formats of the version", []string{"version", "-o", ""}, "text\nshort\nyaml\njson\n"},
		{"all conditions can be shown", []string{"describe", "cluster", "--show-conditions", ""}, "all\n"},
		{"columns to sort by", []string{"get", "clusters", "--sort-by", "n"}, "name\nnamespace\n"},
	} {
		t.Run(tc.reason, func(t *testing.T) {
			local := &cli{t: t, env: c.env}
			got, directive, _ := strings.Cut(local.works(append([]string{cobra.ShellCompNoDescRequestCmd}, tc.args...)...).Out, ":")
			if tc.args[len(tc.args)-1] == "n" {
				got = strings.Join(slices.DeleteFunc(strings.SplitAfter(got, "\n"), func(l string) bool { return !strings.HasPrefix(l, "n") }), "")
			}
			if got != tc.want || !strings.HasPrefix(directive, "4") {
				t.Errorf("got %q, directive %q", got, directive)
			}
		})
	}
}
