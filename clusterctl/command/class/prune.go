package class

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/duration"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"sigs.k8s.io/cluster-api/clusterctl/clusterflags"
	"sigs.k8s.io/cluster-api/clusterctl/factory"
	"sigs.k8s.io/cluster-api/clusterctl/iostreams"
	"sigs.k8s.io/cluster-api/clusterctl/management"
	"sigs.k8s.io/cluster-api/clusterctl/revision"
	"sigs.k8s.io/cluster-api/packages/manifest"
	"sigs.k8s.io/cluster-api/packages/retry"
)

// defaultKeep is how many of the newest revisions are kept: the current one, and two to go back to.
const defaultKeep = 3

// PruneOptions are the inputs of the command.
type PruneOptions struct {
	IO         *iostreams.Streams
	Connect    func(management.Kubeconfig) (*management.Cluster, error)
	Clock      clock.PassiveClock
	Kubeconfig management.Kubeconfig
	Namespace  string
	// Backoff is how requests are repeated.
	Backoff wait.Backoff
	// Class is the name of the class.
	Class string
	// Keep is how many of the newest revisions are kept.
	Keep int
	// DryRun prints what would be deleted.
	DryRun bool
	// Yes answers the question.
	Yes bool
	// Output is text, json or yaml.
	Output string
}

// NewPrune returns the command. runF, if not nil, is run instead.
func NewPrune(f *factory.Factory, runF func(context.Context, *PruneOptions) error) *cobra.Command {
	opts := &PruneOptions{IO: f.IO, Connect: f.Connect, Clock: clock.RealClock{}, Backoff: retry.Backoff()}
	cmd := &cobra.Command{
		Use:   "prune NAME",
		Short: "Delete revisions of a ClusterClass that nothing uses",
		Long: `Delete revisions of a ClusterClass that no Cluster of any namespace uses, that no ClusterRollout in progress
refers to or can go back to, and that are not among the newest. The class itself, and all that was not published as a
revision, stays.

Templates are deleted with the last revision that refers to them. If a Cluster begins to use a revision in the meantime, the management
cluster refuses to delete it.

Where a repository declares the revisions, delete their files instead: --dry-run shows which.`,
		Example: `  # Show which revisions are unused, and delete them
  clusterctl class prune my-class --dry-run
  clusterctl class prune my-class

  # Without being asked, and with more of them to go back to
  clusterctl class prune my-class --keep 10 --yes`,
		Args: oneClass,
		RunE: func(cmd *cobra.Command, args []string) error {
			opts.Class = args[0]
			switch {
			case opts.Keep < 1:
				return fmt.Errorf("--keep is %d: at least the newest revision is kept", opts.Keep)
			case opts.Output != "text" && !opts.DryRun:
				return fmt.Errorf("--output %s is for --dry-run", opts.Output)
			}
			if runF != nil {
				return runF(cmd.Context(), opts)
			}
			return runPrune(cmd.Context(), opts)
		},
	}
	clusterflags.AddKubeconfig(cmd, &opts.Kubeconfig, false)
	addNamespace(cmd, f, &opts.Kubeconfig, &opts.Namespace)
	cmd.Flags().IntVar(&opts.Keep, "keep", defaultKeep, "How many of the newest revisions are kept, whether or not they are used")
	cmd.Flags().BoolVar(&opts.DryRun, "dry-run", false, "Print what would be deleted, and delete nothing")
	cmd.Flags().BoolVarP(&opts.Yes, "yes", "y", false, "Delete without being asked")
	clusterflags.AddOutput(cmd, &opts.Output, "text", "json", "yaml")
	cmd.ValidArgsFunction = names(f, &opts.Kubeconfig, &opts.Namespace)
	return cmd
}

// oneClass accepts one argument, the name of a class.
func oneClass(cmd *cobra.Command, args []string) error {
	switch len(args) {
	case 0:
		return fmt.Errorf("the name of the class is required: see `%s --help`", cmd.CommandPath())
	case 1:
		return nil
	default:
		return fmt.Errorf("expected the name of one class, got %d (%s): see `%s --help`", len(args), strings.Join(args, ", "), cmd.CommandPath())
	}
}

func runPrune(ctx context.Context, opts *PruneOptions) error {
	m, err := opts.Connect(opts.Kubeconfig)
	if err != nil {
		return err
	}
	p := &pruner{PruneOptions: opts, management: m, class: m.Key(opts.Namespace, opts.Class), retry: retry.Policy{Backoff: opts.Backoff}}
	decisions, err := p.decide(ctx)
	if err != nil {
		return err
	}
	if err := p.show(decisions); err != nil || opts.DryRun {
		return err
	}
	doomed := slices.DeleteFunc(slices.Clone(decisions), func(d revision.Decision) bool { return d.Keep != "" })
	if len(doomed) == 0 {
		opts.IO.Infof("Nothing to delete")
		return nil
	}
	if !opts.Yes {
		question := fmt.Sprintf("%d of %d revisions of class %s will be deleted, with their templates.", len(doomed), len(decisions), p.class)
		if err := opts.IO.Ask(question, opts.Class, "--yes"); err != nil {
			return err
		}
		// Some time may have passed.
		if decisions, err = p.decide(ctx); err != nil {
			return err
		}
	}
	return p.delete(ctx, decisions, doomed)
}

// pruner deletes revisions.
type pruner struct {
	*PruneOptions
	management *management.Cluster
	class      types.NamespacedName
	retry      retry.Policy
}

// decide reads the management cluster, and decides which revisions are deleted.
func (p *pruner) decide(ctx context.Context) ([]revision.Decision, error) {
	w, allowed, err := read(ctx, p.management, p.class.Namespace)
	if err != nil {
		return nil, err
	}
	if !allowed {
		return nil, errors.New("nothing is deleted: you may not list the Clusters of all namespaces, which may use the class; " +
			"use the --kubeconfig of an administrator")
	}
	decisions, err := w.Prune(p.class, p.Keep)
	if err == nil && len(decisions) == 0 {
		if rows, _ := w.Rows(p.class.Name); len(rows) == 0 {
			return nil, noClass(p.class.Namespace, p.class.Name)
		}
	}
	return decisions, err
}

// show prints what happens to each revision.
func (p *pruner) show(decisions []revision.Decision) error {
	if clusterflags.ForPrograms(p.Output) {
		return clusterflags.Print(p.IO.Out, p.Output, map[string]any{"items": append([]revision.Decision{}, decisions...)})
	}
	if len(decisions) == 0 {
		return nil
	}
	w := tabwriter.NewWriter(p.IO.Out, 0, 8, 3, ' ', 0)
	fmt.Fprintln(w, "NAME\tAGE\tDECISION")
	for _, d := range decisions {
		what := "keep: " + d.Keep
		if d.Keep == "" {
			what = "delete"
			if len(d.Templates) > 0 {
				what += ", with " + strings.Join(d.Templates, ", ")
			}
		}
		fmt.Fprintf(w, "%s\t%s\t%s\n", d.Name, duration.HumanDuration(p.Clock.Since(d.Created)), what)
	}
	return w.Flush()
}

// delete deletes what both decisions delete: the one that was shown, and the latest.
func (p *pruner) delete(ctx context.Context, latest, shown []revision.Decision) error {
	var errs []error
	for _, d := range latest {
		if !slices.ContainsFunc(shown, func(s revision.Decision) bool { return s.Object.GetUID() == d.Object.GetUID() }) {
			continue
		}
		if d.Keep != "" {
			p.IO.Infof("%s is kept: %s", manifest.Describe(d.Object), d.Keep)
			continue
		}
		if err := p.deleteOne(ctx, d); err != nil {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

func (p *pruner) deleteOne(ctx context.Context, d revision.Decision) error {
	name := manifest.Describe(d.Object)
	if err := p.checkShared(ctx, d); err != nil {
		return err
	}
	uid, version := d.Object.GetUID(), d.Object.GetResourceVersion()
	err := p.retry.Do(ctx, func(ctx context.Context) error {
		return p.management.Client.Delete(ctx, manifest.Identity(d.Object),
			client.Preconditions(metav1.Preconditions{UID: &uid, ResourceVersion: &version}))
	})
	switch {
	case err == nil:
		p.IO.Infof("%s deleted", name)
		return nil
	case apierrors.IsNotFound(err):
		return nil
	case apierrors.IsConflict(err):
		return fmt.Errorf("%s has changed in the meantime, and is not deleted: run the command again", name)
	default:
		return fmt.Errorf("cannot delete %s: %w", name, err)
	}
}

// checkShared checks that the garbage collector will not delete templates that other classes use. A template is deleted with the last of
// its owners, and the controller of ClusterClasses makes classes owners: it may not have done so with a new one.
func (p *pruner) checkShared(ctx context.Context, d revision.Decision) error {
	for _, s := range d.Shared {
		mapping, err := p.management.Client.RESTMapper().RESTMapping(s.Kind.GroupKind())
		if err != nil {
			return fmt.Errorf("cannot look up the kind of %s, which %s uses: %w", s, manifest.Describe(s.By), err)
		}
		template := &metav1.PartialObjectMetadata{}
		template.SetGroupVersionKind(mapping.GroupVersionKind)
		err = p.retry.Do(ctx, func(ctx context.Context) error {
			return p.management.Client.Get(ctx, client.ObjectKey{Namespace: p.class.Namespace, Name: s.Name}, template)
		})
		if apierrors.IsNotFound(err) {
			continue
		}
		if err != nil {
			return fmt.Errorf("cannot read %s, which %s uses: %w", s, manifest.Describe(s.By), err)
		}
		owned := func(uid types.UID) bool {
			return slices.ContainsFunc(template.OwnerReferences, func(o metav1.OwnerReference) bool { return o.UID == uid })
		}
		if owned(d.Object.GetUID()) && !owned(s.By.GetUID()) {
			return fmt.Errorf("%s is not deleted: %s uses its %s, and its controller has not made it an owner of that yet; "+
				"run the command again, or see `kubectl describe clusterclass %s -n %s`",
				manifest.Describe(d.Object), manifest.Describe(s.By), s, s.By.GetName(), p.class.Namespace)
		}
	}
	return nil
}
