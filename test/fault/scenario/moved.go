package scenario

import (
	"context"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"

	"sigs.k8s.io/cluster-api/clusterctl/move/discovery"
	"sigs.k8s.io/cluster-api/clusterctl/move/graph"
	"sigs.k8s.io/cluster-api/clusterctl/move/side"
	"sigs.k8s.io/cluster-api/clusterctl/move/transfer"
)

// moveID is the identity of the move.
const moveID = "fault"

// moved returns the scenarios of a management cluster to which a Cluster was moved: its objects are new and have no status, but its
// machines run. When it is resumed, the managers must find everything again, and create nothing.
func moved() []Scenario {
	return []Scenario{afterMove("moved-1x1", deployed(1, 1)), afterMove("moved-3x2", deployed(3, 2))}
}

func afterMove(name string, s Size) Scenario {
	return Scenario{
		Name: name, Before: &s, Arrange: Move, Change: []Change{Resume}, Done: []Condition{Ready(s)},
		Limits: Limits{MaxControlPlanes: s.ControlPlanes, MaxWorkers: s.Workers},
	}
}

// Move removes all objects of a move from the namespace and creates them again, paused and without status, with the same code as
// clusterctl.
func Move(ctx context.Context, t Target) error {
	s := moveSide(t)
	g, err := movedObjects(ctx, s, t.Namespace)
	if err != nil {
		return err
	}
	if _, err := transfer.Pause(ctx, s, g.Nodes, moveID); err != nil {
		return err
	}
	if g, err = movedObjects(ctx, s, t.Namespace); err != nil {
		return err
	}
	if err := (&transfer.Remover{Source: s, ID: moveID}).Remove(ctx, g); err != nil {
		return err
	}
	copier := &transfer.Copier{Target: s, ID: moveID}
	copier.Know(nil)
	_, err = copier.Copy(ctx, g)
	return err
}

// Resume resumes what Move has paused.
func Resume(ctx context.Context, t Target) error {
	s := moveSide(t)
	g, err := movedObjects(ctx, s, t.Namespace)
	if err != nil {
		return err
	}
	_, err = transfer.Resume(ctx, s, g.Nodes, moveID)
	return err
}

func moveSide(t Target) *side.Side {
	return &side.Side{Client: t.Client, Name: "only", Backoff: wait.Backoff{Duration: 100 * time.Millisecond, Factor: 1.5, Steps: 10}}
}

func movedObjects(ctx context.Context, s *side.Side, namespace string) (*graph.Graph, error) {
	kinds, err := discovery.Kinds(ctx, s)
	if err != nil {
		return nil, err
	}
	return (&discovery.Reader{Side: s, Namespace: namespace, Kinds: kinds}).Graph(ctx)
}
