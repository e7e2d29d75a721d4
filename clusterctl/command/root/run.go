package root

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"sigs.k8s.io/cluster-api/clusterctl/factory"
	"sigs.k8s.io/cluster-api/packages/config"
)

// updateTimeout is how long an interactive user waits for the update check, at most once a day.
const updateTimeout = 500 * time.Millisecond

// kubectlPlugin is the name under which clusterctl is a plugin of kubectl.
const kubectlPlugin = "kubectl-operator"

// Arguments returns the arguments of a command line. Under the name of the plugin, it is one of `clusterctl operator`.
func Arguments(commandLine []string) []string {
	if strings.TrimSuffix(filepath.Base(commandLine[0]), ".exe") == kubectlPlugin {
		return append([]string{"operator"}, commandLine[1:]...)
	}
	return commandLine[1:]
}

// Run runs the command that the arguments select, or a plugin if there is no such command. It prints errors before it
// returns them, except for answers.
func Run(ctx context.Context, f *factory.Factory, args []string) error {
	err := run(ctx, f, args)
	if err != nil && !factory.IsAnswer(err) {
		fmt.Fprintln(f.IO.Err, errorText(err, f.IO))
	}
	return err
}

func run(ctx context.Context, f *factory.Factory, args []string) error {
	cmd := NewCmd(f)
	cmd.SetArgs(args)
	if p, ok := findPlugin(cmd, args); ok {
		return p.Run(os.Environ())
	}
	if !known(cmd, args) {
		return unknown(cmd, args)
	}
	news := func(time.Duration) string { return "" }
	prepare := cmd.PersistentPreRunE
	cmd.PersistentPreRunE = func(c *cobra.Command, args []string) error {
		if err := prepare(c, args); err != nil {
			return err
		}
		if c.Name() != "completion" && c.Name() != "docs" { // Both are offline.
			news = checkForUpdate(c.Context(), f)
		}
		return nil
	}
	if err := cmd.ExecuteContext(ctx); err != nil {
		return err
	}
	timeout := time.Duration(0)
	if f.IO.ErrTerminal() {
		timeout = updateTimeout
	}
	if message := news(timeout); message != "" {
		f.IO.Noticef("%s", message)
	}
	return nil
}

// findPlugin looks for a plugin if the arguments select no built-in command.
func findPlugin(cmd *cobra.Command, args []string) (plugin, bool) {
	if known(cmd, args) {
		return plugin{}, false
	}
	return lookUpPlugin(args, lookPath)
}

// known reports whether the arguments start with a built-in command or a flag.
func known(cmd *cobra.Command, args []string) bool {
	// Cobra adds help and completion only when the command is executed.
	if len(args) == 0 || args[0] == "help" || strings.HasPrefix(args[0], cobra.ShellCompRequestCmd) || strings.HasPrefix(args[0], "-") {
		return true
	}
	return slices.ContainsFunc(cmd.Commands(), func(c *cobra.Command) bool { return c.Name() == args[0] || c.HasAlias(args[0]) })
}

// checkForUpdate starts the check for a newer version of clusterctl, unless it is disabled.
func checkForUpdate(ctx context.Context, f *factory.Factory) func(time.Duration) string {
	nothing := func(time.Duration) string { return "" }
	c, err := f.Config(ctx)
	if err != nil {
		return nothing
	}
	if disabled, _ := c.Variable(config.DisableVersionCheckVariable); disabled == "true" {
		return nothing
	}
	store, err := f.Store(ctx)
	if err != nil {
		return nothing
	}
	checker := &checker{Current: f.Version.GitVersion, Dir: config.Dir(f.Env), Store: store, Now: time.Now}
	return checker.Start(ctx)
}
