// Package live shows how the tree of a Cluster changes: redrawn in place on a terminal, as one line per change
// elsewhere.
//
// What a command waits for is the command's matter, reading the objects that of package snapshot.
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
	// redrawInterval is how often a terminal is redrawn at most.
	redrawInterval = 250 * time.Millisecond
	// lookInterval is how often the objects are looked at when they do not change: ages grow, and patience ends. It
	// costs no request.
	lookInterval = time.Second
)

// Source is where the objects come from; snapshot.Watcher is one.
type Source interface {
	// Changed is ready to be received from when Objects or Err may answer differently.
	Changed() <-chan struct{}
	// Objects returns what is known; not complete means that more is being read.
	Objects(ctx context.Context) (objects *tree.Objects, complete bool)
	// Err returns why nothing more can be read at the moment, if so.
	Err() error
}

// Follower shows a Cluster's tree until what the user waits for has come.
type Follower struct {
	Screen  Screen
	Source  Source
	Cluster types.NamespacedName
	Options tree.Options
	Clock   clock.Clock

	waiting []string
	drawn   time.Time
}

// Follow shows the tree each time it changes, until remaining returns nothing, or an error, or the context ends. remaining
// is told the objects, every second at least, and returns what is still waited for, the most important first.
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

// Waiting returns what was still waited for when Follow last looked.
func (f *Follower) Waiting() []string { return f.waiting }

// show shows the objects, and returns when to come back.
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
	lines := tree.Lines(tree.Build(f.Cluster, objects, f.Options), tree.Style{Colour: f.Screen.Colour, Now: now})
	if len(f.waiting) > 0 {
		lines = append(lines, "", "Waiting for "+f.waiting[0])
	}
	f.Screen.draw(lines)
	return lookInterval
}
