package operator

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"sigs.k8s.io/cluster-api/clusterctl/clusterflags"
	"sigs.k8s.io/cluster-api/clusterctl/factory"
	"sigs.k8s.io/cluster-api/clusterctl/iostreams"
	"sigs.k8s.io/cluster-api/clusterctl/management"
	"sigs.k8s.io/cluster-api/clusterctl/operator"
	"sigs.k8s.io/cluster-api/packages/catalog"
	"sigs.k8s.io/cluster-api/packages/retry"
)

// InitOptions are the inputs of the command.
type InitOptions struct {
	IO         *iostreams.Streams
	Catalog    func(context.Context) (*catalog.Catalog, error)
	Connect    func(management.Kubeconfig) (*management.Cluster, error)
	Kubeconfig management.Kubeconfig
	Request    operator.Request
	// Secret is the value of --config-secret.
	Secret   string
	Wait     bool
	Validate bool
	// WaitTimeout is in seconds, for the operator and for each provider.
	WaitTimeout int
}

// NewInit returns the command. runF, if not nil, is run instead.
func NewInit(f *factory.Factory, runF func(context.Context, *InitOptions) error) *cobra.Command {
	opts := &InitOptions{IO: f.IO, Catalog: f.Catalog, Connect: f.Connect}
	cmd := &cobra.Command{
		Use:   "init",
		Short: "Install the operator, and declare the providers of a management cluster",
		Long: `Install the operator, and declare the providers of a management cluster: one object per provider, which the
operator installs, and changes when the object changes.

On a management cluster that clusterctl has initialized, the installed providers are declared, too, and stay as they
are: that is the way from clusterctl to the operator.

What the clusterctl configuration says about the providers is transferred to the cluster: values of the variables
that they have go to Secrets, image overrides and URLs to the objects, releases of local repositories and of the
overrides folder to ConfigMaps. A token for GitHub is not transferred: put it into the Secret of --config-secret, under the
key github-token.

Everything is downloaded and checked before anything is installed, and the command can safely be run again. Objects
that exist are not changed.`,
		Example: `  # Install the operator, the default providers, and an infrastructure provider
  clusterctl operator init --infrastructure aws

  # Set the version of a provider, or its namespace and its version
  clusterctl operator init --infrastructure aws:v2.4.0
  clusterctl operator init --infrastructure aws:capa-system:v2.4.0

  # Take the values of variables from a Secret that exists
  clusterctl operator init --infrastructure aws --config-secret aws-credentials:capa-system

  # Declare what clusterctl has installed
  clusterctl operator init`,
		Args: clusterflags.NoArgs("--infrastructure"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := opts.complete(); err != nil {
				return fmt.Errorf("%w: see `%s --help`", err, cmd.CommandPath())
			}
			if runF != nil {
				return runF(cmd.Context(), opts)
			}
			return runInit(cmd.Context(), opts)
		},
	}
	clusterflags.AddKubeconfig(cmd, &opts.Kubeconfig, false)
	clusterflags.AddKnownProviders(cmd, f, &opts.Request.Selection, operator.Form, false)
	flags := cmd.Flags()
	flags.StringVar(&opts.Request.OperatorVersion, "operator-version", "",
		"The `version` of the operator. Defaults to the latest one, or the installed one")
	flags.StringVarP(&opts.Request.Namespace, "target-namespace", "n", "",
		"The `namespace` of the operator (default "+operator.Namespace+"). Each provider has one of its own")
	flags.StringVar(&opts.Secret, "config-secret", "",
		"A `Secret` with the values of variables, as name or name:namespace. By default, those of the clusterctl configuration are stored")
	flags.BoolVar(&opts.Wait, "wait-providers", true, "Wait until the providers are ready")
	flags.IntVar(&opts.WaitTimeout, "wait-provider-timeout", operator.WaitTimeout,
		"How many `seconds` to wait for the operator, and for each provider")
	flags.BoolVar(&opts.Validate, "validate", true,
		"Reject changes of installed providers and of objects that are not of the operator; if false, only warn")
	clusterflags.CompleteNamespaces(cmd, f, &opts.Kubeconfig, "target-namespace")
	return cmd
}

// complete checks the flags, and sets the request.
func (o *InitOptions) complete() error {
	if o.WaitTimeout <= 0 {
		return fmt.Errorf("--wait-provider-timeout is %d: it must be positive", o.WaitTimeout)
	}
	o.Request.Lenient = !o.Validate
	if o.Secret == "" {
		return nil
	}
	name, namespace, _ := strings.Cut(o.Secret, ":")
	if name == "" {
		return errors.New("--config-secret has no name: use name or name:namespace")
	}
	o.Request.Secret = &client.ObjectKey{Namespace: namespace, Name: name}
	return nil
}

func runInit(ctx context.Context, opts *InitOptions) error {
	all, err := opts.Catalog(ctx)
	if err != nil {
		return err
	}
	m, err := opts.Connect(opts.Kubeconfig)
	if err != nil {
		return err
	}
	if s := opts.Request.Secret; s != nil && s.Namespace == "" {
		s.Namespace = m.Namespace
	}
	opts.IO.Infof("Fetching the operator and providers")
	plan, err := (&operator.Planner{IO: opts.IO, Catalog: all, Cluster: m}).Plan(ctx, opts.Request)
	if err != nil {
		return err
	}
	a := &operator.Applier{
		IO: opts.IO, Client: m.Client, Backoff: retry.Backoff(), Timeout: time.Duration(opts.WaitTimeout) * time.Second,
	}
	if err := a.Apply(ctx, plan); err != nil {
		return err
	}
	if !opts.Wait {
		return nil
	}
	return a.Wait(ctx, plan.Objects())
}
