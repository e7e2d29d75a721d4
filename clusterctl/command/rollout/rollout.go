// Package rollout has the commands `clusterctl rollout restart|pause|resume|undo`, one file each, and in this one their
// common options, flags, arguments and shell completion. Those of `clusterctl rollout plan|status|approve|abort|retry`, which are about
// ClusterRollouts, are in fleet.go.
package rollout

import (
	"cmp"
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"sigs.k8s.io/cluster-api/clusterctl/clusterflags"
	"sigs.k8s.io/cluster-api/clusterctl/factory"
	"sigs.k8s.io/cluster-api/clusterctl/iostreams"
	"sigs.k8s.io/cluster-api/clusterctl/management"
	"sigs.k8s.io/cluster-api/clusterctl/rollout"
)

// Options are the inputs of the commands.
type Options struct {
	IO         *iostreams.Streams
	Connect    func(management.Kubeconfig) (*management.Cluster, error)
	Kubeconfig management.Kubeconfig
	Namespace  string
	Resources  []rollout.Resource
}

// newOptions returns the options of a command, with the dependencies from the factory.
func newOptions(f *factory.Factory) *Options { return &Options{IO: f.IO, Connect: f.Connect} }

// complete adds flags, arguments and shell completion to a command for resources of some types. execute runs the command.
func (o *Options) complete(cmd *cobra.Command, f *factory.Factory, types []string, execute func(context.Context) error) *cobra.Command {
	cmd.Args = func(cmd *cobra.Command, args []string) (err error) {
		o.Resources, err = parse(cmd, args, types)
		return err
	}
	cmd.RunE = func(cmd *cobra.Command, _ []string) error { return execute(cmd.Context()) }
	clusterflags.AddKubeconfig(cmd, &o.Kubeconfig, false)
	clusterflags.AddNamespace(cmd, f, &o.Kubeconfig, &o.Namespace)
	cmd.ValidArgsFunction = clusterflags.Resources(f, &o.Kubeconfig, &o.Namespace, rollout.Kinds(types))
	return cmd
}

func parse(cmd *cobra.Command, args, types []string) ([]rollout.Resource, error) {
	if len(args) == 0 {
		return nil, fmt.Errorf("a resource is required, for example %s/my-md-0: see `%s --help`", types[0], cmd.CommandPath())
	}
	var resources []rollout.Resource
	for _, arg := range args {
		r, err := rollout.Parse(arg, types)
		if err != nil {
			return nil, err
		}
		resources = append(resources, r)
	}
	return resources, nil
}

// forEach applies an operation to one resource after the other, and reports each as done. It stops at the first error.
func (o *Options) forEach(ctx context.Context, done string, operation func(*rollout.Rollouts, rollout.Resource) error) error {
	m, err := o.Connect(o.Kubeconfig)
	if err != nil {
		return err
	}
	if err := m.CheckContract(ctx); err != nil {
		return err
	}
	rollouts := rollout.New(m.Client, cmp.Or(o.Namespace, m.Namespace), o.IO.Warnf)
	for _, r := range o.Resources {
		if err := operation(rollouts, r); err != nil {
			return err
		}
		o.IO.Infof("%s %s", r, done)
	}
	return nil
}
