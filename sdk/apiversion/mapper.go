package apiversion

import (
	"context"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Mapper returns a mapper that also maps the versions of the Registry that are not served, if another one is.
func (b *Boundary) Mapper(m meta.RESTMapper) meta.RESTMapper {
	return mapper{RESTMapper: m, boundary: b}
}

type mapper struct {
	meta.RESTMapper
	boundary *Boundary
}

// RESTMapping implements meta.RESTMapper.
func (m mapper) RESTMapping(kind schema.GroupKind, versions ...string) (*meta.RESTMapping, error) {
	item := schema.GroupKind{Group: kind.Group, Kind: strings.TrimSuffix(kind.Kind, "List")} // Mappers know lists, too.
	if len(versions) != 1 || !slices.Contains(m.boundary.registry.Versions(item), versions[0]) {
		return m.RESTMapper.RESTMapping(kind, versions...)
	}
	stored, err := m.boundary.Stored(context.Background(), item)
	if err != nil {
		return nil, err
	}
	mapping, err := m.RESTMapper.RESTMapping(kind, stored)
	if err != nil || stored == versions[0] {
		return mapping, err
	}
	other := *mapping
	other.GroupVersionKind.Version, other.Resource.Version = versions[0], versions[0]
	return &other, nil
}
