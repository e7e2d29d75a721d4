package migration

import (
	"context"
	"fmt"
	"sync"

	"golang.org/x/sync/errgroup"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"sigs.k8s.io/cluster-api/sdk/failsafe"
)

const (
	// pageSize is how many objects are listed at once.
	pageSize = 500
	// maxErrors is how many errors of objects an ObjectsError has.
	maxErrors = 3
)

// Pass goes once through all objects of a kind. Interrupting it costs only that a later one patches objects again, which writes nothing.
type Pass struct {
	// Kind is the kind of the objects, in a version that is served.
	Kind schema.GroupVersionKind
	// Patch returns the merge patch of an object; nil: it stays as it is.
	Patch func(o *metav1.PartialObjectMetadata) ([]byte, error)
	// Parallel is how many objects are patched concurrently.
	Parallel int
	// Failures is how many objects in a row cannot be saved before the pass ends: they may all fail for the same reason.
	Failures int
	// Retry repeats a request that may succeed later; nil means that it is made once.
	Retry func(ctx context.Context, do func(context.Context) error) error
	// Report is called with the number of saved objects, once per page. Nil: not at all.
	Report func(saved int)
}

// Visited are the objects that earlier passes have visited. The zero value is for the first pass. Losing it costs requests that write
// nothing.
type Visited struct {
	mu           sync.Mutex
	done, failed map[types.UID]bool
}

// ObjectsError is why objects could not be saved. All others were, except if there were too many in a row.
type ObjectsError struct {
	// Failed is how many.
	Failed int
	// Errors are those of the first ones.
	Errors []error
	// Saved is how many other objects the pass has saved.
	Saved int
}

// Error implements error.
func (e *ObjectsError) Error() string {
	if e.Failed == 1 {
		return e.Errors[0].Error()
	}
	return fmt.Sprintf("%d objects cannot be saved, such as: %s", e.Failed, e.Errors[0])
}

// Unwrap returns the errors of the first objects.
func (e *ObjectsError) Unwrap() []error { return e.Errors }

// Run lists all objects from reader, and patches them with writer. The error is an ObjectsError if it is due to objects. Objects that an
// earlier pass has saved are skipped; those that failed are tried again once all others were.
func (p Pass) Run(ctx context.Context, reader client.Reader, writer client.Writer, visited *Visited) error {
	t := &tally{Pass: p, writer: writer, visited: visited}
	for next := ""; ; {
		list := &metav1.PartialObjectMetadataList{}
		list.SetGroupVersionKind(p.Kind)
		list.Kind += "List"
		err := p.retry(ctx, func(ctx context.Context) error {
			return reader.List(ctx, list, client.Limit(pageSize), client.Continue(next))
		})
		if apierrors.IsResourceExpired(err) {
			next = "" // It took longer than the API server remembers: from the beginning.
			continue
		}
		if err != nil {
			return fmt.Errorf("cannot list the objects of kind %s in version %s: %w", p.Kind.Kind, p.Kind.Version, err)
		}
		if err := t.page(ctx, list.Items); err != nil {
			return err
		}
		if p.Report != nil {
			p.Report(t.saved)
		}
		if next = list.Continue; next == "" {
			return t.end()
		}
	}
}

func (p Pass) retry(ctx context.Context, do func(context.Context) error) error {
	if p.Retry == nil {
		return do(ctx)
	}
	return p.Retry(ctx, do)
}

// tally is one pass.
type tally struct {
	Pass
	writer  client.Writer
	visited *Visited

	// What follows is guarded by visited.mu.
	saved, failed, inARow int
	errors                []error
}

// page patches the objects of a page. It returns an error if the pass has to end.
func (t *tally) page(ctx context.Context, items []metav1.PartialObjectMetadata) error {
	group := &errgroup.Group{}
	group.SetLimit(t.Parallel)
	for i := range items {
		if t.skips(&items[i]) {
			continue
		}
		group.Go(func() error {
			if t.gaveUp() || ctx.Err() != nil {
				return nil
			}
			t.note(&items[i], t.save(ctx, &items[i]))
			return nil
		})
	}
	_ = group.Wait()
	if err := ctx.Err(); err != nil {
		return err
	}
	if t.gaveUp() {
		return t.failure()
	}
	return nil
}

// end returns the error of a pass that has visited all objects.
func (t *tally) end() error {
	t.visited.mu.Lock()
	remain := len(t.visited.failed)
	t.visited.failed = nil // The next pass tries them again.
	t.visited.mu.Unlock()
	if t.failed > 0 {
		return t.failure()
	}
	if remain > 0 {
		return &ObjectsError{Failed: remain, Saved: t.saved, Errors: []error{
			fmt.Errorf("cannot store %d objects of kind %s: they failed before, and are tried again", remain, t.Kind.Kind),
		}}
	}
	return nil
}

func (t *tally) skips(o *metav1.PartialObjectMetadata) bool {
	t.visited.mu.Lock()
	defer t.visited.mu.Unlock()
	return t.visited.done[o.UID] || t.visited.failed[o.UID]
}

func (t *tally) gaveUp() bool {
	t.visited.mu.Lock()
	defer t.visited.mu.Unlock()
	return t.inARow >= t.Failures
}

func (t *tally) failure() error {
	return &ObjectsError{Failed: t.failed, Errors: t.errors, Saved: t.saved}
}

// note records the result for an object.
func (t *tally) note(o *metav1.PartialObjectMetadata, err error) {
	t.visited.mu.Lock()
	defer t.visited.mu.Unlock()
	if err == nil {
		if t.visited.done == nil {
			t.visited.done = map[types.UID]bool{}
		}
		t.visited.done[o.UID] = true
		t.saved, t.inARow = t.saved+1, 0
		return
	}
	if t.visited.failed == nil {
		t.visited.failed = map[types.UID]bool{}
	}
	t.visited.failed[o.UID] = true
	t.failed, t.inARow = t.failed+1, t.inARow+1
	if len(t.errors) < maxErrors {
		t.errors = append(t.errors, err)
	}
}

// save patches an object. One that is gone needs no migration.
func (t *tally) save(ctx context.Context, o *metav1.PartialObjectMetadata) error {
	patch, err := t.Patch(o)
	if err != nil || patch == nil {
		return err
	}
	o.SetGroupVersionKind(t.Kind)
	key := client.ObjectKeyFromObject(o)
	err = t.retry(ctx, func(ctx context.Context) error {
		return client.IgnoreNotFound(t.writer.Patch(ctx, o, client.RawPatch(types.MergePatchType, patch)))
	})
	if err != nil {
		return fmt.Errorf("cannot store %s %s in version %s: %w", t.Kind.Kind, key, t.Kind.Version, failsafe.Redacted(err))
	}
	return nil
}
