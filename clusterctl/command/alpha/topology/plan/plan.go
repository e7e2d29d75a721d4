// Package plan is the command `clusterctl alpha topology plan`.
package plan

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/clock"

	"sigs.k8s.io/cluster-api/clusterctl/clusterflags"
	"sigs.k8s.io/cluster-api/clusterctl/factory"
	"sigs.k8s.io/cluster-api/clusterctl/iostreams"
	"sigs.k8s.io/cluster-api/clusterctl/management"
	"sigs.k8s.io/cluster-api/clusterctl/servicedial"
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
	// Directory is an existing directory for the changed objects.
	Directory string
	// Output is text or json.
	Output string
	// SkipExtensions leaves out the patches of runtime extensions.
	SkipExtensions bool
	// DiffCommand compares two files, which follow its arguments.
	DiffCommand string
}

// NewCmd returns the command. runF, if not nil, is run instead.
func NewCmd(f *factory.Factory, runF func(context.Context, *Options) error) *cobra.Command {
	opts := &Options{IO: f.IO, Connect: f.Connect, Clock: clock.RealClock{}}
	cmd := &cobra.Command{
		Use:   "plan",
		Short: "List the changes to clusters that use managed topologies for a given input",
		Long: `Show what applying ClusterClasses, templates and a Cluster would change: which ClusterClasses and Clusters are
affected, and for one Cluster which objects the topology controller creates, modifies and deletes, and which
Machines are replaced, in which order and why.

The plan is made with the objects of the management cluster, which is not changed: ClusterClasses and Clusters
are validated by clusterctl, other objects by dry runs. If there is no kubeconfig, or its cluster is not a
management cluster, the files are all there is.

All objects must be in one namespace, with at most one Cluster, one ClusterClass, and one API version of each
kind.`,
		Example: `  # Show what a changed ClusterClass changes, if one Cluster uses it
  clusterctl alpha topology plan -f modified-class.yaml -o plan

  # The same for one of several Clusters
  clusterctl alpha topology plan -f modified-class.yaml -o plan --cluster my-cluster

  # Show what a new Cluster and its class create, without a management cluster
  clusterctl alpha topology plan -f class.yaml -f cluster.yaml -o plan

  # Fail if a change replaces Machines
  clusterctl alpha topology plan -f modified-class.yaml -o plan --output json | jq -e '[.rounds[].rollouts[].machines[]] == []'`,
		Args: clusterflags.NoArgs(""),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if opts.Output != "text" && opts.Output != "json" {
				return fmt.Errorf("--output %q is not supported: use text or json", opts.Output)
			}
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
	flags.StringVarP(&opts.Directory, "output-directory", "o", "", "An existing `directory` for the changed objects")
	flags.StringVar(&opts.Output, "output", "text", "Output `format`: text or json. The objects are in the output directory")
	flags.BoolVar(&opts.SkipExtensions, "skip-extensions", false,
		"Leave out the patches of runtime extensions, which are called from this machine otherwise")
	for _, name := range []string{"file", "output-directory"} {
		if err := cmd.MarkFlagRequired(name); err != nil {
			panic(err) // the flag is defined above
		}
	}
	return cmd
}

func run(ctx context.Context, opts *Options) error {
	if info, err := os.Stat(opts.Directory); err != nil || !info.IsDir() {
		return fmt.Errorf("--output-directory %q is not an existing directory: create it first", opts.Directory)
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
		in.Live = m.Client
		in.Namespace = cmp.Or(in.Namespace, m.Namespace)
		services, err := servicedial.Through(m.Client, m.Config)
		if err != nil {
			return err
		}
		in.Dial = services.DialContext
	}
	in.Namespace = namespace(in.Namespace, objects)
	plan, err := topologyplan.Compute(ctx, in)
	if err != nil {
		return err
	}
	if opts.Output == "json" {
		if err := opts.print(plan); err != nil || len(plan.Rounds) == 0 {
			return err
		}
		return opts.write(ctx, plan.Rounds[0].Changes, opts.IO.Err)
	}
	return opts.show(ctx, plan)
}

func (o *Options) now() time.Time { return o.Clock.Now() }

// read reads the objects of all files.
func (o *Options) read() ([]*unstructured.Unstructured, error) {
	var all []*unstructured.Unstructured
	for _, name := range o.Files {
		var raw []byte
		var err error
		if name == "-" {
			raw, err = io.ReadAll(o.IO.In)
		} else {
			raw, err = os.ReadFile(name)
		}
		if err != nil {
			return nil, fmt.Errorf("cannot read --file %s: %w", name, err)
		}
		objects, err := manifest.Parse(raw)
		if err != nil {
			return nil, fmt.Errorf("--file %s: %w", name, err)
		}
		for i := range objects {
			all = append(all, &objects[i])
		}
	}
	if len(all) == 0 {
		return nil, errors.New("the files have no objects: add ClusterClasses, templates or a Cluster to --file")
	}
	return all, nil
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
