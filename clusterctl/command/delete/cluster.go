package delete

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/gobuffalo/flect"
	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"sigs.k8s.io/cluster-api/clusterctl/clusterflags"
	"sigs.k8s.io/cluster-api/clusterctl/factory"
	"sigs.k8s.io/cluster-api/clusterctl/iostreams"
	"sigs.k8s.io/cluster-api/clusterctl/management"
	"sigs.k8s.io/cluster-api/clusterctl/tree"
	"sigs.k8s.io/cluster-api/clusterctl/tree/live"
)

// defaultTimeout is enough for real machines that start one after the other.
const defaultTimeout = 30 * time.Minute

// ClusterOptions are the inputs of the command.
type ClusterOptions struct {
	IO          *iostreams.Streams
	Connect     func(management.Kubeconfig) (*management.Cluster, error)
	Clock       clock.Clock
	Kubeconfig  management.Kubeconfig
	Namespace   string
	ClusterName string
	Wait        bool
	Timeout     time.Duration
}

// NewCluster returns the command. runF, if not nil, is run instead.
func NewCluster(f *factory.Factory, runF func(context.Context, *ClusterOptions) error) *cobra.Command {
	opts := &ClusterOptions{IO: f.IO, Connect: f.Connect, Clock: clock.RealClock{}}
	noWait := false
	cmd := &cobra.Command{
		Use:   "cluster NAME",
		Short: "Delete a workload cluster and wait until it is gone",
		Long: `Delete a workload cluster with its machines, and wait until it is gone.

The controllers of the management cluster delete the objects in the right order, whether or not this command
waits. Do not delete the objects of a cluster one by one, or with the file they were created from: that can
leave infrastructure behind.`,
		Example: `  # Delete a workload cluster
  clusterctl delete cluster my-cluster

  # Delete a workload cluster in a namespace, without waiting
  clusterctl delete cluster my-cluster --namespace foo --no-wait`,
		Args: clusterflags.OneName,
		RunE: func(cmd *cobra.Command, args []string) error {
			opts.ClusterName = args[0]
			opts.Wait = opts.Wait && !noWait
			if opts.Wait && opts.Timeout <= 0 {
				return fmt.Errorf("--timeout is %s: it must be positive", opts.Timeout)
			}
			if runF != nil {
				return runF(cmd.Context(), opts)
			}
			return runCluster(cmd.Context(), opts)
		},
	}
	clusterflags.AddKubeconfig(cmd, &opts.Kubeconfig, false)
	clusterflags.AddNamespace(cmd, f, &opts.Kubeconfig, &opts.Namespace)
	cmd.Flags().BoolVar(&opts.Wait, "wait", true, "Wait until the workload cluster is completely deleted")
	cmd.Flags().BoolVar(&noWait, "no-wait", false, "Same as --wait=false")
	cmd.Flags().DurationVar(&opts.Timeout, "timeout", defaultTimeout, "How long to wait, for example 90s or 20m")
	cmd.MarkFlagsMutuallyExclusive("wait", "no-wait")
	cmd.ValidArgsFunction = clusterflags.ClusterNames(f, &opts.Kubeconfig, &opts.Namespace)
	return cmd
}

func runCluster(ctx context.Context, opts *ClusterOptions) error {
	m, err := opts.Connect(opts.Kubeconfig)
	if err != nil {
		return err
	}
	name := m.Key(opts.Namespace, opts.ClusterName)
	if err := deleteCluster(ctx, opts, m, name); err != nil || !opts.Wait {
		return err
	}
	return follow(ctx, opts, m, name)
}

// deleteCluster deletes the Cluster, unless it is already being deleted.
func deleteCluster(ctx context.Context, opts *ClusterOptions, m *management.Cluster, name types.NamespacedName) error {
	cluster := &unstructured.Unstructured{}
	cluster.SetGroupVersionKind(tree.ClusterKind)
	err := m.Client.Get(ctx, name, cluster)
	if meta.IsNoMatchError(err) || apierrors.IsNotFound(err) {
		if err := m.CheckContract(ctx); err != nil {
			return err
		}
		return management.NoCluster(name)
	}
	if err != nil {
		return fmt.Errorf("cannot read cluster %s: %w", name, err)
	}
	if tree.True(cluster, "spec", "paused") {
		opts.IO.Warnf("Cluster %s is paused: it is not deleted until spec.paused is removed", name)
	}
	if since := cluster.GetDeletionTimestamp(); since != nil {
		opts.IO.Infof("Cluster %s is already being deleted, since %s", name, since.UTC().Format(time.RFC3339))
		return nil
	}
	uid := cluster.GetUID()
	if err := m.Client.Delete(ctx, cluster, client.Preconditions(metav1.Preconditions{UID: &uid})); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("cannot delete cluster %s: %w", name, err)
	}
	opts.IO.Infof("Deleting cluster %s: first its Machines, the Cluster itself last", name)
	return nil
}

// follow shows the remaining objects until there are none.
func follow(ctx context.Context, opts *ClusterOptions, m *management.Cluster, name types.NamespacedName) error {
	ending := live.Ending{
		Cluster: name, Timeout: opts.Timeout, State: "gone", Going: fmt.Sprintf("the deletion of cluster %s", name),
		Hint: fmt.Sprintf("see `clusterctl explain %s -n %s`", name.Name, name.Namespace),
	}
	// The sweep has the rest of the time.
	ctx, cancel := ending.Context(ctx)
	defer cancel()
	f := live.New(opts.IO, opts.Clock, name)
	f.Screen.ChangesOnly = true
	if err := f.Wait(ctx, m.Client, ending, func(_ context.Context, objects *tree.Objects) ([]string, error) {
		return remaining(objects), nil
	}); err != nil {
		return err
	}
	s := &sweeper{IO: opts.IO, client: m.Client, resources: m.Resources, cluster: name}
	if err := s.sweep(ctx); err != nil {
		if ctx.Err() != nil {
			err = context.Cause(ctx)
		}
		return ending.Explain(err, s.waiting, nil)
	}
	opts.IO.Infof("Cluster %s is deleted", name)
	return nil
}

// remaining returns the number of remaining objects by kind.
func remaining(objects *tree.Objects) []string {
	counts := map[string]int{}
	for _, u := range objects.All() {
		counts[u.GetKind()]++
	}
	var left []string
	for _, kind := range slices.Sorted(maps.Keys(counts)) {
		if counts[kind] == 1 {
			left = append(left, "1 "+kind)
		} else {
			left = append(left, fmt.Sprintf("%d %s", counts[kind], flect.Pluralize(kind)))
		}
	}
	if len(left) == 0 {
		return nil
	}
	return []string{strings.Join(left, ", ") + " to be deleted"}
}
