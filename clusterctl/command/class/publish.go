package class

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/yaml"

	"sigs.k8s.io/cluster-api/clusterctl/clusterflags"
	"sigs.k8s.io/cluster-api/clusterctl/factory"
	"sigs.k8s.io/cluster-api/clusterctl/iostreams"
	"sigs.k8s.io/cluster-api/clusterctl/management"
	"sigs.k8s.io/cluster-api/clusterctl/revision"
	"sigs.k8s.io/cluster-api/clusterctl/tree"
	"sigs.k8s.io/cluster-api/packages/manifest"
	"sigs.k8s.io/cluster-api/packages/retry"
)

// PublishOptions are the inputs of the command.
type PublishOptions struct {
	IO         *iostreams.Streams
	Connect    func(management.Kubeconfig) (*management.Cluster, error)
	Kubeconfig management.Kubeconfig
	Namespace  string
	// Backoff is how requests are repeated.
	Backoff wait.Backoff
	// Files are files of YAML or JSON; "-" is the standard input.
	Files []string
	// KeepMissing leaves references alone whose templates are not in the files.
	KeepMissing bool
	// Directory is where every object gets a file; empty: nowhere.
	Directory string
	// Apply creates the revisions in the management cluster.
	Apply bool
	// Output is yaml, json or name. Empty: yaml, but name if the revisions go elsewhere.
	Output string
}

// NewPublish returns the command. runF, if not nil, is run instead.
func NewPublish(f *factory.Factory, runF func(context.Context, *PublishOptions) error) *cobra.Command {
	opts := &PublishOptions{IO: f.IO, Connect: f.Connect, Backoff: retry.Backoff()}
	cmd := &cobra.Command{
		Use:   "publish",
		Short: "Turn a ClusterClass and its templates into a new revision",
		Long: `Turn a ClusterClass and the templates that it refers to into a revision, and print it, without a management cluster.

The revision is a ClusterClass named after the class and its content. Templates are named the same way: one that has not changed keeps its
name. Clusters change when they refer to the revision, one by one or in waves. Other objects of the files are printed as they are.

With --apply, the revisions are created in the management cluster instead, after all of them have been validated. What exists is not
changed; it is an error if its content differs.`,
		Example: `  # Print the revision of an edited class
  clusterctl class publish -f class.yaml -f templates.yaml

  # Add it to a repository: one file for each ClusterClass and template
  clusterctl class publish -f class.yaml -f templates.yaml --output-directory classes

  # Create it in the management cluster, and let a Cluster use it
  revision=$(clusterctl class publish -f class.yaml --apply)
  kubectl patch cluster my-cluster --type merge -p '{"spec":{"topology":{"classRef":{"name":"'${revision#*/}'"}}}}'`,
		Args: clusterflags.NoArgs("--file"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if opts.Apply && opts.Directory != "" {
				return errors.New("--apply and --output-directory exclude each other: commit the files, or create the revision here")
			}
			if !cmd.Flags().Changed("output") && (opts.Apply || opts.Directory != "") {
				opts.Output = "name"
			}
			if runF != nil {
				return runF(cmd.Context(), opts)
			}
			return runPublish(cmd.Context(), opts)
		},
	}
	clusterflags.AddKubeconfig(cmd, &opts.Kubeconfig, false)
	flags := cmd.Flags()
	flags.StringVarP(&opts.Namespace, "namespace", "n", "", "The `namespace` of objects that have none in the files")
	clusterflags.CompleteNamespaces(cmd, f, &opts.Kubeconfig, "namespace")
	flags.StringArrayVarP(&opts.Files, "file", "f", nil, "A `file` with a ClusterClass or templates; may be repeated. - is the standard input")
	flags.BoolVar(&opts.KeepMissing, "keep-missing", false, "Leave references to templates that are not in the files as they are")
	flags.StringVar(&opts.Directory, "output-directory", "",
		"Write each ClusterClass and template of the revisions into a file in this `directory`, which is created if it does not exist")
	flags.BoolVar(&opts.Apply, "apply", false, "Create the revisions in the management cluster, and nothing else of the files")
	clusterflags.AddOutput(cmd, &opts.Output, "yaml", "json", "name")
	if err := cmd.MarkFlagRequired("file"); err != nil {
		panic(err) // the flag is defined above
	}
	return cmd
}

func runPublish(ctx context.Context, opts *PublishOptions) error {
	objects, err := clusterflags.ReadFiles(opts.IO, opts.Files)
	if err != nil {
		return err
	}
	published, err := revision.Publish(objects, revision.Options{Namespace: opts.Namespace, KeepMissing: opts.KeepMissing})
	if err != nil {
		return err
	}
	if opts.Directory != "" {
		err = opts.write(published)
	}
	if opts.Apply {
		err = apply(ctx, opts, published)
	}
	if err != nil {
		return err
	}
	return opts.print(published)
}

// print prints the objects, or the names of the classes.
func (o *PublishOptions) print(published *revision.Published) error {
	switch o.Output {
	case "name":
		for _, class := range published.Classes {
			fmt.Fprintln(o.IO.Out, tree.ReferenceName(class.GetAPIVersion(), class.GetKind(), class.GetName()))
		}
		return nil
	case "json":
		items := make([]any, 0, len(published.Objects))
		for _, u := range published.Objects {
			items = append(items, u.Object)
		}
		return clusterflags.Print(o.IO.Out, "json", map[string]any{"apiVersion": "v1", "kind": "List", "items": items})
	default:
		var all []unstructured.Unstructured
		for _, u := range published.Objects {
			all = append(all, *u)
		}
		text, err := manifest.Format(all)
		if err != nil {
			return err
		}
		return o.IO.Deliver("", text)
	}
}

// revisions returns the templates and the classes of revisions, in the order of creation, and warns if there are other objects.
func (o *PublishOptions) revisions(published *revision.Published) []*unstructured.Unstructured {
	list := slices.Concat(published.Templates, published.Classes)
	if others := len(published.Objects) - len(list); others > 0 {
		o.IO.Warnf("%d other objects of the files are left out: they are no ClusterClasses and none of their templates", others)
	}
	return list
}

// write writes every class and template into a file. These never change: an existing one of other content is an error, and nothing is
// written.
func (o *PublishOptions) write(published *revision.Published) error {
	type file struct {
		path    string
		content []byte
	}
	var missing []file
	taken := map[string]*unstructured.Unstructured{}
	for _, u := range o.revisions(published) {
		content, err := yaml.Marshal(u.Object)
		if err != nil {
			return fmt.Errorf("cannot write %s: %w", manifest.Describe(u), err)
		}
		path := filepath.Join(o.Directory, strings.ToLower(u.GetKind())+"-"+u.GetName()+".yaml")
		if other := taken[path]; other != nil {
			return fmt.Errorf("%s and %s would be the same file: publish them into different directories",
				manifest.Describe(other), manifest.Describe(u))
		}
		taken[path] = u
		switch existing, err := os.ReadFile(path); {
		case errors.Is(err, os.ErrNotExist):
			missing = append(missing, file{path, content})
		case err != nil:
			return fmt.Errorf("cannot compare %s with its file: %w", manifest.Describe(u), err)
		case !bytes.Equal(existing, content):
			return fmt.Errorf("%s has other content than %s: revisions do not change; restore the file, or choose another --output-directory",
				path, manifest.Describe(u))
		}
	}
	if err := os.MkdirAll(o.Directory, 0o750); err != nil {
		return fmt.Errorf("cannot create --output-directory: %w", err)
	}
	for _, f := range missing {
		if err := os.WriteFile(f.path, f.content, 0o600); err != nil {
			return fmt.Errorf("cannot write the revision: %w", err)
		}
		o.IO.Infof("%s written", f.path)
	}
	return nil
}
