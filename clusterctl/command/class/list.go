package class

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/util/duration"
	"k8s.io/utils/clock"

	"sigs.k8s.io/cluster-api/clusterctl/clusterflags"
	"sigs.k8s.io/cluster-api/clusterctl/factory"
	"sigs.k8s.io/cluster-api/clusterctl/iostreams"
	"sigs.k8s.io/cluster-api/clusterctl/management"
	"sigs.k8s.io/cluster-api/clusterctl/revision"
	"sigs.k8s.io/cluster-api/clusterctl/tree"
)

// ListOptions are the inputs of the command.
type ListOptions struct {
	IO            *iostreams.Streams
	Connect       func(management.Kubeconfig) (*management.Cluster, error)
	Clock         clock.PassiveClock
	Kubeconfig    management.Kubeconfig
	Namespace     string
	AllNamespaces bool
	// Names selects classes; empty for all.
	Names []string
	// Output is text, name, json or yaml.
	Output string
}

// NewList returns the command. runF, if not nil, is run instead.
func NewList(f *factory.Factory, runF func(context.Context, *ListOptions) error) *cobra.Command {
	opts := &ListOptions{IO: f.IO, Connect: f.Connect, Clock: clock.RealClock{}}
	cmd := &cobra.Command{
		Use:     "list [NAME ...]",
		Aliases: []string{"ls"},
		Short:   "List the revisions of ClusterClasses, and how many Clusters use each",
		Long: `List ClusterClasses and their revisions, the newest first: how many Clusters use each, and their versions of Kubernetes.

The Clusters are those of all namespaces.`,
		Example: `  # List the revisions of a class
  clusterctl class list my-class

  # The newest revision, for scripts
  clusterctl class list my-class -o json | jq -r '.items[] | select(.newest) | .name'`,
		RunE: func(cmd *cobra.Command, args []string) error {
			opts.Names = args
			if runF != nil {
				return runF(cmd.Context(), opts)
			}
			return runList(cmd.Context(), opts)
		},
	}
	clusterflags.AddKubeconfig(cmd, &opts.Kubeconfig, false)
	addNamespace(cmd, f, &opts.Kubeconfig, &opts.Namespace)
	cmd.Flags().BoolVarP(&opts.AllNamespaces, "all-namespaces", "A", false, "List the classes of all namespaces")
	clusterflags.AddOutput(cmd, &opts.Output, "text", "name", "json", "yaml")
	cmd.MarkFlagsMutuallyExclusive("namespace", "all-namespaces")
	cmd.ValidArgsFunction = names(f, &opts.Kubeconfig, &opts.Namespace)
	return cmd
}

// addNamespace adds --namespace, the namespace of classes.
func addNamespace(cmd *cobra.Command, f *factory.Factory, k *management.Kubeconfig, value *string) {
	cmd.Flags().StringVarP(value, "namespace", "n", "", "The `namespace` of the class. Defaults to the kubeconfig's current namespace")
	clusterflags.CompleteNamespaces(cmd, f, k, "namespace")
}

func runList(ctx context.Context, opts *ListOptions) error {
	m, err := opts.Connect(opts.Kubeconfig)
	if err != nil {
		return err
	}
	namespace := cmp.Or(opts.Namespace, m.Namespace)
	if opts.AllNamespaces {
		namespace = ""
	}
	w, allowed, err := read(ctx, m, namespace)
	if err != nil {
		return err
	}
	if !allowed {
		opts.IO.Warnf("You may not list Clusters of other namespaces: those that use classes of namespace %s are not counted", namespace)
	}
	rows, err := w.Rows(opts.Names...)
	if err != nil {
		return err
	}
	for _, name := range opts.Names {
		if !slices.ContainsFunc(rows, func(r revision.Row) bool { return r.Class == name }) {
			return noClass(namespace, name)
		}
	}
	switch {
	case clusterflags.ForPrograms(opts.Output):
		return clusterflags.Print(opts.IO.Out, opts.Output, map[string]any{"items": append([]revision.Row{}, rows...)})
	case opts.Output == "name":
		for _, r := range rows {
			fmt.Fprintln(opts.IO.Out, tree.ReferenceName(classKind().GroupVersion().String(), classKind().Kind, r.Name))
		}
		return nil
	case len(rows) == 0:
		opts.IO.Infof("No ClusterClasses found in %s", cmp.Or(namespace, "any namespace"))
		return nil
	}
	return opts.table(rows)
}

// noClass is the error for a class that does not exist.
func noClass(namespace, name string) error {
	return fmt.Errorf("there is no class %s in %s: see `clusterctl class list -A`", name, cmp.Or(namespace, "any namespace"))
}

// table prints one line per class.
func (o *ListOptions) table(rows []revision.Row) error {
	w := tabwriter.NewWriter(o.IO.Out, 0, 8, 3, ' ', 0)
	line := func(cells ...string) { fmt.Fprintln(w, strings.TrimRight(strings.Join(cells, "\t"), "\t")) }
	columns := []string{"CLASS", "NAME", "AGE", "CLUSTERS", "VERSIONS", "REVISION"}
	if o.AllNamespaces {
		columns = append([]string{"NAMESPACE"}, columns...)
	}
	line(columns...)
	for _, r := range rows {
		cells := []string{r.Class, r.Name, duration.HumanDuration(o.Clock.Since(r.Created)), fmt.Sprint(r.Clusters), versions(r), kindOf(r)}
		if o.AllNamespaces {
			cells = append([]string{r.Namespace}, cells...)
		}
		line(cells...)
	}
	return w.Flush()
}

// versions returns how many Clusters have which version.
func versions(r revision.Row) string {
	var list []string
	for _, v := range slices.Sorted(maps.Keys(r.Versions)) {
		list = append(list, fmt.Sprintf("%s (%d)", cmp.Or(v, "unknown"), r.Versions[v]))
	}
	return cmp.Or(strings.Join(list, ", "), "-")
}

// kindOf returns the last column: what kind of revision a row is, and what keeps it.
func kindOf(r revision.Row) string {
	kind := "older"
	switch {
	case !r.Revision:
		kind = "no: edits change all its Clusters"
	case r.Newest:
		kind = "newest"
	}
	if r.Held != "" {
		kind += ": " + r.Held
	}
	return kind
}
