// Package oncluster is what the commands about the etcd of one workload cluster have in common: the Cluster that they are about, and how
// long they wait. What they create belongs in the packages of the commands.
package oncluster

import (
	"context"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"sigs.k8s.io/cluster-api/clusterctl/clusterflags"
	"sigs.k8s.io/cluster-api/clusterctl/factory"
	"sigs.k8s.io/cluster-api/clusterctl/iostreams"
	"sigs.k8s.io/cluster-api/clusterctl/management"
	"sigs.k8s.io/cluster-api/clusterctl/tree"
)

// defaultTimeout is how long commands wait: a backup may be large, and machines of some providers take a quarter of an hour to start.
const defaultTimeout = time.Hour

// Options are the inputs that these commands have in common.
type Options struct {
	IO          *iostreams.Streams
	Connect     func(management.Kubeconfig) (*management.Cluster, error)
	Clock       clock.PassiveClock
	Kubeconfig  management.Kubeconfig
	Namespace   string
	ClusterName string
	// NoWait ends the command when it has created its object, and Timeout is how long it waits otherwise.
	NoWait  bool
	Timeout time.Duration
}

// New returns the options of a command, without those that flags set.
func New(f *factory.Factory) Options {
	return Options{IO: f.IO, Connect: f.Connect, Clock: clock.RealClock{}}
}

// AddFlags adds the flags to a command. noWait says what the command does not wait for.
func (o *Options) AddFlags(cmd *cobra.Command, f *factory.Factory, noWait string) {
	clusterflags.AddKubeconfig(cmd, &o.Kubeconfig, false)
	clusterflags.AddNamespace(cmd, f, &o.Kubeconfig, &o.Namespace)
	cmd.Flags().BoolVar(&o.NoWait, "no-wait", false, noWait)
	cmd.Flags().DurationVar(&o.Timeout, "timeout", defaultTimeout, "How long to wait, for example 90s or 20m")
	cmd.ValidArgsFunction = clusterflags.ClusterNames(f, &o.Kubeconfig, &o.Namespace)
}

// Cluster connects to the management cluster, and returns the Cluster, which must exist.
func (o *Options) Cluster(ctx context.Context) (*management.Cluster, *unstructured.Unstructured, error) {
	m, err := o.Connect(o.Kubeconfig)
	if err != nil {
		return nil, nil, err
	}
	name := m.Key(o.Namespace, o.ClusterName)
	cluster := &unstructured.Unstructured{}
	cluster.SetGroupVersionKind(tree.ClusterKind)
	if err := m.Client.Get(ctx, name, cluster); err != nil {
		if client.IgnoreNotFound(err) == nil {
			return nil, nil, management.NoCluster(name)
		}
		return nil, nil, m.OrNotInitialized(ctx, err)
	}
	return m, cluster, nil
}
