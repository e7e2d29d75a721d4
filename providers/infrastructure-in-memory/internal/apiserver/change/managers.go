package change

import (
	"fmt"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/managedfields"
	"k8s.io/client-go/applyconfigurations"
	"k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
)

// Managers track field ownership, and merge applied configurations. They are created when a kind is first written; all
// clusters share their schemas.
type Managers struct {
	converter func() managedfields.TypeConverter

	mu     sync.Mutex
	byKind map[applierKey]*managedfields.FieldManager
}

// Kind is a kind, and whether it has the subresource status.
type Kind struct {
	schema.GroupVersionKind
	Status bool
}

type applierKey struct {
	gvk         schema.GroupVersionKind
	subresource string
}

// NewManagers returns Managers of all kinds.
func NewManagers() *Managers {
	return &Managers{
		converter: sync.OnceValue(func() managedfields.TypeConverter { return applyconfigurations.NewTypeConverter(scheme.Scheme) }),
		byKind:    map[applierKey]*managedfields.FieldManager{},
	}
}

func (m *Managers) of(kind Kind, subresource string) (*managedfields.FieldManager, error) {
	key := applierKey{kind.GroupVersionKind, subresource}
	m.mu.Lock()
	defer m.mu.Unlock()
	if found := m.byKind[key]; found != nil {
		return found, nil
	}
	manager, err := managedfields.NewDefaultCRDFieldManager(m.converter(), sameVersion{}, sameVersion{}, sameVersion{},
		kind.GroupVersionKind, kind.GroupVersionKind.GroupVersion(), subresource, ignoredFields(kind, subresource))
	if err != nil {
		return nil, apierrors.NewInternalError(fmt.Errorf("field manager of %s: %w", kind.GroupVersionKind, err))
	}
	m.byKind[key] = manager
	return manager, nil
}

// ignoredFields are fields that requests cannot change, and therefore never own.
func ignoredFields(kind Kind, subresource string) map[fieldpath.APIVersion]fieldpath.Filter {
	ignored := fieldpath.NewSet(fieldpath.MakePathOrDie("status"))
	switch {
	case subresource == "status":
		ignored = fieldpath.NewSet(fieldpath.MakePathOrDie("spec"))
	case !kind.Status:
		return nil
	}
	return map[fieldpath.APIVersion]fieldpath.Filter{
		fieldpath.APIVersion(kind.GroupVersionKind.GroupVersion().String()): fieldpath.NewExcludeSetFilter(ignored),
	}
}

// Track records the manager of the fields that differ between the live object, nil for a new one, and the new version,
// and returns the new version.
func (m *Managers) Track(kind Kind, subresource string, live, next *unstructured.Unstructured, manager string) *unstructured.Unstructured {
	applier, err := m.of(kind, subresource)
	if err != nil {
		return next
	}
	if live == nil {
		live = empty(kind.GroupVersionKind)
	}
	tracked, ok := applier.UpdateNoErrors(live, next, manager).(*unstructured.Unstructured)
	if !ok {
		return next
	}
	return tracked
}

// Apply merges an applied configuration into the live object, nil for none.
func (m *Managers) Apply(
	kind Kind, subresource string, live, wanted *unstructured.Unstructured, manager string, force bool,
) (*unstructured.Unstructured, error) {
	applier, err := m.of(kind, subresource)
	if err != nil {
		return nil, err
	}
	if live == nil {
		live = empty(kind.GroupVersionKind)
	}
	merged, err := applier.Apply(live, wanted.DeepCopy(), manager, force)
	if err != nil {
		return nil, err
	}
	u, ok := merged.(*unstructured.Unstructured)
	if !ok {
		return nil, apierrors.NewInternalError(fmt.Errorf("server-side apply made a %T", merged))
	}
	return u, nil
}

func empty(gvk schema.GroupVersionKind) *unstructured.Unstructured {
	u := &unstructured.Unstructured{Object: map[string]any{}}
	u.SetGroupVersionKind(gvk)
	return u
}

// sameVersion implements conversion, defaulting and creation for kinds with a single version.
type sameVersion struct{}

// Convert implements runtime.ObjectConvertor.
func (sameVersion) Convert(in, _, _ any) error {
	return fmt.Errorf("convert %T: there is only one version", in)
}

// ConvertToVersion implements runtime.ObjectConvertor.
func (sameVersion) ConvertToVersion(in runtime.Object, _ runtime.GroupVersioner) (runtime.Object, error) {
	return in, nil
}

// ConvertFieldLabel implements runtime.ObjectConvertor.
func (sameVersion) ConvertFieldLabel(_ schema.GroupVersionKind, label, value string) (string, string, error) {
	return label, value, nil
}

// Default implements runtime.ObjectDefaulter.
func (sameVersion) Default(runtime.Object) {}

// New implements runtime.ObjectCreater.
func (sameVersion) New(gvk schema.GroupVersionKind) (runtime.Object, error) { return empty(gvk), nil }
