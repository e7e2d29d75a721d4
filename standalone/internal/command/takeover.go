package command

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/klog/v2"
	"k8s.io/klog/v2/textlogger"
	"k8s.io/utils/clock"
	ctrllog "sigs.k8s.io/controller-runtime/pkg/log"

	"sigs.k8s.io/cluster-api/sdk/failsafe"
	"sigs.k8s.io/cluster-api/standalone/internal/check"
	"sigs.k8s.io/cluster-api/standalone/internal/host"
)

// StatusError is an error without a message of its own: what it says was printed as a result. The program ends with its exit status.
type StatusError int

// Error implements error.
func (s StatusError) Error() string { return "exit status " + strconv.Itoa(int(s)) }

// checkOptions are the flags of `capi takeover check`.
type checkOptions struct {
	kubeconfig string
	context    string
	namespace  string
	output     string
	timeout    time.Duration
	workloads  bool
	verbosity  int
	programs   map[string]host.Program
}

// newTakeover returns `capi takeover`.
func newTakeover(programs map[string]host.Program) *cobra.Command {
	cmd := &cobra.Command{
		Use:     "takeover SUBCOMMAND",
		Short:   "Switch a management cluster from other versions of Cluster API",
		Example: "  capi takeover check --kubeconfig mgmt.kubeconfig",
		Args:    cobra.NoArgs,
	}
	cmd.AddCommand(newCheck(programs))
	return cmd
}

// newCheck returns `capi takeover check`.
func newCheck(programs map[string]host.Program) *cobra.Command {
	o := checkOptions{programs: programs}
	cmd := &cobra.Command{
		Use:   "check",
		Short: "Show what our managers would write, without writing",
		Long: `Show everything that the managers of this version would write when they take over a management cluster of Cluster API v1.7 to
v1.14.

It reads the management cluster, and runs the managers of this version over a copy of its objects, in an API server in this process,
with the definitions, webhooks and permissions of the management cluster. What they write there is the result.

Nothing changes in the management cluster and in workload clusters: all requests to them are GETs, and others are not sent. The copy has
Secrets. It is in a private folder, in memory where possible, which is removed in the end.

Creations, deletions, and changes of metadata and spec are exact. Of statuses, what depends on etcd, on runtime extensions or on workload
clusters that do not respond is not computed; notes say where. Managers of infrastructure providers do not run.

Exit status:
  0  nothing would be written; there may be notes
  1  the check could not be done
  2  objects would be written, but no Machine created or deleted
  3  Machines would be created or deleted
  4  nothing else would be written, but managers could not reconcile some objects of the copy: what they would write to them is open`,
		Example: `  # Before the switch
  capi takeover check --kubeconfig mgmt.kubeconfig

  # All details, for another program
  capi takeover check --kubeconfig mgmt.kubeconfig -o json

  # Only the Clusters of a namespace, from a machine that does not reach workload clusters
  capi takeover check --namespace team-a --workload-clusters=false`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			failsafe.Contain() // As with `capi serve`.
			ctx, stop := signal.NotifyContext(cmd.Context(), os.Interrupt, syscall.SIGTERM)
			defer stop()
			context.AfterFunc(ctx, stop)
			return o.run(ctx, cmd.OutOrStdout(), cmd.ErrOrStderr())
		},
	}
	f := cmd.Flags()
	f.StringVar(&o.kubeconfig, "kubeconfig", "", "Kubeconfig `file` of the management cluster. Defaults to the one that kubectl uses")
	f.StringVar(&o.context, "kubeconfig-context", "", "The kubeconfig `context` to use. Defaults to the current context")
	f.StringVarP(&o.namespace, "namespace", "n", "", "The namespace of the Clusters to check. Defaults to all")
	f.StringVarP(&o.output, "output", "o", "text", "Format of the result: text or json")
	f.DurationVar(&o.timeout, "timeout", 10*time.Minute, "How long the check may take")
	f.BoolVar(&o.workloads, "workload-clusters", true, "Read workload clusters. Without them, the statuses of their objects are not computed")
	f.IntVarP(&o.verbosity, "v", "v", -1, "Log to standard error at this verbosity. By default, nothing is logged")
	return cmd
}

func (o *checkOptions) run(ctx context.Context, out, errOut io.Writer) error {
	if o.output != "text" && o.output != "json" {
		return fmt.Errorf("--output is %q: use text or json", o.output)
	}
	if o.timeout <= 0 {
		return fmt.Errorf("--timeout is %s: use a positive duration", o.timeout)
	}
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	rules.ExplicitPath = o.kubeconfig
	overrides := &clientcmd.ConfigOverrides{CurrentContext: o.context}
	config, err := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules, overrides).ClientConfig()
	if err != nil {
		return fmt.Errorf("read the kubeconfig of the management cluster (--kubeconfig, --kubeconfig-context): %w", err)
	}
	log := io.Discard
	if o.verbosity >= 0 {
		log = errOut
	}
	var level klog.Level
	_ = level.Set(strconv.Itoa(max(o.verbosity, 0))) // An int is always accepted.
	logger := textlogger.NewLogger(textlogger.NewConfig(textlogger.Output(log), textlogger.Verbosity(max(o.verbosity, 0))))
	klog.SetLoggerWithOptions(logger, klog.ContextualLogger(true))
	ctrllog.SetLogger(logger)
	result, err := check.Run(ctx, check.Options{
		Config: config, Namespace: o.namespace, NoWorkloads: !o.workloads, Timeout: o.timeout, Programs: o.programs,
		Progress: func(format string, args ...any) {
			fmt.Fprintln(errOut, strings.TrimSpace(fmt.Sprintf(format, args...)))
		},
		Logger: logger, Log: log, Clock: clock.RealClock{},
	})
	if err != nil {
		return fmt.Errorf("checking the takeover: %w", err)
	}
	write := result.Text
	if o.output == "json" {
		write = result.JSON
	}
	if err := write(out); err != nil {
		return err
	}
	if code := result.ExitCode(); code != 0 {
		return StatusError(code)
	}
	return nil
}
