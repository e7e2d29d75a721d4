package move

import (
	"context"
	"fmt"
	"slices"
	"sync/atomic"

	"k8s.io/apimachinery/pkg/types"

	"sigs.k8s.io/cluster-api/clusterctl/move/graph"
	"sigs.k8s.io/cluster-api/clusterctl/move/journal"
	"sigs.k8s.io/cluster-api/clusterctl/move/pause"
	"sigs.k8s.io/cluster-api/clusterctl/move/preflight"
	"sigs.k8s.io/cluster-api/clusterctl/move/transfer"
)

// files is a directory as the destination of a move.
type files struct {
	path     string
	done     func()
	versions map[types.UID]string // resource versions of what was written
}

// Copy writes the objects that changed.
func (f *files) Copy(ctx context.Context, g *graph.Graph) (written int, err error) {
	for _, n := range g.Nodes {
		if err := ctx.Err(); err != nil {
			return written, context.Cause(ctx)
		}
		if f.versions[n.GetUID()] == n.GetResourceVersion() {
			continue
		}
		if err := writeObject(f.path, n.Unstructured); err != nil {
			return written, err
		}
		f.versions[n.GetUID()] = n.GetResourceVersion()
		written++
		f.done()
	}
	return written, nil
}

type phase struct {
	phase journal.Phase
	run   func(context.Context) error
}

func (m *Mover) directorySteps() []phase {
	to := &files{path: m.Directory, done: m.Progress.Done, versions: map[types.UID]string{}}
	return []phase{
		{journal.Copying, func(ctx context.Context) error { _, err := m.settle(ctx, to); return err }},
		{journal.Resuming, func(ctx context.Context) error { return m.resume(ctx, m.Source) }},
	}
}

func (m *Mover) checkSource(_ context.Context, g *graph.Graph, started bool) error {
	return preflight.Check(preflight.Input{ID: m.entry.ID, Graph: g, Directory: true}, started)
}

// FromDirectory creates the objects of a directory in the target, and resumes them. Objects that exist are not changed.
func (m *Mover) FromDirectory(ctx context.Context) error {
	contents, err := ReadDirectory(m.Directory)
	if err != nil {
		return err
	}
	if len(contents) == 0 {
		return ErrNothing
	}
	objects := make([]graph.Object, 0, len(contents))
	for _, o := range contents {
		// What is in the directory was selected when it was written.
		kind := graph.Kind{GroupVersionKind: o.GroupVersionKind(), Namespaced: o.GetNamespace() != "", Move: true}
		objects = append(objects, graph.Object{Unstructured: o, Kind: kind})
	}
	g, err := graph.Build(objects)
	if err != nil {
		return err
	}
	var created atomic.Int32
	copier := &transfer.Copier{Target: m.Target, KeepExisting: true, Done: func() { created.Add(1); m.Progress.Done() }}
	copier.Know(nil)
	m.Progress.Start("Creating", len(g.Nodes))
	if _, err := copier.Copy(ctx, g); err != nil {
		return fmt.Errorf("%w; run the same command again to continue", err)
	}
	return m.resumeCreated(ctx, copier, g)
}

// resumeCreated resumes what was paused when the directory was written, unless another client has paused or moved it since.
func (m *Mover) resumeCreated(ctx context.Context, copier *transfer.Copier, g *graph.Graph) error {
	byMove := map[string][]*graph.Node{}
	for _, n := range g.Nodes {
		current := copier.Current(n.Key())
		if !pause.Pausable(n.Object) || current == nil {
			continue
		}
		id := pause.By(n.Object)
		byMove[id] = append(byMove[id], &graph.Node{Object: graph.Object{Unstructured: current, Kind: n.Kind}})
	}
	ids := make([]string, 0, len(byMove))
	for id := range byMove {
		ids = append(ids, id)
	}
	slices.Sort(ids)
	for _, id := range ids {
		if _, err := pause.Resume(ctx, m.Target, byMove[id], id); err != nil {
			return fmt.Errorf("%w; run the same command again to continue", err)
		}
	}
	return nil
}
