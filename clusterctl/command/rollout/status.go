package rollout

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	fleetv1 "sigs.k8s.io/cluster-api/api/fleet/v1alpha1"
	"sigs.k8s.io/cluster-api/clusterctl/clusterflags"
	"sigs.k8s.io/cluster-api/clusterctl/clusterrollout"
	"sigs.k8s.io/cluster-api/clusterctl/factory"
	"sigs.k8s.io/cluster-api/clusterctl/tree/live"
)

// With --watch, the rollout is read every interval, and its Clusters if it has changed, or after a longer one.
const (
	interval        = 2 * time.Second
	clusterInterval = 10 * time.Second
)

// StatusOptions are the inputs of the command `clusterctl rollout status`.
type StatusOptions struct {
	*FleetOptions
	// Output is text, json or yaml.
	Output string
	// Watch shows changes until the rollout has ended, or the command is interrupted.
	Watch bool
}

// NewStatus returns the command `clusterctl rollout status`. runF, if not nil, is run instead.
func NewStatus(f *factory.Factory, runF func(context.Context, *StatusOptions) error) *cobra.Command {
	opts := &StatusOptions{FleetOptions: newFleetOptions(f)}
	cmd := &cobra.Command{
		Use:   "status NAME",
		Short: "Show how far a ClusterRollout is",
		Long: `Show how far a ClusterRollout is: its stages, who has approved them, when their soak time ends, the Clusters in
change with what they wait for, those that have failed, grouped by message, and what you can do next.

With --watch, it shows changes until the rollout has ended. It fails if the rollout was aborted.`,
		Example: `  # Show how far a rollout is
  clusterctl rollout status my-rollout

  # Follow it until it has ended
  clusterctl rollout status my-rollout --watch

  # For scripts: the Clusters that have failed
  clusterctl rollout status my-rollout -o json | jq -r '.failed[].clusters[]'`,
	}
	clusterflags.AddOutput(cmd, &opts.Output, "text", "json", "yaml")
	cmd.Flags().BoolVarP(&opts.Watch, "watch", "w", false, "Show changes until the rollout has ended, or until interrupted")
	return opts.complete(cmd, f, func(ctx context.Context) error {
		if opts.Watch && clusterflags.ForPrograms(opts.Output) {
			return fmt.Errorf("--watch is not supported with --output %s: use text, or run the command repeatedly", opts.Output)
		}
		if runF != nil {
			return runF(ctx, opts)
		}
		return runStatus(ctx, opts)
	})
}

func runStatus(ctx context.Context, opts *StatusOptions) error {
	m, key, err := opts.connect(ctx)
	if err != nil {
		return err
	}
	w := &watcher{StatusOptions: opts, get: func(ctx context.Context) (*fleetv1.ClusterRollout, error) {
		return clusterrollout.Get(ctx, m.Client, key)
	}, list: func(ctx context.Context, r *fleetv1.ClusterRollout) ([]clusterrollout.Entry, error) {
		return clusterrollout.Entries(ctx, m.Client, r)
	}}
	if opts.Watch {
		return w.follow(ctx)
	}
	r, err := w.read(ctx)
	if err != nil {
		return err
	}
	status := clusterrollout.StatusOf(r, w.entries)
	if clusterflags.ForPrograms(opts.Output) {
		return clusterflags.Print(opts.IO.Out, opts.Output, status)
	}
	for _, line := range opts.lines(status) {
		fmt.Fprintln(opts.IO.Out, line)
	}
	return nil
}

func (o *StatusOptions) lines(status *clusterrollout.Status) []string {
	return status.Lines(o.Clock.Now(), func(line string) string { return o.IO.Command("%s", line) })
}

// watcher follows a rollout.
type watcher struct {
	*StatusOptions
	get  func(context.Context) (*fleetv1.ClusterRollout, error)
	list func(context.Context, *fleetv1.ClusterRollout) ([]clusterrollout.Entry, error)
	// entries are those of the version of the rollout, read at a time.
	entries []clusterrollout.Entry
	version string
	at      time.Time
	// said are the last lines that were printed.
	said []string
}

// read reads the rollout, and its Clusters if need be.
func (w *watcher) read(ctx context.Context) (*fleetv1.ClusterRollout, error) {
	r, err := w.get(ctx)
	if err != nil {
		return nil, err
	}
	now := w.Clock.Now()
	if w.version == r.ResourceVersion && now.Sub(w.at) < clusterInterval {
		return r, nil
	}
	entries, err := w.list(ctx, r)
	if err != nil && !apierrors.IsForbidden(err) { // The status of the rollout has the counts.
		return nil, err
	}
	w.entries, w.version, w.at = entries, r.ResourceVersion, now
	return r, nil
}

// follow shows the status until the rollout has ended, or the context ends: that is how users stop it.
func (w *watcher) follow(ctx context.Context) error {
	screen := live.Screen{
		W: w.IO.Screen(), Terminal: w.IO.OutTerminal() && w.IO.ErrTerminal(), Color: w.IO.OutColor(), Size: w.IO.ErrSize,
	}
	for {
		r, err := w.read(ctx)
		switch {
		case ctx.Err() != nil:
			return nil
		case err != nil:
			return err
		}
		w.show(&screen, clusterrollout.StatusOf(r, w.entries))
		switch {
		case r.Status.Phase == fleetv1.RolloutAborted:
			return errors.New("the rollout was aborted")
		case r.Ended():
			return nil
		}
		select {
		case <-ctx.Done():
			return nil
		case <-w.Clock.After(interval):
		}
	}
}

// show redraws the status on a terminal. Elsewhere, it prints the lines that have changed, apart from times.
func (w *watcher) show(screen *live.Screen, status *clusterrollout.Status) {
	if screen.Terminal {
		screen.Draw(w.lines(status))
		return
	}
	// Ages would make lines differ each time.
	lines := status.Lines(time.Time{}, func(line string) string { return w.IO.Command("%s", line) })
	stable := w.lines(status)
	for i, line := range lines {
		if line != "" && !slices.Contains(w.said, line) && !strings.HasPrefix(line, "STAGE ") {
			fmt.Fprintln(w.IO.Out, stable[i])
		}
	}
	w.said = lines
}
