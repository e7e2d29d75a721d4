package topologyplan

import (
	"context"
	"strings"
	"sync"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	runtimev1 "sigs.k8s.io/cluster-api/api/runtime/v1beta2"
)

// sharedFor is how long shared objects are used before they are read again.
const sharedFor = 2 * time.Minute

const extensionKind = "ExtensionConfig"

// shared is a client.Reader that reads what many Clusters have in common once: ClusterClasses and their templates, ExtensionConfigs, and
// the metadata of CustomResourceDefinitions. What does not exist is looked up again. Its results must not be changed. It is safe for
// concurrent use.
type shared struct {
	client.Reader
	clock clock.PassiveClock

	mu      sync.Mutex
	objects map[sharedKey]*sharedObject
}

type sharedKey struct {
	kind schema.GroupVersionKind
	key  client.ObjectKey
	// what tells whole objects, metadata and lists apart.
	what string
}

// sharedObject is locked while it is read, so that others wait for it instead of reading it, too.
type sharedObject struct {
	mu    sync.Mutex
	until time.Time
	value any
}

func newShared(live client.Reader, c clock.PassiveClock) *shared {
	return &shared{Reader: live, clock: c, objects: map[sharedKey]*sharedObject{}}
}

// Get implements client.Reader.
func (s *shared) Get(ctx context.Context, key client.ObjectKey, obj client.Object, opts ...client.GetOption) error {
	kind := obj.GetObjectKind().GroupVersionKind()
	read := func() error { return s.Reader.Get(ctx, key, obj, opts...) }
	switch o := obj.(type) {
	case *unstructured.Unstructured:
		if !mayBeShared(kind) {
			return read()
		}
		return once(s, sharedKey{kind, key, "object"}, &o.Object, read, func() bool { return isShared(o) })
	case *metav1.PartialObjectMetadata:
		return once(s, sharedKey{kind, key, "metadata"}, o, read, func() bool { return true })
	}
	return read()
}

// List implements client.Reader.
func (s *shared) List(ctx context.Context, list client.ObjectList, opts ...client.ListOption) error {
	read := func() error { return s.Reader.List(ctx, list, opts...) }
	kind := list.GetObjectKind().GroupVersionKind()
	u, ok := list.(*unstructured.UnstructuredList)
	if !ok || kind.Group != runtimev1.GroupVersion.Group {
		return read()
	}
	return once(s, sharedKey{kind: kind, what: "list"}, u, read, func() bool { return true })
}

// forget makes all objects be read again.
func (s *shared) forget() {
	s.mu.Lock()
	defer s.mu.Unlock()
	clear(s.objects)
}

// once sets value to what was read before, or reads it, and keeps it if keep says so.
func once[T any](s *shared, key sharedKey, value *T, read func() error, keep func() bool) error {
	s.mu.Lock()
	known := s.objects[key]
	if known == nil {
		known = &sharedObject{}
		s.objects[key] = known
	}
	s.mu.Unlock()
	known.mu.Lock()
	defer known.mu.Unlock()
	if found, ok := known.value.(T); ok && s.clock.Now().Before(known.until) {
		*value = found
		return nil
	}
	err := read()
	if err == nil && keep() {
		known.value, known.until = *value, s.clock.Now().Add(sharedFor)
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.objects[key] == known {
		delete(s.objects, key)
	}
	return err
}

// mayBeShared reports whether objects of a kind may belong to several Clusters.
func mayBeShared(kind schema.GroupVersionKind) bool {
	switch kind.GroupKind() {
	case clusterv1.GroupVersion.WithKind(classKind).GroupKind(), runtimev1.GroupVersion.WithKind(extensionKind).GroupKind():
		return true
	}
	return strings.HasSuffix(kind.Kind, clusterv1.TemplateSuffix)
}

// isShared reports whether an object, of a kind that may be, does not belong to a single Cluster.
func isShared(u *unstructured.Unstructured) bool {
	_, owned := u.GetLabels()[clusterv1.ClusterNameLabel]
	return !owned
}

// listExtensions lists ExtensionConfigs before one of them is read: the list is needed anyway, and is shared.
func (w *World) listExtensions(ctx context.Context, kind schema.GroupVersionKind) error {
	if !w.metadataApart || kind.GroupKind() != runtimev1.GroupVersion.WithKind(extensionKind).GroupKind() {
		return nil
	}
	return w.readList(ctx, kind, client.ListOptions{})
}

// apart reads the metadata of a CustomResourceDefinition, which is small, instead of the whole. It reports whether it has read it.
func (w *World) apart(ctx context.Context, key client.ObjectKey, obj client.Object) (bool, error) {
	out, ok := obj.(*metav1.PartialObjectMetadata)
	if !ok || !w.metadataApart {
		return false, nil
	}
	kind, err := apiutil.GVKForObject(obj, w.scheme)
	if err != nil || kind.GroupKind() != apiextensionsv1.Kind(definitionKind) || w.objects[newIdentity(kind, key)] != nil {
		return false, err
	}
	err = w.live.Get(ctx, key, out)
	w.note(err)
	return true, err
}
