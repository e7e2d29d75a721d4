package move

import (
	"context"
	"errors"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/rand"
	"k8s.io/apimachinery/pkg/util/wait"

	clusterctlv1 "sigs.k8s.io/cluster-api/api/clusterctl/v1alpha3"
	"sigs.k8s.io/cluster-api/clusterctl/move/discovery"
	"sigs.k8s.io/cluster-api/clusterctl/move/graph"
	"sigs.k8s.io/cluster-api/clusterctl/move/journal"
	"sigs.k8s.io/cluster-api/clusterctl/move/side"
	"sigs.k8s.io/cluster-api/clusterctl/move/transfer"
	"sigs.k8s.io/cluster-api/packages/inventory"
	"sigs.k8s.io/cluster-api/packages/lock"
)

// rounds is how often the source is read again because it changed. Only what changed is copied or removed in a round.
const rounds = 20

// ErrNothing is returned if there are no objects to move, and no interrupted move.
var ErrNothing = errors.New("nothing to move")

// Progress shows how far a move is. It is called concurrently.
type Progress interface {
	// Start begins a part with a number of objects.
	Start(what string, objects int)
	// Done counts an object.
	Done()
	// Say shows what happens, or what is waited for, Warn what users should look at, and Log details.
	Say(format string, args ...any)
	Warn(format string, args ...any)
	Log(format string, args ...any)
}

// Task is what one process at a time does in a namespace.
func Task() lock.Task {
	return lock.Task{Lease: "clusterctl-move", Does: "moves these objects", Cluster: "source cluster"}
}

// Mover moves the objects of a namespace.
type Mover struct {
	// Source is the cluster whose objects are moved.
	Source *side.Side
	// Target is where they are moved to; nil if that is a directory.
	Target *side.Side
	// Directory is the path of the directory that is written, or read.
	Directory string
	Namespace string
	// Lock lets one clusterctl at a time move the objects.
	Lock     *lock.Lock
	Progress Progress
	// KeepPaused moves Clusters and ClusterClasses that their users have paused, too; otherwise they prevent the move.
	KeepPaused bool
	// BlockBackoff is how objects that block the move are waited for; see BlockBackoff.
	BlockBackoff wait.Backoff
	// NewID returns the identity of a new move; see NewID.
	NewID func() string

	reader             *discovery.Reader // of the source
	sourceID, targetID string
	providers          inventory.Inventory // of the source
	entry              journal.Entry
	copier             *transfer.Copier
}

// BlockBackoff waits for about five minutes.
func BlockBackoff() wait.Backoff {
	return wait.Backoff{Duration: blockInterval, Factor: 1.5, Steps: 10}
}

// NewID returns a random identity.
func NewID() string { return rand.String(10) }

// ToCluster moves the objects to the target cluster, or continues an interrupted move. Errors match ErrNothing if there is
// neither.
func (m *Mover) ToCluster(ctx context.Context) error {
	if err := m.open(ctx); err != nil {
		return err
	}
	return m.Lock.Hold(ctx, func(ctx context.Context) error {
		if _, err := m.begin(ctx, m.prepareTarget); err != nil {
			return err
		}
		var settled *graph.Graph
		for _, step := range []phase{
			{journal.Copying, func(ctx context.Context) (err error) { settled, err = m.settle(ctx, m.copier); return err }},
			{journal.Removing, func(ctx context.Context) error { return m.remove(ctx, settled) }},
			{journal.Resuming, func(ctx context.Context) error { return m.resume(ctx, m.Target) }},
		} {
			if err := m.advance(ctx, step.phase, step.run); err != nil {
				return m.interrupted(err)
			}
		}
		return m.finish(ctx)
	})
}

// open reads what does not change during the move.
func (m *Mover) open(ctx context.Context) error {
	var err error
	if m.sourceID, err = identity(ctx, m.Source); err != nil {
		return err
	}
	if m.Target != nil {
		if m.targetID, err = identity(ctx, m.Target); err != nil {
			return err
		}
	} else if m.Directory != "" {
		m.targetID = "directory " + m.Directory
	}
	return m.openReader(ctx)
}

func (m *Mover) openReader(ctx context.Context) error {
	kinds, err := discovery.Kinds(ctx, m.Source)
	if err != nil {
		return err
	}
	if m.providers, err = inventory.Read(ctx, m.Source); err != nil {
		return err
	}
	m.reader = &discovery.Reader{
		Side: m.Source, Namespace: m.Namespace, SecretNamespaces: discovery.SecretNamespaces(m.providers), Kinds: kinds,
		Shared: &discovery.Shared{},
	}
	return nil
}

// identity returns what identifies a cluster, whatever its address.
func identity(ctx context.Context, s *side.Side) (string, error) {
	ns := &corev1.Namespace{}
	err := s.Do(ctx, "read namespace kube-system, which identifies it,", func(ctx context.Context) error {
		return s.Get(ctx, types.NamespacedName{Name: "kube-system"}, ns)
	})
	return string(ns.UID), err
}

// begin finds the interrupted move to continue, or starts one after all checks, and returns what is moved. prepare is called in both
// cases. With an error of a check, it also returns what would be moved.
func (m *Mover) begin(ctx context.Context, prepare func(ctx context.Context, g *graph.Graph, started bool) error) (*graph.Graph, error) {
	if m.sourceID == m.targetID {
		return nil, fmt.Errorf("source and target are the same cluster at %s: "+
			"choose another target with --to-kubeconfig or --to-kubeconfig-context", m.Source.Host)
	}
	found, err := m.interruptedMove(ctx)
	if err == nil && found == nil {
		err = m.checkNamespaces(ctx)
	}
	if err != nil {
		return nil, err
	}
	g, left, err := m.reader.Survey(ctx)
	if err != nil {
		return nil, err
	}
	switch {
	case found != nil:
		m.entry = *found
		m.Progress.Say("Continuing move %s, which was interrupted while %s", found.ID, strings.ToLower(string(found.Phase)))
	case len(g.Nodes) == 0:
		return nil, ErrNothing
	default:
		m.entry = journal.Entry{
			ID: m.NewID(), Source: m.sourceID, Target: m.targetID, SourceHost: m.Source.Host, TargetHost: m.targetHost(), Phase: journal.Copying,
		}
	}
	m.describe(g, left)
	return g, prepare(ctx, g, found != nil)
}

// describe says what stays in the source although it may be needed, and why the rest is moved.
func (m *Mover) describe(g *graph.Graph, left []graph.Left) {
	for _, n := range g.Nodes {
		m.Progress.Log("%s: %s", n.Key(), n.Why)
	}
	for _, l := range left {
		switch {
		case l.Name == journal.Name:
		case l.Why == "":
			m.Progress.Log("%s: it stays", l.Key)
		default:
			m.Progress.Warn("%s stays behind, although %s: to take it along, add the label %s", l.Key, l.Why, clusterctlv1.ClusterctlMoveLabel)
		}
	}
}

// checkNamespaces returns an error if the namespace does not exist in the source, or is being deleted on either side.
func (m *Mover) checkNamespaces(ctx context.Context) error {
	for _, s := range []*side.Side{m.Source, m.Target} {
		if s == nil {
			continue
		}
		ns := &corev1.Namespace{}
		err := s.Do(ctx, "read namespace "+m.Namespace, func(ctx context.Context) error {
			return s.Get(ctx, types.NamespacedName{Name: m.Namespace}, ns)
		})
		switch {
		case apierrors.IsForbidden(err), apierrors.IsNotFound(err) && s == m.Target:
		case apierrors.IsNotFound(err):
			return fmt.Errorf("the %s cluster has no namespace %s: choose one with --namespace", s.Name, m.Namespace)
		case err != nil:
			return err
		case ns.DeletionTimestamp != nil:
			return fmt.Errorf("the move cannot start, nothing was changed: namespace %s is being deleted in the %s cluster", m.Namespace, s.Name)
		}
	}
	return nil
}

func movable(n *graph.Node) bool { return !n.Global }

func (m *Mover) targetHost() string {
	if m.Target == nil {
		return m.Directory
	}
	return m.Target.Host
}

// interruptedMove returns the entry of the journals, nil if there is none. Entries of other moves are an error.
func (m *Mover) interruptedMove(ctx context.Context) (*journal.Entry, error) {
	found, err := journal.Read(ctx, m.Source, m.Namespace)
	if err != nil {
		return nil, err
	}
	if found == nil && m.Target != nil {
		// Only the source's journal is missing, for example because it was restored from a backup.
		if found, err = journal.Read(ctx, m.Target, m.Namespace); err != nil {
			return nil, err
		}
	}
	// A dry run without a target is about any.
	if found == nil || found.Source == m.sourceID && (found.Target == m.targetID || m.targetID == "") {
		return found, nil
	}
	return nil, fmt.Errorf("namespace %s has an unfinished move from %s to %s, in phase %s: "+
		"continue it with that source and target before you start another one",
		m.Namespace, found.SourceHost, found.TargetHost, found.Phase)
}

// prepareTarget checks the target and reads what it has.
func (m *Mover) prepareTarget(ctx context.Context, g *graph.Graph, started bool) error {
	target := *m.reader
	target.Side = m.Target
	existing, err := target.Objects(ctx)
	if err != nil {
		return err
	}
	installed, err := inventory.Read(ctx, m.Target)
	if err != nil {
		return err
	}
	if existing, err = m.sharedInTarget(ctx, g, existing); err != nil {
		return err
	}
	missing, err := m.missingClasses(ctx, g)
	if err != nil {
		return err
	}
	err = checkStart(input{
		ID: m.entry.ID, Graph: g, Source: m.providers, Target: installed, Existing: existing, MissingClasses: missing, KeepPaused: m.KeepPaused,
		Served: m.served,
	}, started)
	if err != nil {
		return err
	}
	m.copier = &transfer.Copier{Target: m.Target, ID: m.entry.ID, Done: m.Progress.Done}
	m.copier.Know(existing)
	return nil
}

// advance runs a phase unless the move is in a later one. The journals say so before its first request.
func (m *Mover) advance(ctx context.Context, phase journal.Phase, run func(context.Context) error) error {
	if rank(m.entry.Phase) > rank(phase) {
		return nil
	}
	continued := m.entry.Phase == phase && phase == journal.Resuming
	m.entry.Phase = phase
	if !continued { // The target's journal may have been deleted already.
		if err := m.record(ctx); err != nil {
			return err
		}
	}
	return run(ctx)
}

func rank(p journal.Phase) int {
	for i, phase := range []journal.Phase{journal.Copying, journal.Removing, journal.Resuming} {
		if p == phase {
			return i
		}
	}
	return 0
}

// record writes the journals, that of the source first.
func (m *Mover) record(ctx context.Context) error {
	if err := journal.Write(ctx, m.Source, m.Namespace, m.entry); err != nil || m.Target == nil {
		return err
	}
	if err := transfer.EnsureNamespace(ctx, m.Target, m.Namespace); err != nil {
		return err
	}
	return journal.Write(ctx, m.Target, m.Namespace, m.entry)
}

// finish deletes the journals, that of the source last.
func (m *Mover) finish(ctx context.Context) error {
	if m.Target != nil {
		if err := journal.Delete(ctx, m.Target, m.Namespace, m.entry); err != nil {
			return m.interrupted(err)
		}
	}
	if err := journal.Delete(ctx, m.Source, m.Namespace, m.entry); err != nil {
		return m.interrupted(err)
	}
	return nil
}

// interrupted adds to an error how the move is continued or given up.
func (m *Mover) interrupted(err error) error {
	remedy := "run the same command again to continue"
	if m.entry.Phase == journal.Copying {
		remedy += ", or with --cancel to give up: everything in the source is complete, but paused"
	}
	return fmt.Errorf("move %s was interrupted while %s: %w; %s", m.entry.ID, strings.ToLower(string(m.entry.Phase)), err, remedy)
}
