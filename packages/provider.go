package packages

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/blang/semver/v4"
	"k8s.io/apimachinery/pkg/util/validation"

	clusterctlv1 "sigs.k8s.io/cluster-api/api/clusterctl/v1alpha3"
)

// ManagerContainer is the name of the container that runs a provider's controllers.
const ManagerContainer = "manager"

// Kubeadm is the name of the default bootstrap and control plane providers.
const Kubeadm = "kubeadm"

// Types returns all types, in install order.
func Types() []clusterctlv1.ProviderType {
	return []clusterctlv1.ProviderType{
		clusterctlv1.CoreProviderType, clusterctlv1.BootstrapProviderType, clusterctlv1.ControlPlaneProviderType,
		clusterctlv1.InfrastructureProviderType, clusterctlv1.IPAMProviderType, clusterctlv1.RuntimeExtensionProviderType,
		clusterctlv1.AddonProviderType,
	}
}

// Word returns a type in lower case words joined by dashes ("control-plane"): the name of the command line flag that
// takes providers of this type and the prefix of their components files.
func Word(t clusterctlv1.ProviderType) string {
	if t == clusterctlv1.CoreProviderType {
		return "core"
	}
	return strings.TrimSuffix(clusterctlv1.ManifestLabel("", t), "-")
}

// Provider is a provider and the URL of its releases.
type Provider struct {
	// Name is a DNS-1123 subdomain, unique within the type.
	Name string
	// Type is one of Types.
	Type clusterctlv1.ProviderType
	// URL is the URL of a components file; see package repository for the supported forms.
	URL string
}

// ManifestLabel returns the unique name of a provider: its name for the core provider, the type's word and the name
// joined by a dash for all others. It is the value of ProviderLabel, the name of the inventory object, and the folder in
// local repositories and overrides.
func (p Provider) ManifestLabel() string {
	return clusterctlv1.ManifestLabel(p.Name, p.Type)
}

// Validate validates the provider's name and type. Package repository validates the URL.
func (p Provider) Validate() error {
	if p.Name == "" {
		return fmt.Errorf("name is empty: set the provider's name")
	}
	if msgs := validation.IsDNS1123Subdomain(p.Name); len(msgs) > 0 {
		return fmt.Errorf("invalid name %q: %s", p.Name, strings.Join(msgs, "; "))
	}
	if !slices.Contains(Types(), p.Type) {
		return fmt.Errorf("unknown type %q of provider %q: use one of %s", p.Type, p.Name, joinTypes())
	}
	if (p.Name == clusterctlv1.ClusterAPIProviderName) != (p.Type == clusterctlv1.CoreProviderType) {
		return fmt.Errorf("name %q and type %q do not match: the name %s is reserved for the %s",
			p.Name, p.Type, clusterctlv1.ClusterAPIProviderName, clusterctlv1.CoreProviderType)
	}
	return nil
}

// Sort orders providers by type (install order), then by name.
func Sort(list []Provider) {
	slices.SortStableFunc(list, func(a, b Provider) int {
		return cmp.Or(cmp.Compare(a.Type.Order(), b.Type.Order()), cmp.Compare(a.Name, b.Name))
	})
}

// Find returns the provider of the given type and name. The error for an unknown one suggests similar names and where
// providers are configured.
func Find(list []Provider, t clusterctlv1.ProviderType, name string) (Provider, error) {
	for _, p := range list {
		if p.Type == t && p.Name == name {
			return p, nil
		}
	}
	hint := "add it under the key providers of the configuration file, or see `clusterctl config repositories` for the known ones"
	for _, p := range list {
		if p.Name == name {
			hint = fmt.Sprintf("%q is known as %s: use --%s %s", name, p.Type, Word(p.Type), name)
			break
		}
	}
	if near := nearest(list, t, name); near != "" {
		hint = fmt.Sprintf("did you mean %q? Otherwise %s", near, hint)
	}
	return Provider{}, fmt.Errorf("unknown %s %q: %s", t, name, hint)
}

// Ref is a reference to a provider: a name and, optionally, a version.
type Ref struct {
	Name string
	// Version has the form v1.2.3; empty means the repository's default.
	Version string
}

// String returns the form that ParseRef accepts.
func (r Ref) String() string {
	if r.Version == "" {
		return r.Name
	}
	return r.Name + ":" + r.Version
}

// ParseRef reads the form name[:version].
func ParseRef(s string) (Ref, error) {
	name, version, versioned := strings.Cut(s, ":")
	name = strings.ToLower(strings.TrimSpace(name))
	if msgs := validation.IsDNS1123Subdomain(name); len(msgs) > 0 {
		return Ref{}, fmt.Errorf("provider %q: %q is not a provider name; use name or name:version, for example aws or aws:v2.4.0", s, name)
	}
	if !versioned {
		return Ref{Name: name}, nil
	}
	if _, err := ParseVersion(version); err != nil {
		return Ref{}, fmt.Errorf("provider %q: %w", s, err)
	}
	return Ref{Name: name, Version: version}, nil
}

// ParseVersion reads a semantic version with an optional leading v.
func ParseVersion(s string) (semver.Version, error) {
	v, err := semver.Parse(strings.TrimPrefix(s, "v"))
	if err != nil {
		return semver.Version{}, fmt.Errorf("version %q is not a semantic version, for example v1.7.0", s)
	}
	return v, nil
}

func joinTypes() string {
	words := make([]string, 0, len(Types()))
	for _, t := range Types() {
		words = append(words, string(t))
	}
	return strings.Join(words, ", ")
}

// nearest returns the name of the given type with the smallest edit distance to name, or "" if that is more than a third
// of its length.
func nearest(list []Provider, t clusterctlv1.ProviderType, name string) string {
	best, bestDistance := "", len(name)/3+1
	for _, p := range list {
		if p.Type != t {
			continue
		}
		if d := editDistance(p.Name, name); d < bestDistance || (d == bestDistance && best == "") {
			best, bestDistance = p.Name, d
		}
	}
	return best
}

// editDistance is the number of inserted, removed and replaced bytes that turn a into b.
func editDistance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			cost := 1
			if a[i] == b[j] {
				cost = 0
			}
			diagonal, row[j+1] = row[j+1], min(row[j+1]+1, row[j]+1, diagonal+cost)
		}
	}
	return row[len(b)]
}
