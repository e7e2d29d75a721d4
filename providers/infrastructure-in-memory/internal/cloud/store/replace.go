package store

import (
	"bytes"
	"fmt"
	"net/http"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"k8s.io/apimachinery/pkg/watch"
)

// Imported is an object of another store.
type Imported struct {
	// Key is where it is stored.
	Key Key
	// Revision is its resource version.
	Revision uint64
	// JSON is the object, with apiVersion, kind and metadata. A resource version in it is ignored.
	JSON []byte
}

// Replace replaces all objects but those of the simulation itself, and sets the revision, as if another etcd were behind an API server:
// watches from before have to list again. The objects must have the names of their keys, and fit into the store. If one is invalid, or the
// journal cannot be written, nothing changes.
func (e Exclusive) Replace(all []Imported, revision uint64) error {
	s := e.state
	next := newTable(revision, s.limit)
	for r, stored := range s.objects {
		if r.Group != Simulation {
			continue
		}
		for _, o := range stored {
			next.index(Event{Type: watch.Added, Object: o})
		}
	}
	for _, one := range all {
		o, err := one.object()
		if err != nil {
			return err
		}
		next.index(Event{Type: watch.Added, Object: o, Previous: next.lookup(one.Key)})
		if next.stored > next.limit {
			return apierrors.NewGenericServerResponse(http.StatusInsufficientStorage, "", one.Key.Resource, one.Key.Name,
				fmt.Sprintf("the simulated cluster is full: the objects exceed its limit of %d bytes", next.limit), 0, true)
		}
	}
	next.revision = revision
	before := s.table
	s.table = next
	if s.journal != nil {
		if err := s.journal.rewrite(); err != nil {
			s.table = before
			return apierrors.NewInternalError(err)
		}
	}
	s.history = history{forgotten: revision, epoch: s.history.epoch + 1}
	s.wake()
	return nil
}

// Revision returns the resource version of the latest change.
func (e Exclusive) Revision() uint64 { return e.state.revision }

func (i Imported) object() (*Object, error) {
	var content map[string]any
	if err := utiljson.Unmarshal(bytes.TrimSpace(i.JSON), &content); err != nil {
		return nil, fmt.Errorf("%s: invalid JSON", i.Key) // The error may quote it.
	}
	u := &unstructured.Unstructured{Object: content}
	if u.GetName() != i.Key.Name || u.GetNamespace() != i.Key.Namespace || u.GetKind() == "" || u.GetAPIVersion() == "" {
		return nil, fmt.Errorf("%s: apiVersion, kind, or a name that matches its key is missing", i.Key)
	}
	return encode(i.Key, u, i.Revision)
}
