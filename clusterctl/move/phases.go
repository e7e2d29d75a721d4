package move

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"

	clusterctlv1 "sigs.k8s.io/cluster-api/api/clusterctl/v1alpha3"
	"sigs.k8s.io/cluster-api/clusterctl/move/discovery"
	"sigs.k8s.io/cluster-api/clusterctl/move/graph"
	"sigs.k8s.io/cluster-api/clusterctl/move/journal"
	"sigs.k8s.io/cluster-api/clusterctl/move/side"
	"sigs.k8s.io/cluster-api/clusterctl/move/transfer"
)

const (
	blockInterval = 5 * time.Second
	// shown is how many objects a message lists.
	shown = 5
)

// destination is what a move copies to.
type destination interface {
	// Copy copies what changed since it was copied, and returns the number of objects.
	Copy(ctx context.Context, g *graph.Graph) (int, error)
}

// settle pauses the source, waits until nothing blocks the move, and copies until nothing changes. It returns the
// last state of the source, all of which is copied.
func (m *Mover) settle(ctx context.Context, to destination) (*graph.Graph, error) {
	first := true
	for range rounds {
		g, err := m.pauseSource(ctx)
		if err != nil {
			return nil, err
		}
		if first {
			m.Progress.Start("Copying", len(g.Nodes))
		}
		written, err := to.Copy(ctx, g)
		if err != nil {
			return nil, err
		}
		if written == 0 {
			return g, nil
		}
		if first && m.copier != nil {
			m.copier.Done = nil // Later rounds copy what changed meanwhile.
		}
		first = false
	}
	return nil, fmt.Errorf("the objects in the source change all the time, although their Clusters are paused: stop what changes them")
}

// pauseSource returns the state of the source in which everything is paused and nothing blocks the move.
func (m *Mover) pauseSource(ctx context.Context) (*graph.Graph, error) {
	var g *graph.Graph
	var blocking []*graph.Node
	err := wait.ExponentialBackoffWithContext(ctx, m.BlockBackoff, func(ctx context.Context) (bool, error) {
		var err error
		if g, err = m.paused(ctx); err != nil {
			return false, err
		}
		blocking = g.Select(blocks)
		if len(blocking) > 0 {
			m.Progress.Say("Waiting for controllers to remove the annotation %s from %s", clusterctlv1.BlockMoveAnnotation, list(blocking))
		}
		return len(blocking) == 0, nil
	})
	if err != nil && wait.Interrupted(err) && ctx.Err() == nil {
		return nil, fmt.Errorf("the move is blocked by the annotation %s of %s: its controller must remove it",
			clusterctlv1.BlockMoveAnnotation, list(blocking))
	}
	return g, err
}

// paused pauses the source, and reads it again if it was not paused before, so that the result is its state after the pause.
func (m *Mover) paused(ctx context.Context) (*graph.Graph, error) {
	for range rounds {
		g, err := m.reader.Graph(ctx)
		if err != nil {
			return nil, err
		}
		// A run before may have paused a class that Clusters of another namespace use since.
		if _, err := transfer.Resume(ctx, m.Source, g.Select(func(n *graph.Node) bool { return n.Shared }), m.entry.ID); err != nil {
			return nil, err
		}
		paused, err := transfer.Pause(ctx, m.Source, g.Select(m.remaining), m.entry.ID)
		if err != nil {
			return nil, err
		}
		if paused == 0 {
			return g, nil
		}
		m.Progress.Say("Paused %d Clusters and ClusterClasses in the source cluster", paused)
	}
	return nil,
		fmt.Errorf("the Clusters in the source are resumed as soon as they are paused: stop what resumes them, for example a GitOps tool")
}

func blocks(n *graph.Node) bool {
	_, ok := n.GetAnnotations()[clusterctlv1.BlockMoveAnnotation]
	return ok
}

// remaining reports whether the object is neither marked as moved nor stays.
func (m *Mover) remaining(n *graph.Node) bool {
	return !n.Shared && !transfer.Moved(n.Object, m.entry.ID)
}

func list(nodes []*graph.Node) string {
	var names []string
	for i, n := range nodes {
		if i == shown {
			names = append(names, fmt.Sprintf("%d others", len(nodes)-shown))
			break
		}
		names = append(names, n.Key().String())
	}
	return strings.Join(names, ", ")
}

// remove removes the objects from the source until nothing is left: what is created or changed meanwhile is copied first. g
// is the state of the source; nil if it must be read.
func (m *Mover) remove(ctx context.Context, g *graph.Graph) error {
	remover := &transfer.Remover{
		Source: m.Source,
		ID:     m.entry.ID,
		Done:   m.Progress.Done,
		Copy: func(ctx context.Context, n *graph.Node) error {
			_, err := m.copier.One(ctx, n)
			return err
		},
	}
	m.copier.Done = nil
	for round := range rounds {
		if g == nil {
			var err error
			if g, err = m.paused(ctx); err != nil {
				return err
			}
		}
		left := g.Select(movable)
		if len(left) == 0 {
			return nil
		}
		if round == 0 {
			m.Progress.Start("Removing", len(left))
		}
		if _, err := m.copier.Copy(ctx, g); err != nil {
			return err
		}
		if err := remover.Remove(ctx, g); err != nil {
			return err
		}
		g = nil
	}
	return fmt.Errorf("objects appear in the source again and again: stop what creates them, for example a GitOps tool")
}

// resume resumes what the move has paused.
func (m *Mover) resume(ctx context.Context, s *side.Side) error {
	g, err := m.pausable(ctx, s)
	if err != nil {
		return err
	}
	resumed, err := transfer.Resume(ctx, s, g.Nodes, m.entry.ID)
	if err != nil {
		return err
	}
	m.Progress.Say("Resumed %d Clusters and ClusterClasses in the %s cluster", resumed, s.Name)
	return nil
}

// pausable reads the Clusters and ClusterClasses of a side.
func (m *Mover) pausable(ctx context.Context, s *side.Side) (*graph.Graph, error) {
	reader := &discovery.Reader{Side: s, Namespace: m.Namespace}
	for _, k := range m.reader.Kinds {
		o := graph.Object{Kind: k}
		if transfer.Pausable(o) {
			reader.Kinds = append(reader.Kinds, k)
		}
	}
	return reader.Graph(ctx)
}

// ToDirectory writes the objects to files, and resumes the source. Nothing is removed from the source. It returns the number of
// objects.
func (m *Mover) ToDirectory(ctx context.Context) (objects int, err error) {
	if err := m.open(ctx); err != nil {
		return 0, err
	}
	err = m.Lock.Hold(ctx, func(ctx context.Context) error {
		if _, err := m.begin(ctx, m.checkSource); err != nil {
			return err
		}
		to, err := openFiles(m.Directory, m.Progress)
		if err != nil {
			return err
		}
		defer func() { _ = to.Close() }()
		for _, step := range []phase{
			{journal.Copying, func(ctx context.Context) error { _, err := m.settle(ctx, to); return err }},
			{journal.Resuming, func(ctx context.Context) error { return m.resume(ctx, m.Source) }},
		} {
			if err := m.advance(ctx, step.phase, step.run); err != nil {
				return m.interrupted(err)
			}
		}
		objects = len(to.names)
		return errors.Join(m.finish(ctx), to.setAside(m.Namespace))
	})
	return objects, err
}

// DryRun returns the objects that would be moved, by level, and with them, if the move could not start, why. It writes nothing.
func (m *Mover) DryRun(ctx context.Context) (*graph.Graph, error) {
	if err := m.open(ctx); err != nil {
		return nil, err
	}
	if m.Target == nil {
		return m.begin(ctx, m.checkSource)
	}
	return m.begin(ctx, m.prepareTarget)
}
