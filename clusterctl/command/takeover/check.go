package takeover

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"time"

	"github.com/spf13/cobra"

	"sigs.k8s.io/cluster-api/clusterctl/clusterflags"
	"sigs.k8s.io/cluster-api/clusterctl/factory"
	"sigs.k8s.io/cluster-api/clusterctl/iostreams"
	"sigs.k8s.io/cluster-api/clusterctl/management"
)

// stopTime is how long capi may take to remove its copy of a management cluster when it is interrupted.
const stopTime = 30 * time.Second

// CheckOptions are the inputs of the command. All but the first two are passed on.
type CheckOptions struct {
	IO *iostreams.Streams
	// Find returns the path of capi.
	Find func() (string, error)

	Kubeconfig management.Kubeconfig
	Namespace  string
	Output     string
	Timeout    time.Duration
	Workloads  bool
}

// NewCheck returns the command. runF, if not nil, is run instead.
func NewCheck(f *factory.Factory, runF func(context.Context, *CheckOptions) error) *cobra.Command {
	opts := &CheckOptions{IO: f.IO, Find: findCapi}
	cmd := &cobra.Command{
		Use:   "check",
		Short: "Show what the managers of this version would write, without writing",
		Long: `Show everything that the managers of this version would write when they take over a management cluster of Cluster API v1.7 to
v1.14.

The program capi does it, which has an API server in it: "capi takeover check --help" tells how, and what is not computed. It is looked
for in the folder of this program, and in PATH. Nothing is written to the management cluster and to workload clusters.

Exit status: 0 if nothing would be written, 1 if the check could not be done, 2 if objects would be written, 3 if Machines would be created
or deleted, and 4 if nothing else would be written as far as managers could reconcile the copy, which they could not with all objects.`,
		Example: `  # Before the switch
  clusterctl takeover check --kubeconfig mgmt.kubeconfig

  # All details, for another program
  clusterctl takeover check -o json`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if runF != nil {
				return runF(cmd.Context(), opts)
			}
			return runCheck(cmd.Context(), opts)
		},
	}
	clusterflags.AddKubeconfig(cmd, &opts.Kubeconfig, false)
	cmd.Flags().StringVarP(&opts.Namespace, "namespace", "n", "", "The `namespace` of the Clusters to check. Defaults to all")
	cmd.Flags().StringVarP(&opts.Output, "output", "o", "text", "Format of the result: text or json")
	cmd.Flags().DurationVar(&opts.Timeout, "timeout", 10*time.Minute, "How long the check may take")
	cmd.Flags().BoolVar(&opts.Workloads, "workload-clusters", true,
		"Read workload clusters. Without them, the statuses of their objects are not computed")
	clusterflags.CompleteNamespaces(cmd, f, &opts.Kubeconfig, "namespace")
	clusterflags.CompleteValues(cmd, "output", "text", "json")
	return cmd
}

// findCapi looks for capi beside this program, and in PATH.
func findCapi() (string, error) {
	name := "capi"
	if runtime.GOOS == "windows" {
		name += ".exe"
	}
	if own, err := os.Executable(); err == nil {
		beside := filepath.Join(filepath.Dir(own), name)
		if info, err := os.Stat(beside); err == nil && info.Mode().IsRegular() {
			return beside, nil
		}
	}
	path, err := exec.LookPath(name)
	if err != nil {
		return "", fmt.Errorf("the program capi, which does the check, is neither beside clusterctl nor in PATH: "+
			"get it from the same release as clusterctl: %w", err)
	}
	return path, nil
}

// arguments returns those of capi.
func (o *CheckOptions) arguments() []string {
	return []string{
		"takeover", "check", "--kubeconfig=" + o.Kubeconfig.Path, "--kubeconfig-context=" + o.Kubeconfig.Context, "--namespace=" + o.Namespace,
		"--output=" + o.Output, "--timeout=" + o.Timeout.String(), fmt.Sprintf("--workload-clusters=%t", o.Workloads),
	}
}

func runCheck(ctx context.Context, o *CheckOptions) error {
	path, err := o.Find()
	if err != nil {
		return err
	}
	cmd := exec.CommandContext(ctx, path, o.arguments()...)
	cmd.Stdout, cmd.Stderr = o.IO.Out, o.IO.Err
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	cmd.WaitDelay = stopTime
	err = cmd.Run()
	exit, ended := errors.AsType[*exec.ExitError](err)
	switch {
	case !ended && err != nil:
		return fmt.Errorf("running %s: %w", path, err)
	case !ended:
		return nil
	}
	text := map[int]string{2: "objects would be written", 3: "Machines would be created or deleted"}[exit.ExitCode()]
	if text == "" {
		return fmt.Errorf("the check could not be done: %s takeover check: %w", path, err)
	}
	return factory.WithExitCode(errors.New(text), exit.ExitCode())
}
