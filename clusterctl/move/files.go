package move

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"sigs.k8s.io/cluster-api/clusterctl/move/graph"
	"sigs.k8s.io/cluster-api/clusterctl/move/journal"
	"sigs.k8s.io/cluster-api/clusterctl/move/transfer"
)

// files is a directory as the destination of a move.
type files struct {
	root     *os.Root
	progress Progress
	versions map[types.UID]string // resource versions of what was written
	taken    map[string]graph.Key
	names    map[graph.Key]string
}

func openFiles(path string, progress Progress) (*files, error) {
	root, err := os.OpenRoot(path)
	if err != nil {
		return nil, fmt.Errorf("cannot use the directory: %w", err)
	}
	return &files{
		root: root, progress: progress, versions: map[types.UID]string{}, taken: map[string]graph.Key{}, names: map[graph.Key]string{},
	}, nil
}

// Close closes the directory.
func (f *files) Close() error { return f.root.Close() }

// Copy writes the objects that changed.
func (f *files) Copy(ctx context.Context, g *graph.Graph) (written int, err error) {
	for _, n := range g.Nodes {
		if err := ctx.Err(); err != nil {
			return written, context.Cause(ctx)
		}
		if f.versions[n.GetUID()] == n.GetResourceVersion() {
			continue
		}
		name, err := fileName(n.Object, f.taken)
		if err != nil {
			return written, err
		}
		if err := writeObject(f.root, name, n.Unstructured); err != nil {
			return written, err
		}
		f.versions[n.GetUID()], f.names[n.Key()] = n.GetResourceVersion(), name
		written++
		f.progress.Done()
	}
	return written, nil
}

// setAside renames the files of an earlier backup of the namespace whose objects no longer exist: otherwise they would be
// created again. Those of other namespaces, and of cluster-scoped objects, may belong to backups of other namespaces.
func (f *files) setAside(namespace string) error {
	names, err := fileNames(f.root)
	if err != nil {
		return err
	}
	written := slices.Collect(maps.Values(f.names))
	aside := 0
	for _, name := range names {
		if parts := strings.Split(name, "_"); len(parts) != 3 || parts[1] != namespace || slices.Contains(written, name) {
			continue
		}
		if err := f.root.Rename(name, name+stale); err != nil {
			return fmt.Errorf("cannot rename %s, whose object no longer exists: %w", name, err)
		}
		aside++
	}
	if aside > 0 {
		f.progress.Say("Renamed %d files of an earlier backup, whose objects no longer exist, to *%s", aside, extension+stale)
	}
	return nil
}

// shorten makes a name unique by its hash.
func shorten(name string) string {
	sum := sha256.Sum256([]byte(name))
	const digits = 8
	return fmt.Sprintf("%s-%x", name[:longest-2*digits-1], sum[:digits])
}

type phase struct {
	phase journal.Phase
	run   func(context.Context) error
}

func (m *Mover) checkSource(_ context.Context, g *graph.Graph, started bool) error {
	in := input{ID: m.entry.ID, Graph: g, NoCluster: true, Backup: m.Directory != "", KeepPaused: m.KeepPaused}
	if err := checkStart(in, started); err != nil || !in.Backup {
		return err
	}
	for _, text := range imprecise(in) {
		m.Progress.Warn("%s", text)
	}
	return nil
}

// checkKinds checks that the target serves the kinds of a directory.
func (m *Mover) checkKinds(g *graph.Graph) error {
	var problems []error
	for _, text := range kinds(input{Graph: g, Served: m.served}) {
		problems = append(problems, errors.New(text))
	}
	if len(problems) == 0 {
		return nil
	}
	return fmt.Errorf("the objects of %s cannot be created, nothing was changed: %w", m.Directory, errors.Join(problems...))
}

// served reports whether the target serves a kind.
func (m *Mover) served(kind schema.GroupVersionKind) bool {
	_, err := m.Target.RESTMapper().RESTMapping(kind.GroupKind(), kind.Version)
	return err == nil
}

// Restored is the result of FromDirectory.
type Restored struct {
	// Objects is how many there are in the directory, Existing how many of them existed already, and were not changed.
	Objects, Existing int
}

// FromDirectory creates the objects of a directory in the target, and resumes them. Objects that exist are not changed.
func (m *Mover) FromDirectory(ctx context.Context) (Restored, error) {
	g, err := m.directoryGraph()
	if err != nil {
		return Restored{}, err
	}
	if err := m.checkKinds(g); err != nil {
		return Restored{}, err
	}
	for _, n := range g.Nodes {
		if n.GetDeletionTimestamp() != nil {
			m.Progress.Warn("%s was being deleted when it was saved: it is restored; delete it again", n.Key())
		}
	}
	copier := &transfer.Copier{Target: m.Target, KeepExisting: true, Done: m.Progress.Done}
	copier.Know(nil)
	m.Progress.Start("Creating", len(g.Nodes))
	if _, err := copier.Copy(ctx, g); err != nil {
		return Restored{}, fmt.Errorf("%w; run the same command again to continue", err)
	}
	return Restored{Objects: len(g.Nodes), Existing: len(g.Nodes) - copier.Created()}, m.resumeCreated(ctx, copier, g)
}

// directoryGraph returns the objects of the directory.
func (m *Mover) directoryGraph() (*graph.Graph, error) {
	contents, err := ReadDirectory(m.Directory)
	if err != nil {
		return nil, err
	}
	if len(contents) == 0 {
		return nil, ErrNothing
	}
	objects := make([]graph.Object, 0, len(contents))
	for _, o := range contents {
		// What is in the directory was selected when it was written.
		kind := graph.Kind{GroupVersionKind: o.GroupVersionKind(), Namespaced: o.GetNamespace() != "", Move: true}
		objects = append(objects, graph.Object{Unstructured: o, Kind: kind})
	}
	return graph.Build(objects)
}

// Planned is what FromDirectory would do with an object.
type Planned struct {
	Object graph.Key
	// Action is "create", "keep" for an object that exists, or "resume" for one that exists and was paused when the directory was
	// written; "create or keep" if the target is unknown.
	Action string
}

// DryRunFromDirectory returns what FromDirectory would do, in its order, and fails where it would. It writes nothing. The target may be
// nil.
func (m *Mover) DryRunFromDirectory(ctx context.Context) ([]Planned, error) {
	g, err := m.directoryGraph()
	if err != nil {
		return nil, err
	}
	if m.Target != nil {
		if err := m.checkKinds(g); err != nil {
			return nil, err
		}
	}
	copier := &transfer.Copier{Target: m.Target, KeepExisting: true}
	var list []Planned
	for _, level := range g.Levels() {
		for _, n := range level {
			action := "create or keep"
			if m.Target != nil {
				if action, err = wouldRestore(ctx, copier, n); err != nil {
					return nil, err
				}
			}
			list = append(list, Planned{Object: n.Key(), Action: action})
		}
	}
	return list, nil
}

func wouldRestore(ctx context.Context, copier *transfer.Copier, n *graph.Node) (string, error) {
	current, err := copier.Existing(ctx, n)
	switch {
	case err != nil:
		return "", err
	case current == nil:
		return "create", nil
	case transfer.Pausable(n.Object) && transfer.Resumes(graph.Object{Unstructured: current, Kind: n.Kind}, transfer.PausedBy(n.Object)):
		return "resume", nil
	default:
		return "keep", nil
	}
}

// resumeCreated resumes what was paused when the directory was written, unless another client has paused or moved it since.
func (m *Mover) resumeCreated(ctx context.Context, copier *transfer.Copier, g *graph.Graph) error {
	byMove := map[string][]*graph.Node{}
	for _, n := range g.Nodes {
		current := copier.Current(n.Key())
		if !transfer.Pausable(n.Object) || current == nil {
			continue
		}
		id := transfer.PausedBy(n.Object)
		byMove[id] = append(byMove[id], &graph.Node{Object: graph.Object{Unstructured: current, Kind: n.Kind}})
	}
	ids := make([]string, 0, len(byMove))
	for id := range byMove {
		ids = append(ids, id)
	}
	slices.Sort(ids)
	for _, id := range ids {
		if _, err := transfer.Resume(ctx, m.Target, byMove[id], id); err != nil {
			return fmt.Errorf("%w; run the same command again to continue", err)
		}
	}
	return nil
}
