// Package root is the command `clusterctl` itself: it puts the commands together and runs one of them.
//
// What a command does belongs to its own package.
package root

import (
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"sigs.k8s.io/cluster-api/clusterctl/command/completion"
	"sigs.k8s.io/cluster-api/clusterctl/command/config"
	"sigs.k8s.io/cluster-api/clusterctl/command/create"
	"sigs.k8s.io/cluster-api/clusterctl/command/delete"
	"sigs.k8s.io/cluster-api/clusterctl/command/describe"
	"sigs.k8s.io/cluster-api/clusterctl/command/generate"
	"sigs.k8s.io/cluster-api/clusterctl/command/get"
	"sigs.k8s.io/cluster-api/clusterctl/command/initialize"
	"sigs.k8s.io/cluster-api/clusterctl/command/version"
	"sigs.k8s.io/cluster-api/clusterctl/factory"
	"sigs.k8s.io/cluster-api/clusterctl/management"
)

// The groups in which help lists the commands.
const (
	groupManagement = "management"
	groupDebug      = "debug"
	groupOther      = "other"
)

// NewCmd returns the whole command line.
func NewCmd(f *factory.Factory) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "clusterctl",
		Short: "clusterctl controls the lifecycle of a Cluster API management cluster",
		Long:  "Get started with Cluster API using clusterctl to create a management cluster, install providers,\nand create templates for your workload clusters.",
		Example: `  # From a Kubernetes cluster to a management cluster
  clusterctl init --infrastructure docker

  # A workload cluster
  clusterctl generate cluster my-cluster --kubernetes-version v1.29.0 | kubectl apply -f -
  clusterctl get kubeconfig my-cluster > my-cluster.kubeconfig`,
		RunE:              func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
		SilenceUsage:      true,
		SilenceErrors:     true,
		CompletionOptions: cobra.CompletionOptions{DisableDefaultCmd: true},
	}
	cmd.SetIn(f.IO.In)
	cmd.SetOut(f.IO.Out)
	cmd.SetErr(f.IO.Err)
	cmd.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error {
		return fmt.Errorf("%w: see `%s --help`", err, cmd.CommandPath())
	})
	cmd.PersistentFlags().StringVar(&f.ConfigPath, "config", "", "Configuration `file` or URL. Empty means $XDG_CONFIG_HOME/cluster-api/clusterctl.yaml")
	cmd.PersistentFlags().IntVarP(&f.IO.Verbosity, "v", "v", 0, "`Level` of detail of messages; takes the place of the variable CLUSTERCTL_LOG_LEVEL")
	cmd.PersistentPreRunE = func(cmd *cobra.Command, _ []string) error { return prepare(cmd, f) }
	addCommands(cmd, f)
	return cmd
}

func addCommands(cmd *cobra.Command, f *factory.Factory) {
	for _, group := range []struct {
		id, title string
		commands  []*cobra.Command
	}{
		{groupManagement, "Cluster Management Commands:", []*cobra.Command{
			initialize.NewCmd(f, nil), generate.NewCmd(f), create.NewCmd(f), get.NewCmd(f), delete.NewCmd(f),
		}},
		{groupDebug, "Troubleshooting and Debugging Commands:", []*cobra.Command{describe.NewCmd(f)}},
		{groupOther, "Other Commands:", []*cobra.Command{
			config.NewCmd(f), completion.NewCmd(f, nil), version.NewCmd(f, nil),
		}},
	} {
		// A title with nothing under it would puzzle the reader of help.
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

// prepare sets what the configuration says about clusterctl itself. A configuration that cannot be read stops only
// those commands that use it, unless the user named it on the command line.
func prepare(cmd *cobra.Command, f *factory.Factory) error {
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

// errorText returns an error the way it is shown to the user, in full detail from verbosity 5 on.
func errorText(err error, verbosity int) string {
	text := "Error: " + management.Text(err)
	if verbosity < 5 {
		return text
	}
	for cause := err; cause != nil; cause = errors.Unwrap(cause) {
		text += fmt.Sprintf("\n  %T: %v", cause, cause)
	}
	return text
}
