package conformance

import (
	"fmt"
	"slices"

	clusterctlv1 "sigs.k8s.io/cluster-api/api/clusterctl/v1alpha3"
	"sigs.k8s.io/cluster-api/packages"
	"sigs.k8s.io/cluster-api/packages/repository"
	"sigs.k8s.io/cluster-api/sdk/contract"
)

// metadata checks metadata.yaml.
func (c *checker) metadata() error {
	const file = repository.MetadataFile
	raw, err := c.read(file)
	if err != nil {
		return err
	}
	if raw == nil {
		c.add(Error, "", 0, chapterRepository, "%s is missing: it maps release series to contracts", file)
		return nil
	}
	m, err := repository.ParseMetadata(raw)
	if err != nil {
		c.add(Error, file, 0, chapterMetadata, "not valid: %v", err)
		return nil
	}
	if m.APIVersion == "" || m.Kind == "" {
		c.add(Warning, file, 1, chapterMetadata, "apiVersion and kind are %q and %q: they should be %s and %s",
			m.APIVersion, m.Kind, clusterctlv1.GroupVersion, clusterctlv1.MetadataKind)
	}
	seen := map[string]bool{}
	for _, s := range m.ReleaseSeries {
		name := fmt.Sprintf("%d.%d", s.Major, s.Minor)
		if seen[name] {
			c.add(Error, file, 0, chapterMetadata, "release series %s is listed twice", name)
		}
		seen[name] = true
	}
	v, err := packages.ParseVersion(c.Version)
	if err != nil {
		return err
	}
	switch series := m.GetReleaseSeriesForVersion(v.Major, v.Minor); {
	case series == nil:
		c.add(Error, file, 0, chapterMetadata, "releaseSeries has no entry for version %s: add major %d, minor %d with its contract",
			c.Version, v.Major, v.Minor)
	case !slices.Contains(contracts(), contract.Version(series.Contract)):
		c.add(Error, file, 0, chapterMetadata, "release series %d.%d has contract %q: it must be %s or %s",
			v.Major, v.Minor, series.Contract, contract.V1Beta1, contract.V1Beta2)
	default:
		c.series = contract.Version(series.Contract)
	}
	return nil
}
