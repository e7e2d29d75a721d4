package apiversion

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
)

const (
	// refreshInterval is how long kinds are not looked up again: when an API server restarts, the watches of all kinds end at once.
	refreshInterval = time.Second
	// absentInterval is how long a kind or version counts as not served: several kinds are looked up one after another, and then, while a
	// manager waits for its definitions, again after a tenth of a second.
	absentInterval = 50 * time.Millisecond
)

// resources returns the resources that an API server serves in a version; none if it does not serve the version.
type resources interface {
	list(ctx context.Context, version schema.GroupVersion) ([]metav1.APIResource, error)
}

// served reads resources from the API server.
type served struct{ client rest.Interface }

func (s served) list(ctx context.Context, version schema.GroupVersion) ([]metav1.APIResource, error) {
	list := &metav1.APIResourceList{}
	err := s.client.Get().AbsPath("/apis", version.Group, version.Version).Do(ctx).Into(list)
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	return list.APIResources, err
}

// storedVersions are the stored versions of kinds.
type storedVersions struct {
	resources resources
	versions  func(schema.GroupKind) []string
	clock     clock.PassiveClock

	mu    sync.RWMutex
	known map[schema.GroupKind]string

	// looking serializes requests, so that concurrent first uses of the kinds of a group send one.
	looking sync.Mutex
	lists   map[schema.GroupVersion]lookup
}

// lookup is the response to a request.
type lookup struct {
	resources []metav1.APIResource
	at        time.Time
}

func newStoredVersions(r resources, versions func(schema.GroupKind) []string, c clock.PassiveClock) *storedVersions {
	return &storedVersions{
		resources: r, versions: versions, clock: c,
		known: map[schema.GroupKind]string{}, lists: map[schema.GroupVersion]lookup{},
	}
}

// get returns the stored version of a kind.
func (s *storedVersions) get(ctx context.Context, kind schema.GroupKind) (string, error) {
	s.mu.RLock()
	version, ok := s.known[kind]
	s.mu.RUnlock()
	if ok {
		return version, nil
	}
	s.looking.Lock()
	defer s.looking.Unlock()
	return s.lookUp(ctx, kind)
}

// refresh looks up a kind again. If that fails, the version stays as it was.
func (s *storedVersions) refresh(ctx context.Context, kind schema.GroupKind) error {
	s.looking.Lock()
	defer s.looking.Unlock()
	expired := s.clock.Now().Add(-refreshInterval)
	maps.DeleteFunc(s.lists, func(v schema.GroupVersion, l lookup) bool { return v.Group == kind.Group && l.at.Before(expired) })
	_, err := s.lookUp(ctx, kind)
	return err
}

// lookUp finds and remembers the stored version of a kind.
func (s *storedVersions) lookUp(ctx context.Context, kind schema.GroupKind) (string, error) {
	versions := s.versions(kind)
	first := ""
	for _, version := range versions {
		resource, err := s.resource(ctx, kind.WithVersion(version))
		if err != nil {
			return "", err
		}
		if resource == nil {
			continue
		}
		if first == "" {
			first = version
		}
		i := slices.IndexFunc(versions, func(v string) bool { return resource.StorageVersionHash == hash(kind.WithVersion(v)) })
		if i >= 0 {
			first = versions[i]
			break
		}
	}
	if first == "" {
		return "", &meta.NoKindMatchError{GroupKind: kind, SearchedVersions: versions}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.known[kind] = first
	return first, nil
}

// resource returns the resource of a kind; nil if it is not served.
func (s *storedVersions) resource(ctx context.Context, kind schema.GroupVersionKind) (*metav1.APIResource, error) {
	found, ok := s.lists[kind.GroupVersion()]
	if !ok || !slices.ContainsFunc(found.resources, isOf(kind)) && s.clock.Since(found.at) >= absentInterval {
		list, err := s.resources.list(ctx, kind.GroupVersion())
		if err != nil {
			return nil, err
		}
		found = lookup{resources: list, at: s.clock.Now()}
		s.lists[kind.GroupVersion()] = found
	}
	i := slices.IndexFunc(found.resources, isOf(kind))
	if i < 0 {
		return nil, nil
	}
	return &found.resources[i], nil
}

// isOf returns whether a resource is that of a kind, and not a subresource.
func isOf(kind schema.GroupVersionKind) func(metav1.APIResource) bool {
	return func(r metav1.APIResource) bool { return r.Kind == kind.Kind && !strings.Contains(r.Name, "/") }
}

// hash returns what the storageVersionHash of a resource is if a version is stored.
func hash(kind schema.GroupVersionKind) string {
	sum := sha256.Sum256([]byte(kind.Group + "/" + kind.Version + "/" + kind.Kind))
	return base64.StdEncoding.EncodeToString(sum[:8])
}
