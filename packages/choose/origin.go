package choose

import (
	"fmt"
	"slices"
	"strings"

	"sigs.k8s.io/cluster-api/packages"
	"sigs.k8s.io/cluster-api/packages/components"
	"sigs.k8s.io/cluster-api/sdk/version"
)

// firstMajor is the major version of this project's first release. What its default URLs have below that is Cluster API v1.
const firstMajor = 2

// origin returns a warning if the newest releases at the default URLs of this project's providers are not of this project.
// Versions that users chose are theirs to know.
func origin(install []*components.Components, items []Item) error {
	var others []string
	for _, c := range install {
		chosen := slices.ContainsFunc(items, func(i Item) bool { return i.Label() == c.Provider.ManifestLabel() && i.Ref.Version != "" })
		if chosen || !strings.HasPrefix(c.Provider.URL, version.Releases()+"/") || !slices.Contains(packages.Defaults(), c.Provider) {
			continue
		}
		if v, err := packages.ParseVersion(c.Version); err == nil && v.Major < firstMajor {
			others = append(others, c.Provider.ManifestLabel()+" "+c.Version)
		}
	}
	if len(others) == 0 {
		return nil
	}
	return fmt.Errorf("%s: Cluster API v1 is installed, because %s has no newer release; for the providers of this clusterctl, "+
		"set their url in its configuration, or use the clusterctl that `make quickstart` builds in a checkout",
		strings.Join(others, ", "), version.Releases())
}
