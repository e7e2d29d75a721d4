package get

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/duration"
	"k8s.io/utils/clock"
	"sigs.k8s.io/yaml"

	"sigs.k8s.io/cluster-api/clusterctl/clusterflags"
	"sigs.k8s.io/cluster-api/clusterctl/factory"
	"sigs.k8s.io/cluster-api/clusterctl/iostreams"
	"sigs.k8s.io/cluster-api/clusterctl/management"
	"sigs.k8s.io/cluster-api/clusterctl/overview"
)

// ClustersOptions are the inputs of the command.
type ClustersOptions struct {
	IO            *iostreams.Streams
	Connect       func(management.Kubeconfig) (*management.Cluster, error)
	Clock         clock.PassiveClock
	Kubeconfig    management.Kubeconfig
	Namespace     string
	AllNamespaces bool
	// Selector selects Clusters by label; empty for all.
	Selector string
	// Output is empty for a table, or wide, json or yaml.
	Output string
}

// NewClusters returns the command. runF, if not nil, is run instead.
func NewClusters(f *factory.Factory, runF func(context.Context, *ClustersOptions) error) *cobra.Command {
	opts := &ClustersOptions{IO: f.IO, Connect: f.Connect, Clock: clock.RealClock{}}
	cmd := &cobra.Command{
		Use:   "clusters",
		Short: "List workload clusters, and what is going on with each",
		Long: `List workload clusters with their version, their ready and desired Machines, and what is going on.

The number of requests depends on the number of kinds, not on that of clusters.`,
		Example: `  # List the workload clusters of all namespaces
  clusterctl get clusters --all-namespaces

  # List those with a label, with their endpoints
  clusterctl get clusters --selector team=blue --output wide`,
		Args: noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			switch opts.Output {
			case "", "wide", "json", "yaml":
			default:
				return fmt.Errorf("--output %q is not supported: use wide, json or yaml", opts.Output)
			}
			if runF != nil {
				return runF(cmd.Context(), opts)
			}
			return runClusters(cmd.Context(), opts)
		},
	}
	clusterflags.AddKubeconfig(cmd, &opts.Kubeconfig, false)
	clusterflags.AddNamespace(cmd, f, &opts.Kubeconfig, &opts.Namespace)
	cmd.Flags().BoolVarP(&opts.AllNamespaces, "all-namespaces", "A", false, "List the workload clusters of all namespaces")
	cmd.Flags().StringVarP(&opts.Selector, "selector", "l", "",
		"List only workload clusters with these `labels`, such as team=blue,stage!=test")
	cmd.Flags().StringVarP(&opts.Output, "output", "o", "", "Output `format`: wide, json or yaml. Defaults to a table")
	cmd.MarkFlagsMutuallyExclusive("namespace", "all-namespaces")
	return cmd
}

func noArguments(cmd *cobra.Command, args []string) error {
	if len(args) > 0 {
		return fmt.Errorf("expected no arguments, got %s: to see one cluster, run `clusterctl describe cluster %s`",
			strings.Join(args, ", "), args[0])
	}
	return nil
}

func runClusters(ctx context.Context, opts *ClustersOptions) error {
	var selector labels.Selector
	if opts.Selector != "" {
		var err error
		if selector, err = labels.Parse(opts.Selector); err != nil {
			return fmt.Errorf("--selector %q is invalid: %w", opts.Selector, err)
		}
	}
	m, err := opts.Connect(opts.Kubeconfig)
	if err != nil {
		return err
	}
	namespace := cmp.Or(opts.Namespace, m.Namespace)
	if opts.AllNamespaces {
		namespace = ""
	}
	objects, err := overview.Read(ctx, m.Client, namespace, selector)
	if err := m.OrNotInitialized(ctx, err); err != nil {
		return err
	}
	rows := overview.Rows(objects)
	var raw []byte
	switch opts.Output {
	case "json":
		raw, err = json.MarshalIndent(overview.List{Items: rows}, "", "  ")
		raw = append(raw, '\n')
	case "yaml":
		raw, err = yaml.Marshal(overview.List{Items: rows})
	default:
		return table(opts, rows, namespace)
	}
	if err != nil {
		return err
	}
	_, err = opts.IO.Out.Write(raw)
	return err
}

// table prints one line per Cluster.
func table(opts *ClustersOptions, rows []overview.Row, namespace string) error {
	if len(rows) == 0 {
		where := "any namespace"
		if namespace != "" {
			where = "namespace " + namespace
		}
		opts.IO.Infof("No workload clusters found in %s", where)
		return nil
	}
	w := tabwriter.NewWriter(opts.IO.Out, 0, 8, 3, ' ', 0)
	line := func(cells ...string) { fmt.Fprintln(w, strings.TrimRight(strings.Join(cells, "\t"), "\t")) }
	columns := []string{"NAMESPACE", "NAME", "CLASS", "VERSION", "CONTROL PLANE", "WORKERS", "READY", "AGE"}
	wide := opts.Output == "wide"
	if wide {
		columns = append(columns, "PHASE", "INFRASTRUCTURE", "CONTROL PLANE KIND", "ENDPOINT")
	}
	line(append(columns, "ACTIVITY")...)
	now := opts.Clock.Now()
	for i := range rows {
		r := &rows[i]
		cells := []string{r.Namespace, r.Name, or(r.Class),
			or(r.Version), r.ControlPlane.String(), r.Workers.String(), or(r.Ready), duration.HumanDuration(now.Sub(r.Created.Time))}
		if wide {
			kind := ""
			if r.ControlPlane != nil {
				kind = r.ControlPlane.Kind
			}
			cells = append(cells, or(r.Phase), or(r.Infrastructure), or(kind), or(r.Endpoint))
		}
		line(append(cells, r.Activity)...)
	}
	return w.Flush()
}

// or returns a text, or "-" if it is empty.
func or(text string) string { return cmp.Or(text, "-") }
