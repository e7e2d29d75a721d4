package transfer

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"sigs.k8s.io/cluster-api/clusterctl/move/graph"
	"sigs.k8s.io/cluster-api/clusterctl/move/side"
)

// conflicts is how often an object may change while it is written.
const conflicts = 10

// Copier makes the target's objects equal to the source's. It remembers what it has copied, so that copying a later state of
// the source only writes what changed.
type Copier struct {
	Target *side.Side
	// ID is the identity of the move; objects that it has already moved are not copied.
	ID string
	// KeepExisting leaves namespaced objects of the target that exist as they are, like global ones.
	KeepExisting bool
	// Done is called after each object, if not nil.
	Done func()

	mu       sync.Mutex
	existing map[graph.Key]*unstructured.Unstructured
	uids     map[types.UID]types.UID         // in the target, by UID in the source
	copied   map[types.UID][sha256.Size]byte // contents, by UID in the source
	spaces   map[string]bool
	created  int
}

// errDeleted ends a copy.
var errDeleted = errors.New("the object with its name is being deleted: wait until it is gone, and run the same command again")

// Existing returns the object that the target has instead of a new one, nil if Copy would create it. It fails where Copy would. It
// writes nothing.
func (c *Copier) Existing(ctx context.Context, n *graph.Node) (current *unstructured.Unstructured, err error) {
	err = c.Target.Do(ctx, "copy "+n.Key().String(), func(ctx context.Context) error {
		current, err = c.read(ctx, n.Unstructured)
		if err == nil && current != nil && !n.Global && current.GetDeletionTimestamp() != nil {
			return errDeleted
		}
		return err
	})
	return current, err
}

// Created returns how many objects did not exist in the target.
func (c *Copier) Created() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.created
}

// Know tells the Copier what the target has; other objects are created.
func (c *Copier) Know(objects []graph.Object) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.existing, c.uids = map[graph.Key]*unstructured.Unstructured{}, map[types.UID]types.UID{}
	c.copied, c.spaces = map[types.UID][sha256.Size]byte{}, map[string]bool{}
	for _, o := range objects {
		c.existing[o.Key()] = o.Unstructured
	}
}

// Copy copies the objects of a graph that have changed since they were copied, owners first, and returns their number.
func (c *Copier) Copy(ctx context.Context, g *graph.Graph) (written int, err error) {
	if err := c.namespaces(ctx, g); err != nil {
		return 0, err
	}
	for _, level := range g.Levels() {
		err := side.Each(ctx, level, func(ctx context.Context, n *graph.Node) error {
			changed, err := c.One(ctx, n)
			c.mu.Lock()
			defer c.mu.Unlock()
			if changed {
				written++
			}
			return err
		})
		if err != nil {
			return written, err
		}
	}
	return written, nil
}

// One copies an object if it has changed since it was copied.
func (c *Copier) One(ctx context.Context, n *graph.Node) (changed bool, err error) {
	if c.Done != nil {
		defer c.Done()
	}
	current := c.Current(n.Key())
	if current != nil {
		c.learn(n, current)
	}
	if Moved(n.Object, c.ID) {
		return false, nil
	}
	desired := Desired(n.Object, c.uid)
	content, err := json.Marshal([]any{desired.Object["metadata"], without(desired.Object, "metadata", "status"), applied(n.Unstructured)})
	if err != nil {
		return false, fmt.Errorf("cannot copy %s: %w", n.Key(), err)
	}
	sum := sha256.Sum256(content)
	c.mu.Lock()
	known, ok := c.copied[n.GetUID()]
	c.mu.Unlock()
	if ok && known == sum {
		return false, nil
	}
	current, err = c.put(ctx, n, desired, current)
	if err != nil {
		return false, err
	}
	c.learn(n, current)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.copied[n.GetUID()] = sum
	return true, nil
}

func without(o map[string]any, names ...string) map[string]any {
	rest := map[string]any{}
	for name, value := range o {
		if !slices.Contains(names, name) {
			rest[name] = value
		}
	}
	return rest
}

// Current returns the object as the target has it, nil if that is unknown.
func (c *Copier) Current(key graph.Key) *unstructured.Unstructured {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.existing[key]
}

func (c *Copier) learn(n *graph.Node, current *unstructured.Unstructured) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.existing[n.Key()] = current
	c.uids[n.GetUID()] = current.GetUID()
}

func (c *Copier) uid(source types.UID) (types.UID, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	uid, ok := c.uids[source]
	return uid, ok
}

// put writes the object and returns it as the target has it. Every attempt starts from what the target has, so that lost
// responses and conflicts are only further attempts.
func (c *Copier) put(ctx context.Context, n *graph.Node, desired, current *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	what := "copy " + n.Key().String()
	err := c.Target.Do(ctx, what, func(ctx context.Context) error {
		for range conflicts {
			next, err := c.attempt(ctx, n, desired, current)
			if err == nil {
				current = next
				return nil
			}
			if !apierrors.IsConflict(err) && !apierrors.IsAlreadyExists(err) {
				return err
			}
			if current, err = c.read(ctx, desired); err != nil {
				return err
			}
		}
		return fmt.Errorf("it is changed all the time: scale down what changes it")
	})
	return current, err
}

func (c *Copier) read(ctx context.Context, desired *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	found := &unstructured.Unstructured{}
	found.SetGroupVersionKind(desired.GroupVersionKind())
	err := c.Target.Get(ctx, client.ObjectKeyFromObject(desired), found)
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	return found, err
}

func (c *Copier) attempt(
	ctx context.Context, n *graph.Node, desired, current *unstructured.Unstructured,
) (*unstructured.Unstructured, error) {
	switch {
	case current == nil:
		current = desired.DeepCopy()
		if err := c.Target.Create(ctx, current); err != nil {
			return nil, err
		}
		c.mu.Lock()
		c.created++
		c.mu.Unlock()
	case n.Global:
		return current, nil
	case current.GetDeletionTimestamp() != nil:
		return nil, errDeleted
	case !same(desired, current) && c.KeepExisting:
		return current, nil
	case !same(desired, current):
		update := desired.DeepCopy()
		update.SetUID(current.GetUID())
		update.SetResourceVersion(current.GetResourceVersion())
		if err := c.Target.Update(ctx, update); err != nil {
			return nil, err
		}
		current = update
	}
	return current, c.own(ctx, n.Unstructured, current)
}

// own restores the field ownership of server-side apply, without which a later apply could not remove fields. A request that
// creates or updates an object makes clusterctl the owner of what it changes, so that this needs a request of its own.
func (c *Copier) own(ctx context.Context, source, current *unstructured.Unstructured) error {
	wanted := applied(source)
	if len(wanted) == 0 || sameOwnership(wanted, applied(current)) {
		return nil
	}
	entries := slices.DeleteFunc(source.GetManagedFields(), func(e metav1.ManagedFieldsEntry) bool { return e.Subresource != "" })
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{
		"resourceVersion": current.GetResourceVersion(), "managedFields": entries,
	}})
	if err != nil {
		return err
	}
	return c.Target.Patch(ctx, current, client.RawPatch(types.MergePatchType, patch))
}

// namespaces creates the namespaces that the target does not have.
func (c *Copier) namespaces(ctx context.Context, g *graph.Graph) error {
	for _, n := range g.Nodes {
		name := n.GetNamespace()
		if name == "" || c.spaces[name] || n.Global && c.Current(n.Key()) != nil {
			continue
		}
		if err := EnsureNamespace(ctx, c.Target, name); err != nil {
			return err
		}
		c.spaces[name] = true
	}
	return nil
}

// EnsureNamespace creates a namespace if it does not exist.
func EnsureNamespace(ctx context.Context, s *side.Side, name string) error {
	return s.Do(ctx, "create namespace "+name, func(ctx context.Context) error {
		ns := &corev1.Namespace{}
		err := s.Get(ctx, types.NamespacedName{Name: name}, ns)
		if !apierrors.IsNotFound(err) {
			return err
		}
		err = s.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}})
		if apierrors.IsAlreadyExists(err) {
			return nil
		}
		return err
	})
}
