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
	flags := []string{"namespace", "target-namespace", "kubeconfig-context", "to-kubeconfig-context", "from-config-map", "from-config-map-namespace"}
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
