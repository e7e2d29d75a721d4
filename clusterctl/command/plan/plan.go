// Package plan is the command `clusterctl plan`, which is also `clusterctl alpha topology plan`.
package plan

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/clock"

	"sigs.k8s.io/cluster-api/clusterctl/clusterflags"
	"sigs.k8s.io/cluster-api/clusterctl/factory"
	"sigs.k8s.io/cluster-api/clusterctl/iostreams"
	"sigs.k8s.io/cluster-api/clusterctl/management"
	"sigs.k8s.io/cluster-api/packages/manifest"
	"sigs.k8s.io/cluster-api/providers/control-plane-kubeadm/replacement"
	"sigs.k8s.io/cluster-api/providers/core/topologyplan"
)

// Options are the inputs of the command.
type Options struct {
	IO         *iostreams.Streams
	Connect    func(management.Kubeconfig) (*management.Cluster, error)
	Clock      clock.PassiveClock
	Kubeconfig management.Kubeconfig
	Namespace  string
	// Files are files of YAML or JSON; "-" is the standard input.
	Files []string
	// ClusterName is the Cluster to plan, empty for the only one that is affected.
	ClusterName string
	// Directory is where the changed objects are written to; empty: nowhere.
	Directory string
	// Output is text, json or yaml.
	Output string
	// ExitCode makes changes an error with the code ExitChanges.
	ExitCode bool
	// SkipExtensions leaves out the patches of runtime extensions.
	SkipExtensions bool
	// DiffCommand compares two files, which follow its arguments.
	DiffCommand string
}

// NewPlan returns the command `clusterctl plan`. runF, if not nil, is run instead.
func NewPlan(f *factory.Factory, runF func(context.Context, *Options) error) *cobra.Command {
	cmd, opts := newCmd(f, runF)
	cmd.Short = "Show what a changed ClusterClass, template or Cluster changes"
	cmd.Example = `  # Show what a changed ClusterClass changes, if one Cluster uses it
  clusterctl plan -f modified-class.yaml

  # The same for one of several Clusters, with all objects and their differences in files
  clusterctl plan -f modified-class.yaml --cluster my-cluster --output-directory plan

  # Show what a new Cluster and its class create, without a management cluster
  clusterctl plan -f class.yaml -f cluster.yaml

  # Fail if a change replaces Machines
  clusterctl plan -f modified-class.yaml -o json | jq -e '[.rounds[].rollouts[].machines[]] == []'

  # Find out in a script whether anything changes: the exit code is 0 if not, and 2 if so
  clusterctl plan -f cluster.yaml --exit-code`
	flags := cmd.Flags()
	flags.StringVar(&opts.Directory, "output-directory", "", "A `directory` for the changed objects. It is created if it does not exist")
	clusterflags.AddOutput(cmd, &opts.Output, "text", "json", "yaml")
	flags.BoolVar(&opts.ExitCode, "exit-code", false, "Exit with 2 if objects change or Machines are replaced")
	return cmd
}

// NewTopologyPlan returns the command `clusterctl alpha topology plan`: the same with the flags of previous versions, where -o is the
// directory. runF, if not nil, is run instead.
func NewTopologyPlan(f *factory.Factory, runF func(context.Context, *Options) error) *cobra.Command {
	cmd, opts := newCmd(f, runF)
	cmd.Short = "List the changes to clusters that use managed topologies for a given input"
	cmd.Long += "\n\nThis is the name of `clusterctl plan` in previous versions. The meaning of -o differs: here it is a directory."
	cmd.Example = `  # Show what a changed ClusterClass changes, if one Cluster uses it
  clusterctl alpha topology plan -f modified-class.yaml -o plan

  # The same for one of several Clusters
  clusterctl alpha topology plan -f modified-class.yaml -o plan --cluster my-cluster`
	cmd.Flags().StringVarP(&opts.Directory, "output-directory", "o", "",
		"A `directory` for the changed objects. It is created if it does not exist")
	clusterflags.AddLongOutput(cmd, &opts.Output, "text", "json", "yaml")
	return cmd
}

// newCmd returns what both commands have in common.
func newCmd(f *factory.Factory, runF func(context.Context, *Options) error) (*cobra.Command, *Options) {
	opts := &Options{IO: f.IO, Connect: f.Connect, Clock: clock.RealClock{}}
	cmd := &cobra.Command{
		Use: "plan",
		Long: `Show what applying ClusterClasses, templates and a Cluster would change: which ClusterClasses and Clusters are
affected, and for one Cluster which objects the topology controller creates, modifies and deletes, and which
Machines are replaced, in which order and why.

The plan is made with the objects of the management cluster, which is not changed: ClusterClasses and Clusters
are validated by clusterctl, other objects by dry runs. If there is no kubeconfig, or its cluster is not a
management cluster, the files are all there is.

All objects must be in one namespace, with at most one Cluster, one ClusterClass, and one API version of each
kind.`,
		Args: clusterflags.NoArgs(""),
		RunE: func(cmd *cobra.Command, _ []string) error {
			command, _ := f.Env("KUBECTL_EXTERNAL_DIFF")
			opts.DiffCommand = cmp.Or(strings.TrimSpace(command), "diff -u -N")
			if runF != nil {
				return runF(cmd.Context(), opts)
			}
			return run(cmd.Context(), opts)
		},
	}
	clusterflags.AddKubeconfig(cmd, &opts.Kubeconfig, false)
	clusterflags.AddNamespace(cmd, f, &opts.Kubeconfig, &opts.Namespace)
	flags := cmd.Flags()
	flags.StringArrayVarP(&opts.Files, "file", "f", nil, "A `file` with objects to apply; may be repeated. - is the standard input")
	flags.StringVarP(&opts.ClusterName, "cluster", "c", "", "The `name` of the Cluster to plan. Defaults to the only one that is affected")
	flags.BoolVar(&opts.SkipExtensions, "skip-extensions", false,
		"Leave out the patches of runtime extensions, which are called from this machine otherwise")
	clusterflags.CompleteClusters(cmd, f, &opts.Kubeconfig, &opts.Namespace, "cluster")
	if err := cmd.MarkFlagRequired("file"); err != nil {
		panic(err) // the flag is defined above
	}
	return cmd, opts
}

func run(ctx context.Context, opts *Options) error {
	if info, err := os.Stat(opts.Directory); err == nil && !info.IsDir() {
		return fmt.Errorf("--output-directory %q is not a directory", opts.Directory)
	}
	objects, err := opts.read()
	if err != nil {
		return err
	}
	in := topologyplan.Input{
		Objects:        objects,
		Cluster:        opts.ClusterName,
		Namespace:      opts.Namespace,
		SkipExtensions: opts.SkipExtensions,
		UserAgent:      "clusterctl",
		Now:            opts.now(),
		ControlPlanes:  map[schema.GroupKind]topologyplan.Outdated{replacement.Kind(): replacement.Reasons},
	}
	m, err := opts.connect(ctx)
	if err != nil {
		return err
	}
	if m != nil {
		if in.Live, err = m.Discovering(topologyplan.Contracts, func() {
			opts.IO.Infof("You may not read CustomResourceDefinitions: their schemas are discovered, and contracts of other providers are assumed")
		}); err != nil {
			return err
		}
		in.Namespace = cmp.Or(in.Namespace, m.Namespace)
		services, err := management.NewDialer(m.Client, m.Config)
		if err != nil {
			return err
		}
		in.Dial = services.DialContext
	}
	in.Namespace = namespace(in.Namespace, objects)
	plan, err := topologyplan.Compute(ctx, in)
	if apierrors.IsForbidden(err) {
		return fmt.Errorf("a plan reads ClusterClasses with their templates, and needs the ClusterRole view in their namespaces: %w", err)
	}
	if err != nil {
		return err
	}
	if err := opts.report(ctx, plan); err != nil || !opts.ExitCode {
		return err
	}
	return exitCode(plan)
}

// report prints the plan, and writes the files.
func (o *Options) report(ctx context.Context, plan *topologyplan.Plan) error {
	if o.Output == "text" {
		return o.show(ctx, plan)
	}
	if err := o.print(plan); err != nil || len(plan.Rounds) == 0 {
		return err
	}
	return o.write(ctx, plan.Rounds[0].Changes, o.IO.Err)
}

// exitCode returns an error with ExitChanges if something changes.
func exitCode(plan *topologyplan.Plan) error {
	switch {
	case plan.Cluster == nil && len(plan.Clusters) > 0:
		return errors.New("--exit-code is for one Cluster, and several are affected: use --cluster")
	case slices.ContainsFunc(plan.Rounds, func(r topologyplan.Round) bool { return len(r.Changes)+len(r.Rollouts) > 0 }):
		return factory.WithAnswer(fmt.Errorf("Cluster %s changes", plan.Cluster), factory.ExitChanges)
	default:
		return nil
	}
}

func (o *Options) now() time.Time { return o.Clock.Now() }

// read reads the objects of all files.
func (o *Options) read() ([]*unstructured.Unstructured, error) {
	all, err := clusterflags.ReadFiles(o.IO, o.Files)
	if err == nil && len(all) == 0 {
		err = errors.New("the files have no objects: add ClusterClasses, templates or a Cluster to --file")
	}
	return all, err
}

// connect returns nil if there is no management cluster, unless flags select one.
func (o *Options) connect(ctx context.Context) (*management.Cluster, error) {
	m, err := o.Connect(o.Kubeconfig)
	if err == nil {
		err = m.CheckContract(ctx)
	}
	if err == nil {
		return m, nil
	}
	var connection *management.ConnectionError
	absent := errors.Is(err, management.ErrNoKubeconfig) || errors.Is(err, management.ErrNotInitialized) || errors.As(err, &connection)
	if o.Kubeconfig != (management.Kubeconfig{}) || !absent {
		return nil, err
	}
	o.IO.Warnf("The plan is made with the objects of the files alone, because there is no management cluster: %v", err)
	return nil, nil
}

// namespace sets the namespace of objects that have none, and returns it: the given one, or that of the first object that has one,
// or "default".
func namespace(given string, objects []*unstructured.Unstructured) string {
	for _, u := range objects {
		given = cmp.Or(given, u.GetNamespace())
	}
	given = cmp.Or(given, "default")
	for _, u := range objects {
		if u.GetNamespace() == "" && u.GetKind() != manifest.KindCRD {
			u.SetNamespace(given)
		}
	}
	return given
}
