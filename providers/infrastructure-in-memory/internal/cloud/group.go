package cloud

import (
	"cmp"
	"encoding/binary"
	"errors"
	"io"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"github.com/google/uuid"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/utils/clock"
)

// ErrGroupDeleted is returned for operations on a resource group after Cloud.Drop.
var ErrGroupDeleted = errors.New("the resource group was deleted")

// Namespaces is the resource of namespaces, on which the store's other objects depend.
func Namespaces() Resource { return Resource{Resource: "namespaces"} }

// source generates random numbers from random bytes.
type source struct{ io.Reader }

// Uint64 implements rand.Source. A failing reader makes the numbers predictable, which at worst costs a retry for a
// generated name.
func (s source) Uint64() uint64 {
	var b [8]byte
	_, _ = io.ReadFull(s.Reader, b[:])
	return binary.NativeEndian.Uint64(b[:])
}

type name struct{ namespace, name string }

// Group is everything that exists in one workload cluster. It is safe for concurrent use.
type Group struct {
	key    types.NamespacedName
	uid    types.UID
	clock  clock.Clock
	bytes  io.Reader  // for UIDs
	random *rand.Rand // reads from bytes, stateless

	mu         sync.RWMutex
	revision   uint64
	objects    map[Resource]map[name]*Object
	dependents map[types.UID]map[Key]struct{} // by UID of an owner
	history    history
	changed    chan struct{} // closed at the next change; nil without waiters
	closed     bool
	end        chan struct{} // closed with the group
	journal    *journal      // nil without Options.Directory
	stored     int64         // the weight of all objects
	limit      int64

	faults    faults
	faultsSet bool // whether SetFaults was called in this process
}

func newGroup(c *Cloud, key types.NamespacedName, uid types.UID) (*Group, error) {
	g := &Group{
		key:    key,
		uid:    uid,
		clock:  c.clock,
		bytes:  c.random,
		random: rand.New(source{c.random}), //nolint:gosec // Its source reads Options.Random.
		// With milliseconds since 1970, revisions are not reused after a restart unless a group had more than a thousand
		// writes per second.
		revision:   uint64(max(c.clock.Now().UnixMilli(), 1)),
		objects:    map[Resource]map[name]*Object{},
		dependents: map[types.UID]map[Key]struct{}{},
		end:        make(chan struct{}),
		limit:      c.limit,
	}
	if c.directory != "" {
		if err := g.openJournal(c.directory); err != nil {
			return nil, err
		}
	}
	g.history.forgotten = g.revision
	for _, namespace := range []string{"default", "kube-system", "kube-public", "kube-node-lease"} {
		u := &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "v1",
			"kind":       "Namespace",
			"metadata": map[string]any{
				"name":   namespace,
				"uid":    string(UID(string(uid), key.String(), namespace)),
				"labels": map[string]any{"kubernetes.io/metadata.name": namespace},
			},
			"spec":   map[string]any{"finalizers": []any{"kubernetes"}},
			"status": map[string]any{"phase": "Active"},
		}}
		if _, err := g.Create(Namespaces(), u, WriteOptions{}); err != nil && !apierrors.IsAlreadyExists(err) {
			return nil, err
		}
	}
	return g, nil
}

// Key returns namespace and name of the workload cluster.
func (g *Group) Key() types.NamespacedName { return g.key }

// UID returns the UID of the group's owner, as given to EnsureGroup.
func (g *Group) UID() types.UID { return g.uid }

// Now returns the cloud's time.
func (g *Group) Now() time.Time { return g.clock.Now() }

// Revision returns the resource version of the latest change.
func (g *Group) Revision() uint64 {
	g.mu.RLock()
	defer g.mu.RUnlock()
	return g.revision
}

// Size returns the number of objects and the bytes of their encodings.
func (g *Group) Size() (objects, bytes int) {
	g.mu.RLock()
	defer g.mu.RUnlock()
	for _, stored := range g.objects {
		objects += len(stored)
		for _, o := range stored {
			bytes += len(o.raw)
		}
	}
	return objects, bytes
}

// Get returns an object, or NotFound.
func (g *Group) Get(key Key) (*Object, error) {
	g.mu.RLock()
	defer g.mu.RUnlock()
	if o := g.lookup(key); o != nil {
		return o, nil
	}
	return nil, apierrors.NewNotFound(key.Resource, key.Name)
}

// List returns the selected objects of a resource, in one namespace or, if it is empty, in all, sorted by namespace and
// name, and the revision at which they were read.
func (g *Group) List(r Resource, namespace string, s Selector) ([]*Object, uint64) {
	g.mu.RLock()
	selected := make([]*Object, 0, len(g.objects[r]))
	for key, o := range g.objects[r] {
		if namespace == "" || namespace == key.namespace {
			selected = append(selected, o)
		}
	}
	revision := g.revision
	g.mu.RUnlock()

	selected = slices.DeleteFunc(selected, func(o *Object) bool { return !s.matches(o) })
	slices.SortFunc(selected, func(a, b *Object) int {
		return cmp.Or(cmp.Compare(a.Key.Namespace, b.Key.Namespace), cmp.Compare(a.Key.Name, b.Key.Name))
	})
	return selected, revision
}

// WriteOptions modify a write.
type WriteOptions struct {
	// DryRun does everything but store the result.
	DryRun bool
}

// Create stores a new object and returns it. The group takes ownership of the object, which must have apiVersion, kind
// and a name or generateName; an existing UID or creation timestamp is kept, so that objects can be restored. Errors:
// AlreadyExists; NotFound or Forbidden if its namespace is missing or being deleted.
func (g *Group) Create(r Resource, u *unstructured.Unstructured, o WriteOptions) (*Object, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if err := g.prepareCreate(r, u); err != nil {
		return nil, err
	}
	key := Key{Resource: r, Namespace: u.GetNamespace(), Name: u.GetName()}
	if g.lookup(key) != nil {
		return nil, apierrors.NewAlreadyExists(r, key.Name)
	}
	g.markIfDead(r, u)
	created, err := encode(key, u, g.revision+1)
	if err == nil {
		err = g.admit(nil, created)
	}
	if err != nil || o.DryRun {
		return created, err
	}
	return created, g.put(Event{Type: watch.Added, Object: created})
}

func (g *Group) prepareCreate(r Resource, u *unstructured.Unstructured) error {
	if g.closed {
		return ErrGroupDeleted
	}
	if err := g.checkNamespace(r, u.GetNamespace(), u.GetName()); err != nil {
		return err
	}
	if u.GetName() == "" {
		u.SetName(g.GenerateName(u.GetGenerateName()))
	}
	if u.GetUID() == "" {
		id, err := uuid.NewRandomFromReader(g.bytes)
		if err != nil {
			return apierrors.NewInternalError(err)
		}
		u.SetUID(types.UID(id.String()))
	}
	if created := u.GetCreationTimestamp(); created.IsZero() {
		u.SetCreationTimestamp(metav1.NewTime(g.clock.Now()))
	}
	if _, hasSpec := u.Object["spec"]; hasSpec {
		u.SetGeneration(1)
	}
	u.SetDeletionTimestamp(nil)
	u.SetDeletionGracePeriodSeconds(nil)
	return nil
}

// GenerateName returns a name with a prefix and a random suffix, from the same alphabet as in Kubernetes.
func (g *Group) GenerateName(prefix string) string {
	const alphabet = "bcdfghjklmnpqrstvwxz2456789"
	b := make([]byte, 5)
	for i := range b {
		b[i] = alphabet[g.random.IntN(len(alphabet))]
	}
	return prefix + string(b)
}

// Update replaces an object with the result of change, and returns it. change gets the current version, and is called
// again after a concurrent write. The group takes ownership of the result; a resource version or UID in it that differs
// from the current one is a Conflict. Name, namespace, UID and the timestamps of creation and deletion cannot change;
// generation follows the spec. A terminating object without finalizers is removed. Nothing is written if only times in
// managedFields would change.
func (g *Group) Update(key Key, o WriteOptions, change func(current *Object) (*unstructured.Unstructured, error)) (*Object, error) {
	for {
		current, err := g.Get(key)
		if err != nil {
			return nil, err
		}
		u, err := change(current)
		if err != nil {
			return nil, err
		}
		if err := carryIdentity(current, u); err != nil {
			return nil, err
		}
		updated, raced, err := g.replace(current, u, o)
		if !raced || err != nil {
			return updated, err
		}
	}
}

func (g *Group) replace(current *Object, u *unstructured.Unstructured, o WriteOptions) (updated *Object, raced bool, err error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.closed {
		return nil, false, ErrGroupDeleted
	}
	if g.lookup(current.Key) != current {
		return nil, true, nil
	}
	if unchanged(current, u) {
		return current, false, nil
	}
	updated, err = encode(current.Key, u, g.revision+1)
	if err == nil {
		err = g.admit(current, updated)
	}
	if err != nil || o.DryRun {
		return updated, false, err
	}
	if err := g.put(Event{Type: watch.Modified, Object: updated, Previous: current}); err != nil {
		return nil, false, err
	}
	if updated.terminating && len(u.GetFinalizers()) == 0 && !g.isBlocked(updated, u) {
		return updated, false, g.remove(updated)
	}
	return updated, false, g.finishOwnerDeletion(updated)
}

// lookup returns the current version of an object, or nil. The group's lock is held.
func (g *Group) lookup(key Key) *Object {
	return g.objects[key.Resource][name{key.Namespace, key.Name}]
}

// put makes an event's object the current one (or, for Deleted, removes it) and notifies watchers. The group's lock is
// held and the object's revision is the next one.
func (g *Group) put(e Event) error {
	if g.journal != nil {
		if err := g.journal.append(e); err != nil {
			return apierrors.NewInternalError(err)
		}
	}
	g.index(e)
	g.history.append(e)
	g.broadcast()
	return nil
}

// index applies an event to the maps of the current state.
func (g *Group) index(e Event) {
	o, at := e.Object, name{e.Object.Key.Namespace, e.Object.Key.Name}
	g.revision = o.Revision
	if e.Previous != nil {
		g.stored -= e.Previous.weight()
		for _, owner := range e.Previous.owners {
			delete(g.dependents[owner], o.Key)
			if len(g.dependents[owner]) == 0 {
				delete(g.dependents, owner)
			}
		}
	}
	if e.Type == watch.Deleted {
		delete(g.objects[o.Key.Resource], at)
		return
	}
	g.stored += o.weight()
	if g.objects[o.Key.Resource] == nil {
		g.objects[o.Key.Resource] = map[name]*Object{}
	}
	g.objects[o.Key.Resource][at] = o
	for _, owner := range o.owners {
		if g.dependents[owner] == nil {
			g.dependents[owner] = map[Key]struct{}{}
		}
		g.dependents[owner][o.Key] = struct{}{}
	}
}

func (g *Group) close(forget bool) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.closed {
		return nil
	}
	g.closed = true
	close(g.end)
	g.broadcast()
	g.faults.end()
	if g.journal == nil || !forget {
		return nil
	}
	return g.journal.remove()
}

// Closed returns a channel that is closed when the group is deleted or its cloud closed.
func (g *Group) Closed() <-chan struct{} { return g.end }
