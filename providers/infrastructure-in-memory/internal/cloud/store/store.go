package store

import (
	"cmp"
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

// ErrDeleted is returned for operations on a store that was closed.
var ErrDeleted = errors.New("the resource group was deleted")

// Options are the dependencies of a Store.
type Options struct {
	Clock clock.Clock
	// UIDs are random bytes for UIDs, and Names random numbers for generated names. Both must be safe for concurrent use.
	UIDs  io.Reader
	Names *rand.Rand
	// Limit is the maximum size of all objects in bytes.
	Limit int64
	// Journal is the file that makes the store durable; empty if it is only in memory. Owner is the UID of the owner: a journal of another
	// one is discarded.
	Journal string
	Owner   types.UID
	// Power is which machines have power.
	Power Power
}

// Store contains everything that exists in one workload cluster. It is safe for concurrent use.
type Store struct {
	uids  io.Reader
	names *rand.Rand

	mu sync.RWMutex
	state
	end chan struct{} // closed with the store
}

// Open returns a store with the objects of its journal, if it has one.
func Open(o Options) (*Store, error) {
	s := &Store{uids: o.UIDs, names: o.Names, end: make(chan struct{})}
	s.clock, s.power = o.Clock, o.Power
	// With milliseconds since 1970, revisions are not reused after a restart unless a group had more than a thousand
	// writes per second.
	s.table = newTable(uint64(max(o.Clock.Now().UnixMilli(), 1)), o.Limit)
	if o.Journal != "" {
		var err error
		if s.journal, err = openJournal(o.Journal, o.Owner, &s.table); err != nil {
			return nil, err
		}
	}
	s.history.forgotten = s.revision
	return s, nil
}

// Now returns the time in the cloud.
func (s *Store) Now() time.Time { return s.clock.Now() }

// Revision returns the resource version of the latest change.
func (s *Store) Revision() uint64 {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.revision
}

// Size returns the number of objects and the bytes of their encodings.
func (s *Store) Size() (objects, bytes int) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	for _, stored := range s.objects {
		objects += len(stored)
		for _, o := range stored {
			bytes += len(o.raw)
		}
	}
	return objects, bytes
}

// Get returns an object, or NotFound.
func (s *Store) Get(key Key) (*Object, error) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	if o := s.lookup(key); o != nil {
		return o, nil
	}
	return nil, apierrors.NewNotFound(key.Resource, key.Name)
}

// List returns the selected objects of a resource, in one namespace or, if it is empty, in all, sorted by namespace and
// name, and the revision at which they were read.
func (s *Store) List(r Resource, namespace string, selector Selector) ([]*Object, uint64) {
	s.mu.RLock()
	selected := make([]*Object, 0, len(s.objects[r]))
	for key, o := range s.objects[r] {
		if namespace == "" || namespace == key.namespace {
			selected = append(selected, o)
		}
	}
	revision := s.revision
	s.mu.RUnlock()

	selected = slices.DeleteFunc(selected, func(o *Object) bool { return !selector.matches(o) })
	slices.SortFunc(selected, func(a, b *Object) int {
		return cmp.Or(cmp.Compare(a.Key.Namespace, b.Key.Namespace), cmp.Compare(a.Key.Name, b.Key.Name))
	})
	return selected, revision
}

// Create stores a new object and returns it. The store takes ownership of the object, which must have apiVersion, kind
// and a name or generateName; an existing UID or creation timestamp is kept, so that objects can be restored. Errors:
// AlreadyExists; NotFound or Forbidden if its namespace is missing or being deleted.
func (s *Store) Create(r Resource, u *unstructured.Unstructured, o WriteOptions) (*Object, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.prepareCreate(r, u); err != nil {
		return nil, err
	}
	key := Key{Resource: r, Namespace: u.GetNamespace(), Name: u.GetName()}
	if s.lookup(key) != nil {
		return nil, apierrors.NewAlreadyExists(r, key.Name)
	}
	s.markIfDead(r, u)
	created, err := encode(key, u, s.revision+1)
	if err == nil {
		err = s.admit(nil, created)
	}
	if err != nil || o.DryRun {
		return created, err
	}
	return created, s.put(Event{Type: watch.Added, Object: created})
}

func (s *Store) prepareCreate(r Resource, u *unstructured.Unstructured) error {
	if s.closed {
		return ErrDeleted
	}
	if err := s.checkNamespace(r, u.GetNamespace(), u.GetName()); err != nil {
		return err
	}
	if u.GetName() == "" {
		u.SetName(s.GenerateName(u.GetGenerateName()))
	}
	if u.GetUID() == "" {
		id, err := uuid.NewRandomFromReader(s.uids)
		if err != nil {
			return apierrors.NewInternalError(err)
		}
		u.SetUID(types.UID(id.String()))
	}
	if created := u.GetCreationTimestamp(); created.IsZero() {
		u.SetCreationTimestamp(metav1.NewTime(s.clock.Now()))
	}
	if _, hasSpec := u.Object["spec"]; hasSpec {
		u.SetGeneration(1)
	}
	u.SetDeletionTimestamp(nil)
	u.SetDeletionGracePeriodSeconds(nil)
	return nil
}

// GenerateName returns a name with a prefix and a random suffix, from the same alphabet as in Kubernetes.
func (s *Store) GenerateName(prefix string) string {
	const alphabet = "bcdfghjklmnpqrstvwxz2456789"
	b := make([]byte, 5)
	for i := range b {
		b[i] = alphabet[s.names.IntN(len(alphabet))]
	}
	return prefix + string(b)
}

// Update replaces an object with the result of change, and returns it. change gets the current version, and is called
// again after a concurrent write. The store takes ownership of the result; a resource version or UID in it that differs
// from the current one is a Conflict. Name, namespace, UID and the timestamps of creation and deletion cannot change;
// generation follows the spec. A terminating object without finalizers is removed. Nothing is written if only times in
// managedFields would change.
func (s *Store) Update(key Key, o WriteOptions, change func(current *Object) (*unstructured.Unstructured, error)) (*Object, error) {
	for {
		current, err := s.Get(key)
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
		updated, raced, err := s.replace(current, u, o)
		if !raced || err != nil {
			return updated, err
		}
	}
}

func (s *Store) replace(current *Object, u *unstructured.Unstructured, o WriteOptions) (updated *Object, raced bool, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return nil, false, ErrDeleted
	}
	if s.lookup(current.Key) != current {
		return nil, true, nil
	}
	if unchanged(current, u) {
		return current, false, nil
	}
	updated, err = encode(current.Key, u, s.revision+1)
	if err == nil {
		err = s.admit(current, updated)
	}
	if err != nil || o.DryRun {
		return updated, false, err
	}
	if err := s.put(Event{Type: watch.Modified, Object: updated, Previous: current}); err != nil {
		return nil, false, err
	}
	if updated.terminating && len(u.GetFinalizers()) == 0 && !s.isBlocked(updated, u) {
		return updated, false, s.remove(updated)
	}
	return updated, false, s.finishOwnerDeletion(updated)
}

// Closed returns a channel that is closed when the store is closed.
func (s *Store) Closed() <-chan struct{} { return s.end }

// Delete deletes an object and, depending on the propagation policy, its dependents. An object with finalizers, an owner
// in foreground deletion with dependents, a namespace with such content, and a Pod on a dead machine stay with a deletion
// timestamp until what blocks them is gone. Delete returns the object's last version and whether it is gone. Errors:
// NotFound; Conflict if a precondition fails; Forbidden for default namespaces.
func (s *Store) Delete(key Key, o DeleteOptions) (*Object, bool, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return nil, false, ErrDeleted
	}
	current := s.lookup(key)
	if current == nil {
		return nil, false, apierrors.NewNotFound(key.Resource, key.Name)
	}
	if err := checkPreconditions(current, o.UID, o.ResourceVersion); err != nil {
		return nil, false, err
	}
	if key.Resource == Namespaces() && slices.Contains([]string{"default", "kube-system", "kube-public"}, key.Name) {
		return nil, false, apierrors.NewForbidden(key.Resource, key.Name, errors.New("this namespace may not be deleted"))
	}
	if o.DryRun {
		return current, true, nil
	}
	return s.delete(current, o)
}

// Close ends all watches. With forget, it removes the journal.
func (s *Store) Close(forget bool) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return nil
	}
	s.closed = true
	close(s.end)
	s.wake()
	if s.journal == nil || !forget {
		return nil
	}
	return s.journal.remove()
}
