package generate

import (
	"bytes"
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"sigs.k8s.io/cluster-api/clusterctl/clustertemplate"
	"sigs.k8s.io/cluster-api/clusterctl/factory"
	"sigs.k8s.io/cluster-api/clusterctl/iostreams"
	"sigs.k8s.io/cluster-api/packages/config"
	"sigs.k8s.io/cluster-api/packages/manifest"
	"sigs.k8s.io/cluster-api/packages/repository"
	"sigs.k8s.io/cluster-api/packages/template"
)

// YAMLOptions are the inputs of the command.
type YAMLOptions struct {
	IO            *iostreams.Streams
	Config        func(context.Context) (*config.Config, error)
	Store         func(context.Context) (*repository.Store, error)
	From          string
	ListVariables bool
}

// NewYAML returns the command. runF, if not nil, is run instead.
func NewYAML(f *factory.Factory, runF func(context.Context, *YAMLOptions) error) *cobra.Command {
	opts := &YAMLOptions{IO: f.IO, Config: f.Config, Store: f.Store}
	cmd := &cobra.Command{
		Use:   "yaml",
		Short: "Process yaml using clusterctl's yaml processor",
		Long: `Process a YAML template, of Kubernetes objects or anything else: replace its variables with values from the environment
and the clusterctl configuration file, or with their defaults.`,
		Example: `  # Process a template from a URL
  clusterctl generate yaml --from https://github.com/foo-org/foo-repository/blob/main/cluster-template.yaml
  clusterctl generate yaml --from https://foo.bar/cluster-template.yaml

  # Process a template from a file
  clusterctl generate yaml --from ~/workspace/cluster-template.yaml

  # Process a template from standard input
  cat ~/workspace/cluster-template.yaml | clusterctl generate yaml

  # List the variables of a template
  clusterctl generate yaml --from ~/workspace/cluster-template.yaml --list-variables`,
		Args: cobra.ArbitraryArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			if runF != nil {
				return runF(cmd.Context(), opts)
			}
			if len(args) > 0 {
				opts.IO.Warnf("the argument %q is ignored: to read a file, use --from %s", args[0], args[0])
			}
			return runYAML(cmd.Context(), opts)
		},
	}
	cmd.Flags().StringVar(&opts.From, "from", "-", "The `location` of the template: an https URL, a path, or - for standard input")
	cmd.Flags().BoolVar(&opts.ListVariables, "list-variables", false, "Print the template's variables and exit")
	return cmd
}

func runYAML(ctx context.Context, opts *YAMLOptions) error {
	store, err := opts.Store(ctx)
	if err != nil {
		return err
	}
	raw, err := clustertemplate.Read(ctx, opts.From, opts.IO.In, store)
	if err != nil {
		return err
	}
	t, err := template.Parse(raw)
	if err != nil {
		return fmt.Errorf("invalid template: %w", err)
	}
	if opts.ListVariables {
		return opts.IO.Deliver("", list(t.Variables()))
	}
	c, err := opts.Config(ctx)
	if err != nil {
		return err
	}
	if raw, err = t.Execute(c.Variable); err != nil {
		return fmt.Errorf("cannot process the template: %w", err)
	}
	if raw, err = manifest.Normalize(raw); err != nil {
		return fmt.Errorf("cannot process the template: %w", err)
	}
	return opts.IO.Deliver("", raw)
}

func list(variables []template.Variable) []byte {
	var out bytes.Buffer
	if len(variables) > 0 {
		fmt.Fprintln(&out, "Variables:")
	}
	for _, v := range variables {
		fmt.Fprintf(&out, "  - %s\n", v.Name)
	}
	fmt.Fprintln(&out)
	return out.Bytes()
}
