package ssa

import (
	"context"
	"fmt"
	"sync"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	runtimeschema "k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"sigs.k8s.io/cluster-api/sdk/contract"
)

// definitionSource reads CustomResourceDefinitions.
type definitionSource interface {
	// Revision returns the UID and generation of a definition. It is called before every comparison, so it must be cheap.
	Revision(ctx context.Context, name string) (types.UID, int64, error)
	// Get returns the whole definition. It is called once per kind and generation.
	Get(ctx context.Context, name string) (*apiextensionsv1.CustomResourceDefinition, error)
}

// Schemas are the schemas of kinds, each parsed once per generation of its CustomResourceDefinition. It is safe for
// concurrent use.
type Schemas struct {
	definitions definitionSource

	mu    sync.Mutex
	kinds map[runtimeschema.GroupVersionKind]*parsed
}

// parsed is the last schema of a kind. Its lock is held while the definition is read, so that several reconciles
// that need a new schema at once wait for the first one, and those of other kinds do not.
type parsed struct {
	mu         sync.Mutex
	uid        types.UID
	generation int64
	schema     *kindSchema
}

// NewSchemas returns the Schemas of an API server. metadata reads the metadata of CustomResourceDefinitions from a cache. live
// reads a whole one without a cache: together they are tens of megabytes, and each is needed once per generation.
func NewSchemas(metadata, live client.Reader) *Schemas {
	return newSchemas(definitionReader{metadata: metadata, live: live})
}

func newSchemas(definitions definitionSource) *Schemas {
	return &Schemas{definitions: definitions, kinds: map[runtimeschema.GroupVersionKind]*parsed{}}
}

// get returns the current schema of a kind.
func (s *Schemas) get(ctx context.Context, kind runtimeschema.GroupVersionKind) (*kindSchema, error) {
	name := contract.CRDName(kind.GroupKind())
	uid, generation, err := s.definitions.Revision(ctx, name)
	if err != nil {
		return nil, fmt.Errorf("finding the schema of %s: CustomResourceDefinition %s: %w", kind, name, err)
	}
	p := s.entry(kind)
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.schema != nil && p.uid == uid && p.generation == generation {
		return p.schema, nil
	}
	crd, err := s.definitions.Get(ctx, name)
	if err != nil {
		return nil, fmt.Errorf("reading the schema of %s: CustomResourceDefinition %s: %w", kind, name, err)
	}
	parsed, err := newKindSchema(crd, kind.Version)
	if err != nil {
		return nil, err
	}
	// The definition may be newer than the revision: then the next call reads it again, and
	// no schema is older than the definition in the cache.
	p.uid, p.generation, p.schema = crd.UID, crd.Generation, parsed
	return p.schema, nil
}

func (s *Schemas) entry(kind runtimeschema.GroupVersionKind) *parsed {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.kinds[kind] == nil {
		s.kinds[kind] = &parsed{}
	}
	return s.kinds[kind]
}

// definitionReader reads CustomResourceDefinitions from an API server.
type definitionReader struct{ metadata, live client.Reader }

// Revision implements definitionSource.
func (r definitionReader) Revision(ctx context.Context, name string) (types.UID, int64, error) {
	crd := &metav1.PartialObjectMetadata{}
	crd.SetGroupVersionKind(apiextensionsv1.SchemeGroupVersion.WithKind("CustomResourceDefinition"))
	if err := r.metadata.Get(ctx, client.ObjectKey{Name: name}, crd); err != nil {
		return "", 0, err
	}
	return crd.UID, crd.Generation, nil
}

// Get implements definitionSource.
func (r definitionReader) Get(ctx context.Context, name string) (*apiextensionsv1.CustomResourceDefinition, error) {
	crd := &apiextensionsv1.CustomResourceDefinition{}
	if err := r.live.Get(ctx, client.ObjectKey{Name: name}, crd); err != nil {
		return nil, err
	}
	return crd, nil
}
