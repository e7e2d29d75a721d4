package ssa

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/lru"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/structured-merge-diff/v6/typed"

	"sigs.k8s.io/cluster-api/sdk/apiversion"
	"sigs.k8s.io/cluster-api/sdk/ownership"
)

// remembered is the number of objects whose last request an Applier remembers, some hundred bytes for each.
const remembered = 8192

// applyClient is the part of a client.Client that an Applier needs.
type applyClient interface {
	Apply(ctx context.Context, obj runtime.ApplyConfiguration, opts ...client.ApplyOption) error
	Patch(ctx context.Context, obj client.Object, patch client.Patch, opts ...client.PatchOption) error
}

// versions converts objects to the versions that are stored, as an apiversion.Boundary does.
type versions interface {
	StoredKind(ctx context.Context, kind schema.GroupVersionKind) (schema.GroupVersionKind, error)
	Applied(ctx context.Context, obj *unstructured.Unstructured) (*unstructured.Unstructured, error)
	In(ctx context.Context, version string, obj *unstructured.Unstructured) (*unstructured.Unstructured, error)
}

// Applier applies objects as one field manager. It is safe for concurrent use.
type Applier struct {
	client   applyClient
	schemas  *Schemas
	versions versions
	manager  string
	// outcomes are the last requests of objects by UID. They only save requests.
	outcomes *lru.Cache
	// noops are the last comparisons without a difference of objects by UID. They only save comparisons.
	noops *lru.Cache
	// answers are the last dry runs of objects by UID. They only save requests.
	answers *lru.Cache
}

// NewApplier returns an Applier for a field manager. If the client is one of an apiversion.Boundary, objects are compared and applied in
// the versions that are stored, which are those of managedFields.
func NewApplier(c applyClient, schemas *Schemas, manager string) *Applier {
	return &Applier{
		client: c, schemas: schemas, versions: apiversion.BoundaryOf(c), manager: manager,
		outcomes: lru.New(remembered), noops: lru.New(remembered), answers: lru.New(remembered),
	}
}

// Plan returns what Apply would change.
func (a *Applier) Plan(ctx context.Context, live, desired *unstructured.Unstructured, opts ...Option) (Diff, error) {
	s, err := a.schema(ctx, desired)
	if err != nil {
		return Diff{}, err
	}
	v, noop, err := a.judge(s, live, desired, opts)
	if noop || err != nil {
		return Diff{}, err
	}
	c, err := a.compare(ctx, s, live, desired, opts)
	if err != nil {
		return Diff{}, err
	}
	diff, err := c.plan()
	if err == nil && !diff.Changed() {
		a.rememberNoop(live, v)
	}
	return diff, err
}

// Apply applies desired with force: its fields get the values of desired, even those that other managers own, and fields that the
// manager applied earlier and that are not in desired are removed. live is the object as it was read, nil if it does not
// exist. If nothing would change, no request is sent.
//
// The result is the object afterwards, live itself if nothing was sent; changed reports whether it differs from live.
// desired and live are not modified. If live was deleted or replaced in the meantime, it is not created
// again; that is an error. If live is nil but the object exists, it is adopted, so that creating an object with a
// derived name twice results in one object. An apply that empties maps or lists takes three requests, the first
// of which changes the whole content.
func (a *Applier) Apply(
	ctx context.Context, live, desired *unstructured.Unstructured, opts ...Option,
) (result *unstructured.Unstructured, changed bool, err error) {
	p, err := a.prepare(ctx, live, desired, opts)
	if p == nil || err != nil {
		return live, false, err
	}
	if err := a.empty(ctx, p.comparison); err != nil {
		return nil, false, fmt.Errorf("applying %s %s/%s: %w", desired.GetKind(), desired.GetNamespace(), desired.GetName(), err)
	}
	result = p.request()
	if err := a.client.Apply(ctx, client.ApplyConfigurationFromUnstructured(result), client.FieldOwner(a.manager),
		client.ForceOwnership); err != nil {
		return nil, false, fmt.Errorf("applying %s %s/%s: %w", desired.GetKind(), desired.GetNamespace(), desired.GetName(), err)
	}
	if err := a.disown(ctx, result); err != nil {
		return nil, false, fmt.Errorf("applying %s %s/%s: %w", desired.GetKind(), desired.GetNamespace(), desired.GetName(), err)
	}
	changed = live == nil || result.GetResourceVersion() != live.GetResourceVersion()
	if live != nil {
		if err := a.remember(p.comparison, p.asked, result); err != nil {
			return nil, false, err
		}
	}
	result, err = a.versions.In(ctx, desired.GroupVersionKind().Version, result)
	return result, changed, err
}

// schema returns the schema of an object in the version that is stored.
func (a *Applier) schema(ctx context.Context, desired *unstructured.Unstructured) (*kindSchema, error) {
	stored, err := a.versions.StoredKind(ctx, desired.GroupVersionKind())
	if err != nil {
		return nil, err
	}
	return a.schemas.get(ctx, stored)
}

// compare compares two objects in the version of a schema.
func (a *Applier) compare(
	ctx context.Context, s *kindSchema, live, desired *unstructured.Unstructured, opts []Option,
) (*comparison, error) {
	config, err := a.versions.Applied(ctx, desired)
	if err == nil && live != nil {
		live, err = a.versions.In(ctx, s.kind.Version, live)
	}
	if err != nil {
		return nil, err
	}
	if live != nil {
		if owners, changed := ownership.KeepVersions(config.GetOwnerReferences(), live.GetOwnerReferences()); changed {
			config = config.DeepCopy()
			config.SetOwnerReferences(owners)
		}
	}
	return newComparison(s, live, config, a.manager, opts)
}

// Pending reports whether Apply would send a request. It sends none itself.
func (a *Applier) Pending(ctx context.Context, live, desired *unstructured.Unstructured, opts ...Option) (bool, error) {
	p, err := a.prepare(ctx, live, desired, opts)
	return p != nil, err
}

// pending is a request to send.
type pending struct {
	*comparison
	asked question // of an object that exists
}

// prepare returns nil if applying desired would change nothing, as far as is known.
func (a *Applier) prepare(ctx context.Context, live, desired *unstructured.Unstructured, opts []Option) (*pending, error) {
	s, err := a.schema(ctx, desired)
	if err != nil {
		return nil, err
	}
	v, noop, err := a.judge(s, live, desired, opts)
	if noop || err != nil {
		return nil, err
	}
	c, err := a.compare(ctx, s, live, desired, opts)
	if err != nil {
		return nil, err
	}
	p := &pending{comparison: c}
	if live == nil {
		return p, nil
	}
	// If the objects cannot be compared, the API server decides.
	if same, err := c.unchanged(); same && err == nil {
		a.rememberNoop(live, v)
		return nil, nil
	}
	if p.asked, err = c.question(); err != nil || a.known(live, p.asked) {
		return nil, err
	}
	return p, nil
}

// request returns the object to send: config, with the UID of live and, if exact, its resource version.
func (c *comparison) request() *unstructured.Unstructured {
	request := c.config.DeepCopy()
	if c.live != nil {
		request.SetUID(c.live.GetUID())
	}
	if c.exact {
		request.SetResourceVersion(c.live.GetResourceVersion())
	}
	return request
}

type digest [sha256.Size]byte

// question is what determines the result of an apply.
type question struct {
	config  digest // what is applied
	version string // the resourceVersion of what it is applied to
	content digest // of the relevant fields of what it is applied to
}

// outcome is a question and the object's content after it.
type outcome struct {
	question
	after digest
}

// known reports whether a request is superfluous: the result of the same request is not in the cache yet, or the
// same request changed nothing. That holds until another client changes a field that is applied here, so an object
// that a webhook modifies with each write costs one request for each such change.
func (a *Applier) known(live *unstructured.Unstructured, asked question) bool {
	value, ok := a.outcomes.Get(live.GetUID())
	if !ok {
		return false
	}
	last := value.(outcome)
	if last.config != asked.config {
		return false
	}
	//nolint:gocritic // Three are compared.
	return last.version == asked.version || (last.after == last.content && last.after == asked.content)
}

func (a *Applier) remember(c *comparison, asked question, result *unstructured.Unstructured) error {
	after, err := c.content(result)
	if err != nil {
		return err
	}
	a.outcomes.Add(result.GetUID(), outcome{question: asked, after: after})
	return nil
}

func (c *comparison) question() (question, error) {
	config, configErr := digestOf(c.config.Object)
	live, liveErr := c.content(c.live)
	return question{config: config, version: c.live.GetResourceVersion(), content: live}, errors.Join(configErr, liveErr)
}

// content returns the digest of the fields of u that the manager applies or applied, and of their set. Fields of others
// do not affect the result of an apply.
func (c *comparison) content(u *unstructured.Unstructured) (digest, error) {
	var applied []map[string]any
	fields := c.owned
	for _, e := range entries(u) {
		if !e.isApply(c.manager) {
			continue
		}
		set, err := e.set()
		if err != nil {
			return digest{}, err
		}
		fields, applied = fields.Union(set), append(applied, e.fields)
	}
	value, err := c.schema.mergeable.FromUnstructured(compared(c.schema, u), typed.AllowDuplicates)
	if err != nil {
		whole := compared(c.schema, u)
		if metadata, ok := whole["metadata"].(map[string]any); ok {
			delete(metadata, "resourceVersion")
			delete(metadata, "generation")
		}
		return digestOf(whole)
	}
	return digestOf([]any{value.ExtractItems(fields.Leaves(), typed.WithAppendKeyFields()).AsValue().Unstructured(), applied})
}

func digestOf(value any) (digest, error) {
	encoded, err := json.Marshal(value)
	if err != nil {
		return digest{}, fmt.Errorf("encoding an object: %w", err)
	}
	return sha256.Sum256(encoded), nil
}
