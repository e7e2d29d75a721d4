package get

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/duration"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"sigs.k8s.io/cluster-api/clusterctl/clusterflags"
	"sigs.k8s.io/cluster-api/clusterctl/factory"
	"sigs.k8s.io/cluster-api/clusterctl/iostreams"
	"sigs.k8s.io/cluster-api/clusterctl/management"
	"sigs.k8s.io/cluster-api/clusterctl/overview"
	"sigs.k8s.io/cluster-api/clusterctl/tree"
	"sigs.k8s.io/cluster-api/clusterctl/tree/snapshot"
)

// ClustersOptions are the inputs of the command.
type ClustersOptions struct {
	IO            *iostreams.Streams
	Connect       func(management.Kubeconfig) (*management.Cluster, error)
	Clock         clock.PassiveClock
	Kubeconfig    management.Kubeconfig
	Namespace     string
	AllNamespaces bool
	// Names selects Clusters by name; empty for all.
	Names []string
	// Selector selects Clusters by label; empty for all.
	Selector string
	// Output is text, wide, name, json or yaml.
	Output string
	// Watch prints Clusters that change, until interrupted.
	Watch bool
	// SortBy is a key of overview.Sort; empty for namespace and name.
	SortBy string
	// NoHeaders leaves out the first line of a table.
	NoHeaders bool
}

// NewClusters returns the command. runF, if not nil, is run instead.
func NewClusters(f *factory.Factory, runF func(context.Context, *ClustersOptions) error) *cobra.Command {
	opts := &ClustersOptions{IO: f.IO, Connect: f.Connect, Clock: clock.RealClock{}}
	cmd := &cobra.Command{
		Use:     "clusters [NAME ...]",
		Aliases: []string{"cluster", "cl"},
		Short:   "List workload clusters, and what is going on with each",
		Long: `List workload clusters with their version, their ready and desired Machines, and what is going on.

The number of requests depends on the number of kinds, not on that of clusters.`,
		Example: `  # List the workload clusters of all namespaces
  clusterctl get clusters --all-namespaces

  # List those with a label, with their endpoints
  clusterctl get clusters --selector team=blue --output wide

  # List those that are being upgraded or repaired first, the oldest first
  clusterctl get clusters --all-namespaces --sort-by ready
  clusterctl get clusters --all-namespaces --sort-by created

  # For scripts: names, and those that are not ready
  clusterctl get clusters --all-namespaces --output name
  clusterctl get clusters --output json | jq -r '.items[] | select(.ready != "True") | .name'`,
		RunE: func(cmd *cobra.Command, args []string) error {
			if opts.Names = args; len(args) > 0 && opts.AllNamespaces {
				return errors.New("names and --all-namespaces exclude each other: use --namespace")
			}
			if err := overview.Sort(nil, opts.SortBy); err != nil {
				return fmt.Errorf("--sort-by: %w", err)
			}
			if opts.Watch && clusterflags.ForPrograms(opts.Output) {
				return fmt.Errorf("--watch is not supported with --output %s: use a table, or run the command repeatedly", opts.Output)
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
	clusterflags.AddObjectOutput(cmd, &opts.Output)
	cmd.Flags().BoolVarP(&opts.Watch, "watch", "w", false, "After the list, print clusters that change, until interrupted")
	cmd.Flags().StringVar(&opts.SortBy, "sort-by", "", "Sort by a `column`: "+strings.Join(overview.SortKeys(), ", ")+
		". Defaults to namespace and name. The fields of kubectl, such as .metadata.creationTimestamp, are accepted, too")
	clusterflags.CompleteValues(cmd, "sort-by", overview.SortKeys()...)
	cmd.Flags().BoolVar(&opts.NoHeaders, "no-headers", false, "Leave out the headings of a table")
	cmd.MarkFlagsMutuallyExclusive("namespace", "all-namespaces")
	cmd.ValidArgsFunction = clusterflags.ClusterNames(f, &opts.Kubeconfig, &opts.Namespace)
	return cmd
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
	if opts.Watch {
		return follow(ctx, opts, m, namespace, selector)
	}
	objects, err := overview.Read(ctx, m.Client, namespace, selector)
	if err := m.OrNotInitialized(ctx, err); err != nil {
		return err
	}
	rows, err := named(overview.Rows(objects), namespace, opts.Names)
	if err != nil {
		return err
	}
	if len(rows) > 0 && opts.Output != "name" && !clusterflags.ForPrograms(opts.Output) {
		if warning := m.WithoutProviders(ctx); warning != "" {
			opts.IO.Warnf("%s", warning)
		}
	}
	if err := overview.Sort(rows, opts.SortBy); err != nil {
		return err
	}
	return write(opts, rows, namespace)
}

// follow prints the Clusters, and those that change, until the context ends: that is how users stop it.
func follow(ctx context.Context, opts *ClustersOptions, m *management.Cluster, namespace string, selector labels.Selector) error {
	watchCtx, stop := context.WithCancel(ctx)
	watcher := snapshot.WatchClusters(watchCtx, m.Client, namespace, selector)
	defer watcher.Wait()
	defer stop()
	var known []overview.Row
	for first := true; ; {
		if objects, complete := watcher.Objects(watchCtx); complete {
			rows, err := named(overview.Rows(objects), namespace, opts.Names)
			if err != nil {
				return err
			}
			changed := slices.DeleteFunc(slices.Clone(rows), func(r overview.Row) bool {
				return slices.ContainsFunc(known, func(k overview.Row) bool { return reflect.DeepEqual(k, r) })
			})
			if first || len(changed) > 0 {
				if err := write(opts, changed, namespace); err != nil {
					return err
				}
				opts.NoHeaders = opts.NoHeaders || len(rows) > 0
			}
			first, known = false, rows
		}
		select {
		case <-ctx.Done():
			return nil
		case <-watcher.Changed():
			if err := watcher.Err(); apierrors.IsForbidden(err) || apierrors.IsUnauthorized(err) {
				return err
			}
		}
	}
}

func write(opts *ClustersOptions, rows []overview.Row, namespace string) error {
	switch {
	case clusterflags.ForPrograms(opts.Output):
		return clusterflags.Print(opts.IO.Out, opts.Output, overview.List{Items: rows})
	case opts.Output == "name":
		for i := range rows {
			fmt.Fprintln(opts.IO.Out, tree.ReferenceName(tree.ClusterKind.GroupVersion().String(), tree.ClusterKind.Kind, rows[i].Name))
		}
		return nil
	default:
		return table(opts, rows, namespace)
	}
}

// named returns the rows of these Clusters, all if there are no names.
func named(rows []overview.Row, namespace string, names []string) ([]overview.Row, error) {
	for _, name := range names {
		if !slices.ContainsFunc(rows, func(r overview.Row) bool { return r.Name == name }) {
			return nil, management.NoCluster(client.ObjectKey{Namespace: namespace, Name: name})
		}
	}
	if len(names) == 0 {
		return rows, nil
	}
	return slices.DeleteFunc(rows, func(r overview.Row) bool { return !slices.Contains(names, r.Name) }), nil
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
	columns := []string{"NAME", "CLASS", "VERSION", "CONTROL PLANE", "WORKERS", "READY", "AGE"}
	if opts.AllNamespaces {
		columns = append([]string{"NAMESPACE"}, columns...)
	}
	if opts.Output == "wide" {
		columns = append(columns, "PHASE", "INFRASTRUCTURE", "CONTROL PLANE KIND", "ENDPOINT")
	}
	if !opts.NoHeaders {
		line(append(columns, "ACTIVITY")...)
	}
	now := opts.Clock.Now()
	for i := range rows {
		line(cells(opts, &rows[i], now)...)
	}
	return w.Flush()
}

// cells returns the texts of a row.
func cells(opts *ClustersOptions, r *overview.Row, now time.Time) []string {
	version := r.Version
	if r.CurrentVersion != "" {
		version = r.CurrentVersion + " -> " + r.Version
	}
	list := []string{r.Name, or(r.Class), or(version), r.ControlPlane.String(), r.Workers.String(), or(r.Ready),
		duration.HumanDuration(now.Sub(r.Created.Time))}
	if opts.AllNamespaces {
		list = append([]string{r.Namespace}, list...)
	}
	if opts.Output == "wide" {
		kind := ""
		if r.ControlPlane != nil {
			kind = r.ControlPlane.Kind
		}
		list = append(list, or(r.Phase), or(r.Infrastructure), or(kind), or(r.Endpoint))
	}
	return append(list, r.Activity)
}

// or returns a text, or "-" if it is empty.
func or(text string) string { return cmp.Or(text, "-") }
