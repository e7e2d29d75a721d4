package move

import (
	"context"
	"errors"
	"fmt"
	"time"

	"sigs.k8s.io/cluster-api/clusterctl/move/graph"
	"sigs.k8s.io/cluster-api/clusterctl/move/journal"
	"sigs.k8s.io/cluster-api/clusterctl/move/transfer"
)

// Cancel gives up an interrupted move that has not started to remove objects: it deletes the copies in the target, then it
// resumes the source. It can be interrupted and repeated, too.
//
// Deleted are the moved Clusters and ClusterClasses, and what belongs to them, if they were created after the move began. Other
// objects that the move created or updated stay.
func (m *Mover) Cancel(ctx context.Context) error {
	if err := m.open(ctx); err != nil {
		return err
	}
	return m.Lock.Hold(ctx, func(ctx context.Context) error {
		found, err := m.interruptedMove(ctx)
		switch {
		case err != nil:
			return err
		case found == nil:
			return errors.New("there is no interrupted move to cancel")
		case found.Phase != journal.Copying:
			return fmt.Errorf("move %s cannot be canceled in phase %s, because objects are no longer in the source: "+
				"run the same command without --cancel to complete it, then move them back", found.ID, found.Phase)
		}
		m.entry = *found
		if m.Target != nil {
			if err := m.deleteCopies(ctx); err != nil {
				return err
			}
		}
		if err := m.resume(ctx, m.Source); err != nil {
			return err
		}
		return m.finish(ctx)
	})
}

// deleteCopies deletes what the move has created in the target.
func (m *Mover) deleteCopies(ctx context.Context) error {
	theirs, err := journal.Read(ctx, m.Target, m.Namespace)
	if err != nil || theirs == nil {
		return err // The target's journal is written before the first copy.
	}
	reader := *m.reader
	reader.Side = m.Target
	remover := &transfer.Remover{Source: m.Target, ID: m.entry.ID, Done: m.Progress.Done}
	for range rounds {
		objects, err := reader.Objects(ctx)
		if err != nil {
			return err
		}
		g, err := graph.Below(objects, func(o graph.Object) bool { return transfer.PausedBy(o) == m.entry.ID && !before(o, theirs.Created) })
		if err != nil {
			return err
		}
		copies := &graph.Graph{Nodes: g.Select(func(n *graph.Node) bool { return !before(n.Object, theirs.Created) })}
		if len(copies.Nodes) == 0 {
			return nil
		}
		m.Progress.Start("Deleting copies", len(copies.Nodes))
		if err := remover.Remove(ctx, copies); err != nil {
			return err
		}
	}
	return errors.New("copies in the target cluster cannot be deleted: check what creates them again")
}

// before reports whether an object is older than the move, as the target's API server recorded it.
func before(o graph.Object, begin time.Time) bool { return o.GetCreationTimestamp().Time.Before(begin) }
