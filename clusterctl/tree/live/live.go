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

	"sigs.k8s.io/cluster-api/clusterctl/tree"
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
	Screen  Screen
	Source  Source
	Cluster types.NamespacedName
	Options tree.Options
	Clock   clock.Clock
	// Wide adds columns.
	Wide bool

	waiting []string
	drawn   time.Time
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
	lines := tree.Lines(tree.Build(f.Cluster, objects, f.Options), tree.Style{Color: f.Screen.Color, Now: now, Wide: f.Wide})
	if len(f.waiting) > 0 {
		lines = append(lines, "", "Waiting for "+f.waiting[0])
	}
	f.Screen.draw(lines)
	return lookInterval
}
