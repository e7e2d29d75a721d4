// Package wait is the command `clusterctl wait`: it ends when the spec of a Cluster is rolled out.
package wait

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"

	"sigs.k8s.io/cluster-api/clusterctl/clusterflags"
	"sigs.k8s.io/cluster-api/clusterctl/factory"
	"sigs.k8s.io/cluster-api/clusterctl/iostreams"
	"sigs.k8s.io/cluster-api/clusterctl/management"
	"sigs.k8s.io/cluster-api/clusterctl/ready"
	"sigs.k8s.io/cluster-api/clusterctl/tree"
	"sigs.k8s.io/cluster-api/clusterctl/tree/live"
	"sigs.k8s.io/cluster-api/clusterctl/tree/snapshot"
	"sigs.k8s.io/cluster-api/packages/retry"
)

// defaultTimeout is enough to replace the Machines of a large cluster one by one.
const defaultTimeout = time.Hour

// Options are the inputs of the command.
type Options struct {
	IO          *iostreams.Streams
	Connect     func(management.Kubeconfig) (*management.Cluster, error)
	Clock       clock.Clock
	Kubeconfig  management.Kubeconfig
	Namespace   string
	ClusterName string
	Timeout     time.Duration
}

// NewCluster returns the command `clusterctl wait cluster`. runF, if not nil, is run instead.
func NewCluster(f *factory.Factory, runF func(context.Context, *Options) error) *cobra.Command {
	opts := &Options{IO: f.IO, Connect: f.Connect, Clock: clock.RealClock{}}
	cmd := &cobra.Command{
		Use:   "cluster NAME",
		Short: "Wait until the spec of a workload cluster is rolled out",
		Long: `Wait until everything that the spec of a workload cluster requires exists, is up to date and is ready: its topology
is applied as ` + "`clusterctl plan`" + ` predicts, all Machines have the current version and template, those that they
replace are gone, and nothing reports that it is not ready.

A change that was made before this command counts, even if no controller has seen it yet. If Nodes are all that is not
ready for a minute, for example because the cluster has no network plugin, the command ends with a warning.

The exit code is 124 if the cluster is not ready in time.`,
		Example: `  # Upgrade a workload cluster, and wait until all Machines are upgraded
  kubectl patch cluster my-cluster --type merge -p '{"spec":{"topology":{"version":"v1.32.0"}}}'
  clusterctl wait cluster my-cluster --timeout 1h`,
		Args: clusterflags.OneName,
		RunE: func(cmd *cobra.Command, args []string) error {
			opts.ClusterName = args[0]
			if runF != nil {
				return runF(cmd.Context(), opts)
			}
			return run(cmd.Context(), opts)
		},
	}
	clusterflags.AddKubeconfig(cmd, &opts.Kubeconfig, false)
	clusterflags.AddNamespace(cmd, f, &opts.Kubeconfig, &opts.Namespace)
	cmd.Flags().DurationVar(&opts.Timeout, "timeout", defaultTimeout, "How long to wait, for example 90s or 20m")
	cmd.ValidArgsFunction = clusterflags.ClusterNames(f, &opts.Kubeconfig, &opts.Namespace)
	return cmd
}

func run(ctx context.Context, opts *Options) error {
	m, err := opts.Connect(opts.Kubeconfig)
	if err != nil {
		return err
	}
	name := m.Key(opts.Namespace, opts.ClusterName)
	planner, err := newPlanner(opts, m)
	if err != nil {
		return err
	}
	if warning := m.WithoutProviders(ctx); warning != "" {
		opts.IO.Warnf("%s", warning)
	}
	opts.IO.Infof("Waiting for cluster %s; interrupting this command changes nothing", name)
	warning, err := follow(ctx, opts, m, name, planner)
	if err != nil {
		return err
	}
	if warning != "" {
		opts.IO.Warnf("cluster %s is rolled out, but not fully ready: %s", name, warning)
		return nil
	}
	opts.IO.Infof("Cluster %s is ready", name)
	return nil
}

// follow shows the cluster until it is ready, and returns what it still lacks then.
func follow(ctx context.Context, opts *Options, m *management.Cluster, name types.NamespacedName, p *planner) (string, error) {
	f := live.New(opts.IO, opts.Clock, name)
	f.Screen.ChangesOnly = true
	w, found := &ready.Waiter{Cluster: name, Clock: opts.Clock}, false
	err := f.Wait(ctx, m.Client, live.Ending{
		Cluster: name, Timeout: opts.Timeout, State: "ready", Going: fmt.Sprintf("the rollout of cluster %s", name),
		Hint: fmt.Sprintf("see `clusterctl explain %s -n %s`", name.Name, name.Namespace),
	}, func(ctx context.Context, objects *tree.Objects) ([]string, error) {
		if found = found || objects.Cluster(name) != nil; !found {
			return nil, management.NoCluster(name)
		}
		list, err := w.Remaining(objects)
		if err != nil || len(list) > 0 {
			return list, err
		}
		if list = p.pending(ctx, objects.Cluster(name), objects); len(list) > 0 {
			return list, nil
		}
		// The plan may be of later objects than these: what the controller has just changed is not rolled out yet.
		switch objects, err = snapshot.Read(ctx, m.Client, name, f.Options); {
		case err != nil && retry.Passes(err):
			return []string{fmt.Sprintf("the objects to be read: %v", err)}, nil
		case err != nil:
			return nil, err
		case objects.Cluster(name) == nil:
			return nil, management.NoCluster(name)
		}
		return w.Remaining(objects)
	})
	if err != nil {
		return "", err
	}
	return w.Warning(), nil
}
