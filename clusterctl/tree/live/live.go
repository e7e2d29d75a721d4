// Package live shows how the tree of a Cluster changes: redrawn in place on a terminal, as one line per change elsewhere.
//
// Commands define what they wait for; package snapshot reads the objects.
package live

import (
	"context"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"sigs.k8s.io/cluster-api/clusterctl/iostreams"
	"sigs.k8s.io/cluster-api/clusterctl/tree"
	"sigs.k8s.io/cluster-api/clusterctl/tree/snapshot"
)

const (
	// redrawInterval is the minimum time between two redraws of a terminal.
	redrawInterval = 250 * time.Millisecond
	// lookInterval is how often unchanged objects are evaluated, since ages grow and timeouts expire. It costs no
	// requests.
	lookInterval = time.Second
)

// Source provides the objects; snapshot.Watcher is one.
type Source interface {
	// Changed receives a value when the results of Objects or Err may have changed.
	Changed() <-chan struct{}
	// Objects returns the known objects; complete is false while more are being read.
	Objects(ctx context.Context) (objects *tree.Objects, complete bool)
	// Err returns the current read error, if any.
	Err() error
}

// Follower shows a Cluster's tree until a wait is over.
type Follower struct {
	Screen Screen
	// Source is set by Watch and Wait.
	Source  Source
	Cluster types.NamespacedName
	Options tree.Options
	Clock   clock.Clock
	// Wide adds columns.
	Wide bool

	waiting []string
	readErr error
	drawn   time.Time
}

// New returns a Follower that shows the progress of a command: the tree with its Machines in groups.
func New(io *iostreams.Streams, now clock.Clock, cluster types.NamespacedName) *Follower {
	options := tree.Options{Grouping: true, Reports: true, CountMachines: true}
	return &Follower{Screen: NewScreen(io), Cluster: cluster, Options: options, Clock: now}
}

// Wait is Watch until the timeout of ending, which explains the error.
func (f *Follower) Wait(
	ctx context.Context, c client.WithWatch, ending Ending, remaining func(context.Context, *tree.Objects) ([]string, error),
) error {
	ctx, cancel := ending.Context(ctx)
	defer cancel()
	if err := f.Watch(ctx, c, remaining); err != nil {
		return ending.Explain(err, f.waiting, f.readErr)
	}
	return nil
}

// Watch is Follow with the objects of the management cluster c, which are watched until it returns. remaining is called with the context
// of the watch.
func (f *Follower) Watch(ctx context.Context, c client.WithWatch, remaining func(context.Context, *tree.Objects) ([]string, error)) error {
	ctx, stop := context.WithCancel(ctx)
	watcher := snapshot.Watch(ctx, c, f.Cluster, f.Options)
	defer watcher.Wait()
	defer stop()
	f.Source = watcher
	err := f.Follow(ctx, func(objects *tree.Objects) ([]string, error) { return remaining(ctx, objects) })
	f.readErr = watcher.Err() // before the watches are stopped
	return err
}

// Follow shows the tree each time it changes, until remaining returns nothing or an error, or the context ends. remaining
// is called with the objects, at least every second, and returns what is still missing, the most important first.
func (f *Follower) Follow(ctx context.Context, remaining func(*tree.Objects) ([]string, error)) error {
	defer f.Screen.Clear()
	for {
		objects, complete := f.Source.Objects(ctx)
		later := lookInterval
		if complete {
			var err error
			f.waiting, err = remaining(objects)
			later = f.show(objects)
			if err != nil || len(f.waiting) == 0 {
				return err
			}
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-f.Clock.After(later):
		case <-f.Source.Changed():
			if err := f.Source.Err(); apierrors.IsForbidden(err) || apierrors.IsUnauthorized(err) {
				return err
			}
		}
	}
}

// Waiting returns what was missing when Follow last checked.
func (f *Follower) Waiting() []string { return f.waiting }

// show shows the objects, and returns when to call it again.
func (f *Follower) show(objects *tree.Objects) time.Duration {
	now := f.Clock.Now()
	if !f.Screen.Terminal {
		f.Screen.transitions(f.Cluster, objects, now)
		return lookInterval
	}
	if wait := redrawInterval - now.Sub(f.drawn); wait > 0 {
		return wait
	}
	f.drawn = now
	o := f.Options
	o.Reports = o.Reports && tree.Reported(objects.Cluster(f.Cluster))
	style := tree.Style{Color: f.Screen.Color, Now: now, Wide: f.Wide, Reports: o.Reports, Short: true}
	if f.Screen.Size != nil && o.Reports {
		style.Width, _ = f.Screen.Size()
	}
	lines := tree.Lines(tree.Build(f.Cluster, objects, o), style)
	if len(f.waiting) > 0 {
		lines = append(lines, "", "Waiting for "+f.waiting[0])
	}
	f.Screen.Draw(lines)
	return lookInterval
}
