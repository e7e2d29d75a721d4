package rollout

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"sigs.k8s.io/cluster-api/clusterctl/clusterflags"
	"sigs.k8s.io/cluster-api/clusterctl/clusterrollout"
	"sigs.k8s.io/cluster-api/clusterctl/factory"
	"sigs.k8s.io/cluster-api/clusterctl/iostreams"
	"sigs.k8s.io/cluster-api/clusterctl/management"
	"sigs.k8s.io/cluster-api/clusterctl/rollout"
)

// FleetOptions are the inputs that commands for ClusterRollouts have in common.
type FleetOptions struct {
	IO         *iostreams.Streams
	Connect    func(management.Kubeconfig) (*management.Cluster, error)
	Clock      clock.Clock
	Kubeconfig management.Kubeconfig
	Namespace  string
	// Name is the name of the ClusterRollout.
	Name string
}

func newFleetOptions(f *factory.Factory) *FleetOptions {
	return &FleetOptions{IO: f.IO, Connect: f.Connect, Clock: clock.RealClock{}}
}

// complete adds flags, the argument and shell completion to a command for one ClusterRollout. execute runs it.
func (o *FleetOptions) complete(cmd *cobra.Command, f *factory.Factory, execute func(context.Context) error) *cobra.Command {
	cmd.Args = func(cmd *cobra.Command, args []string) (err error) {
		o.Name, err = rolloutName(cmd, args)
		return err
	}
	cmd.RunE = func(cmd *cobra.Command, _ []string) error { return execute(cmd.Context()) }
	o.addFlags(cmd, f)
	return cmd
}

// addFlags adds the flags and shell completion.
func (o *FleetOptions) addFlags(cmd *cobra.Command, f *factory.Factory) {
	clusterflags.AddKubeconfig(cmd, &o.Kubeconfig, false)
	cmd.Flags().StringVarP(&o.Namespace, "namespace", "n", "",
		"The `namespace` of the ClusterRollout. Defaults to the kubeconfig's current namespace")
	clusterflags.CompleteNamespaces(cmd, f, &o.Kubeconfig, "namespace")
	cmd.ValidArgsFunction = clusterflags.Names(f, &o.Kubeconfig, &o.Namespace, kind())
}

func kind() schema.GroupVersionKind {
	return rollout.Kinds([]string{rollout.ClusterRollout})[rollout.ClusterRollout]
}

// rolloutName returns the name of a ClusterRollout, which may have its type before it.
func rolloutName(cmd *cobra.Command, args []string) (string, error) {
	switch {
	case len(args) == 0:
		return "", fmt.Errorf("the name of a ClusterRollout is required: see `%s --help`", cmd.CommandPath())
	case len(args) > 1:
		return "", fmt.Errorf("expected one name of a ClusterRollout, got %d (%s): see `%s --help`", len(args), strings.Join(args, ", "),
			cmd.CommandPath())
	}
	word, name, typed := strings.Cut(args[0], "/")
	switch {
	case !typed:
		return args[0], nil
	case strings.ToLower(word) == rollout.ClusterRollout && name != "":
		return name, nil
	}
	return "", fmt.Errorf("%q is no ClusterRollout: for the rollouts of one cluster, `clusterctl wait cluster NAME` waits until all of them "+
		"are complete, and `clusterctl explain NAME` shows what they wait for", args[0])
}

// connect connects to the management cluster, and returns the key of the ClusterRollout.
func (o *FleetOptions) connect(ctx context.Context) (*management.Cluster, client.ObjectKey, error) {
	m, err := o.Connect(o.Kubeconfig)
	if err != nil {
		return nil, client.ObjectKey{}, err
	}
	return m, m.Key(o.Namespace, o.Name), m.CheckContract(ctx)
}

// changes connects to the management cluster, and returns what changes the ClusterRollout.
func (o *FleetOptions) changes(ctx context.Context) (*clusterrollout.Changes, error) {
	m, key, err := o.connect(ctx)
	if err != nil {
		return nil, err
	}
	changes := clusterrollout.NewChanges(m.Client, key)
	changes.Now = o.Clock.Now
	return changes, nil
}

// ask asks the user to confirm.
func (o *FleetOptions) ask(question string) error {
	fmt.Fprintf(o.IO.Err, "%s\nType %s to go on: ", question, o.Name)
	line, err := bufio.NewReader(o.IO.In).ReadString('\n')
	switch answer := strings.TrimSpace(line); {
	case answer == o.Name:
		return nil
	case err != nil && answer == "":
		return errors.New("nothing is changed: there is no answer; use --yes without a terminal")
	}
	return errors.New("nothing is changed")
}
