package operator

import (
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"

	clusterctlv1 "sigs.k8s.io/cluster-api/api/clusterctl/v1alpha3"
	"sigs.k8s.io/cluster-api/packages"
	"sigs.k8s.io/cluster-api/packages/choose"
)

// Form is how References are written, for help texts.
const Form = "name, name:version, name:namespace or name:namespace:version"

// Reference is a requested provider.
type Reference struct {
	packages.Ref
	Type clusterctlv1.ProviderType
	// Namespace is empty for the default.
	Namespace string
}

// Label returns the provider's manifest label.
func (r Reference) Label() string { return clusterctlv1.ManifestLabel(r.Name, r.Type) }

// flag returns the flag that selects the provider.
func (r Reference) flag() string { return "--" + packages.Word(r.Type) }

// References returns the unique providers of a selection, in install order, with the defaults of a first run.
func References(s choose.Selection, firstRun bool) ([]Reference, error) {
	var list []Reference
	seen := map[string]Reference{}
	err := s.Each(firstRun, func(t clusterctlv1.ProviderType, text string) error {
		r, err := parse(t, text)
		if err != nil {
			return err
		}
		other, twice := seen[r.Label()]
		switch {
		case !twice:
			seen[r.Label()] = r
			list = append(list, r)
		case other != r:
			return fmt.Errorf("%s is specified twice: a management cluster can have one of each provider", r.Name)
		}
		return nil
	})
	return list, err
}

// parse reads the form name[:namespace[:version]], or name:version: no version is a namespace.
func parse(t clusterctlv1.ProviderType, text string) (Reference, error) {
	name, rest, _ := strings.Cut(text, ":")
	namespace, version, versioned := strings.Cut(rest, ":")
	if _, err := packages.ParseVersion(namespace); err == nil && !versioned {
		namespace, version, versioned = "", namespace, true
	}
	if versioned {
		name += ":" + version
	}
	ref, err := packages.ParseRef(name)
	if err != nil {
		return Reference{}, fmt.Errorf("provider %q must have the form %s: %w", text, Form, err)
	}
	if msgs := validation.IsDNS1123Label(namespace); namespace != "" && len(msgs) > 0 {
		return Reference{}, fmt.Errorf("provider %q: %q is neither a namespace nor a version", text, namespace)
	}
	return Reference{Ref: ref, Type: t, Namespace: namespace}, nil
}
