// Package root is the command `clusterctl` itself: it assembles the commands and runs one of them, or a plugin, and reports newer
// releases.
package root

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"sigs.k8s.io/cluster-api/clusterctl/clusterflags"
	"sigs.k8s.io/cluster-api/clusterctl/command/backup"
	"sigs.k8s.io/cluster-api/clusterctl/command/convert"
	"sigs.k8s.io/cluster-api/clusterctl/command/explain"
	"sigs.k8s.io/cluster-api/clusterctl/command/initialize"
	"sigs.k8s.io/cluster-api/clusterctl/command/move"
	"sigs.k8s.io/cluster-api/clusterctl/command/plan"
	"sigs.k8s.io/cluster-api/clusterctl/command/restore"
	"sigs.k8s.io/cluster-api/clusterctl/factory"
	"sigs.k8s.io/cluster-api/clusterctl/iostreams"
	"sigs.k8s.io/cluster-api/clusterctl/management"
)

// Command groups in the help output.
const (
	groupManagement = "management"
	groupDebug      = "debug"
	groupOther      = "other"
)

// NewCmd returns the root command with all commands.
func NewCmd(f *factory.Factory) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "clusterctl",
		Short: "clusterctl controls the lifecycle of a Cluster API management cluster",
		Long: "Get started with Cluster API using clusterctl to create a management cluster, install providers,\n" +
			"and create templates for your workload clusters.",
		Example: `  # Turn a Kubernetes cluster into a management cluster
  clusterctl init --infrastructure in-memory

  # Create a workload cluster
  clusterctl create cluster my-cluster --kubernetes-version v1.36.3
  clusterctl describe cluster my-cluster
  clusterctl get kubeconfig my-cluster > my-cluster.kubeconfig`,
		RunE:              func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
		SilenceUsage:      true,
		SilenceErrors:     true,
		CompletionOptions: cobra.CompletionOptions{DisableDefaultCmd: true},
	}
	cmd.SetIn(f.IO.In)
	cmd.SetOut(f.IO.Out)
	cmd.SetErr(f.IO.Err)
	cmd.SetFlagErrorFunc(flagError)
	cmd.PersistentFlags().StringVar(&f.ConfigPath, "config", "",
		"Configuration `file` or URL (default $XDG_CONFIG_HOME/cluster-api/clusterctl.yaml)")
	cmd.PersistentFlags().IntVarP(&f.IO.Verbosity, "v", "v", 0, "Log verbosity `level`; overrides the variable CLUSTERCTL_LOG_LEVEL")
	cmd.PersistentFlags().BoolVarP(&f.IO.Quiet, "quiet", "q", false, "Print only results, warnings and errors")
	cmd.PersistentPreRunE = func(cmd *cobra.Command, _ []string) error { return prepare(cmd, f) }
	addCommands(cmd, f)
	return cmd
}

// flagError turns parse errors of flags into readable ones that point to --help.
func flagError(cmd *cobra.Command, err error) error {
	value, number := &pflag.InvalidValueError{}, &strconv.NumError{}
	if errors.As(err, &value) && errors.As(err, &number) {
		wanted := "an integer"
		if number.Func == "ParseBool" {
			wanted = "true or false"
		}
		err = fmt.Errorf("--%s is %q: it must be %s", value.GetFlag().Name, value.GetValue(), wanted)
	} else if cause := errors.Unwrap(err); cause != nil && strings.HasPrefix(cause.Error(), "--") {
		err = cause // It names the flag and its value.
	}
	return fmt.Errorf("%w: see `%s --help`", err, cmd.CommandPath())
}

func addCommands(cmd *cobra.Command, f *factory.Factory) {
	for _, group := range []struct {
		id, title string
		commands  []*cobra.Command
	}{
		{groupManagement, "Cluster Management Commands:", []*cobra.Command{
			initialize.NewCmd(f, nil), newGenerate(f), newCreate(f), newGet(f), newWait(f), move.NewCmd(f, nil), newUpgrade(f),
			backup.NewCmd(f, nil), restore.NewCmd(f, nil), newDelete(f), newOperator(f), newRollout(f),
			plan.NewPlan(f, nil), newClass(f), newTakeover(f),
		}},
		{groupDebug, "Troubleshooting and Debugging Commands:", []*cobra.Command{newDescribe(f), explain.NewCmd(f, nil)}},
		{groupOther, "Other Commands:", []*cobra.Command{
			newAlpha(f), newCheck(f), newConfig(f), convert.New(f, nil), newDocs(f), newCompletion(f), newVersion(f),
		}},
	} {
		if len(group.commands) == 0 {
			continue
		}
		cmd.AddGroup(&cobra.Group{ID: group.id, Title: group.title})
		for _, c := range group.commands {
			c.GroupID = group.id
		}
		cmd.AddCommand(group.commands...)
	}
	cmd.SetHelpCommandGroupID(groupOther)
}

// prepare applies the settings of the configuration that concern clusterctl itself. An unreadable configuration is only
// an error for commands that use it, or if it was set with --config.
func prepare(cmd *cobra.Command, f *factory.Factory) error {
	if cmd.Name() != "move" { // Its messages are about either of two clusters.
		f.IO.FollowUp = clusterflags.NewFollowUp(cmd, f.Program)
	}
	c, err := f.Config(cmd.Context())
	if err != nil {
		if f.ConfigPath != "" {
			return err
		}
		f.IO.Logf(1, "%v", err)
		return nil
	}
	if !cmd.Flags().Changed("v") {
		if f.IO.Verbosity, err = factory.Verbosity(c); err != nil {
			return err
		}
	}
	if c.Source != "" {
		f.IO.Logf(5, "Using configuration %s", c.Source)
	}
	return nil
}

// errorText formats an error for the user, with its whole chain at verbosity 5 and above.
func errorText(err error, streams *iostreams.Streams) string {
	text := "Error: " + streams.Commands(management.Text(err))
	if streams.Verbosity < 5 {
		return text
	}
	for cause := err; cause != nil; cause = errors.Unwrap(cause) {
		text += fmt.Sprintf("\n  %T: %v", cause, cause)
	}
	return text
}
