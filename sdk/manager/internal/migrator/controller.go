package migrator

import (
	"context"
	"strconv"
	"sync"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"sigs.k8s.io/cluster-api/sdk/migration"
	"sigs.k8s.io/cluster-api/sdk/step"
)

// Mark is the annotation of a definition with the generation that was migrated.
const Mark = "crd-migration.cluster.x-k8s.io/observed-generation"

// name is the name of the controller.
const name = "crdmigrator"

// Options configure the controller. All but Skip are required.
type Options struct {
	// Definitions selects the CustomResourceDefinitions.
	Definitions labels.Selector
	// Skip are the phases that are skipped. SkipAll must be false.
	Skip Phases
	// Stores returns the version in which the API server stores new objects of a kind.
	Stores func(ctx context.Context, d migration.Definition) (string, error)
}

// Controller migrates the objects of CustomResourceDefinitions.
type Controller struct {
	step.Clients
	Options

	// progress is by UID of definitions. Only reconciles use it, one after the other.
	progress map[types.UID]*progress

	mu sync.Mutex
	// looked has the generations for which nothing is due but phases that are skipped, by UID of definitions.
	looked map[types.UID]int64
	// forbidden is whether definitions may not be marked.
	forbidden bool
}

// progress is what is remembered of the migration of a definition. Losing it costs requests.
type progress struct {
	// of is what is migrated: everything else is of another migration if it changes.
	of string
	// began is when the migration was first due.
	began   time.Time
	visited migration.Visited
	// pause is how long to wait after the last pass in which objects could not be saved.
	pause time.Duration
	// warned is the last event.
	warned string
}

// Setup adds the controller to a manager. Objects are migrated whatever --watch-filter is: definitions have no label for it.
func Setup(ctx context.Context, mgr ctrl.Manager, o Options) error {
	c := &Controller{Clients: step.ClientsOf(mgr, name, ""), Options: o}
	return step.Add(ctx, mgr, c.Clients, c.declared())
}

// declared declares the controller.
func (c *Controller) declared() step.Controller[*metav1.PartialObjectMetadata, *scope] {
	return step.Controller[*metav1.PartialObjectMetadata, *scope]{
		Name:        name,
		New:         NewDefinition,
		Selects:     c.selects,
		Concurrency: 1,
		Scope: func(_ context.Context, definition *metav1.PartialObjectMetadata) (*scope, error) {
			return &scope{definition: definition}, nil
		},
		Steps: []step.Step[*scope]{
			step.Do("definition", c.read),
			step.Do("noticed", c.noticed),
			step.Do("objects", c.objects),
			step.Do("record", c.record),
			step.Do("mark", c.mark),
		},
	}
}

// NewDefinition returns the metadata of a definition: their schemas take megabytes.
func NewDefinition() *metav1.PartialObjectMetadata {
	o := &metav1.PartialObjectMetadata{}
	o.SetGroupVersionKind(apiextensionsv1.SchemeGroupVersion.WithKind("CustomResourceDefinition"))
	return o
}

// selects reports whether something may be due for a definition.
func (c *Controller) selects(definition *metav1.PartialObjectMetadata) bool {
	if !c.Definitions.Matches(labels.Set(definition.Labels)) || isMarked(definition) {
		return false
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	return !c.forbidden && c.looked[definition.UID] < definition.Generation
}

// isMarked reports whether the current generation of a definition was migrated.
func isMarked(definition client.Object) bool {
	return definition.GetAnnotations()[Mark] == strconv.FormatInt(definition.GetGeneration(), 10)
}

// known returns the progress of what is migrated of a definition.
func (c *Controller) known(uid types.UID, of string) *progress {
	if p := c.progress[uid]; p != nil && p.of == of {
		return p
	}
	if c.progress == nil {
		c.progress = map[types.UID]*progress{}
	}
	c.progress[uid] = &progress{of: of, began: c.Clock.Now()}
	return c.progress[uid]
}

// scope is one reconcile of a definition.
type scope struct {
	// definition is the reconciled object.
	definition *metav1.PartialObjectMetadata
	// live is the definition in the API server. It and what follows are results of the step definition.
	live *unstructured.Unstructured
	migration.Definition
	// stores and cleans are whether the phases StorageVersionMigration and CleanupManagedFields are due. skipped is whether one that is
	// skipped may be.
	stores, cleans, skipped bool
	*progress
}
