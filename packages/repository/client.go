package repository

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/blang/semver/v4"
	"sigs.k8s.io/yaml"

	clusterctlv1 "sigs.k8s.io/cluster-api/api/clusterctl/v1alpha3"
	"sigs.k8s.io/cluster-api/packages"
)

// maxMetadataProbes is how many of the latest versions are checked for metadata to find the latest one: tags appear
// before their files, and some never get files.
const maxMetadataProbes = 5

// Client reads a provider's repository. Files in the overrides folder take precedence over published ones.
type Client struct {
	// Provider is the provider whose repository this is.
	Provider packages.Provider
	// Advice is for messages.
	Advice Advice
	// Contracts are those that the default version may implement. Empty: all that this project supports.
	Contracts []string

	repo      Repository
	loc       location
	overrides string
}

// ComponentsFile returns the name of the file that holds the provider's manifests.
func (c *Client) ComponentsFile() string {
	return c.loc.file
}

// Folder returns the location of the repository for messages, ending in a slash.
func (c *Client) Folder() string {
	return c.loc.folder
}

// DefaultVersion returns the version in the URL; for "latest" the newest one with one of Contracts, a pre-release
// only if there is no other.
func (c *Client) DefaultVersion(ctx context.Context) (string, error) {
	if c.loc.version != Latest {
		return c.loc.version, nil
	}
	v, err := c.latest(ctx)
	if err != nil {
		return "", fmt.Errorf("cannot find the latest version of %s: %w", c.Provider.ManifestLabel(), err)
	}
	return v, nil
}

// Versions returns the published versions, newest first, pre-releases after all others.
func (c *Client) Versions(ctx context.Context) ([]string, error) {
	versions, err := c.repo.Versions(ctx)
	if err != nil {
		return nil, fmt.Errorf("cannot list the versions of %s: %w", c.Provider.ManifestLabel(), c.unreachable(err))
	}
	return sortVersions(versions), nil
}

// File returns a file of a version, from the overrides folder if it exists there. The error matches ErrNotFound if the
// file does not exist.
func (c *Client) File(ctx context.Context, version, name string) ([]byte, error) {
	if raw, err := Override(c.overrides, c.Provider.ManifestLabel(), version, name); raw != nil || err != nil {
		return raw, err
	}
	raw, err := c.repo.File(ctx, version, name)
	if err != nil {
		return nil, fmt.Errorf("cannot read %s of %s %s from %s: %w", name, c.Provider.ManifestLabel(), version, c.loc.folder, c.unreachable(err))
	}
	return raw, nil
}

// Overridden reports whether one of the files of a version is in the overrides folder.
func (c *Client) Overridden(version string, names ...string) (bool, error) {
	for _, name := range names {
		if raw, err := Override(c.overrides, c.Provider.ManifestLabel(), version, name); raw != nil || err != nil {
			return raw != nil, err
		}
	}
	return false, nil
}

// unreachable adds what to do if the repository cannot be reached.
func (c *Client) unreachable(err error) error {
	var unanswered *url.Error
	if !errors.As(err, &unanswered) || errors.Is(err, context.Canceled) {
		return err
	}
	return fmt.Errorf("%w: %s", err, c.Advice.orDefault().Unreachable)
}

// Files returns the sorted names of a version's files; the error matches errors.ErrUnsupported if this kind of repository
// cannot list files.
func (c *Client) Files(ctx context.Context, version string) ([]string, error) {
	names, err := c.repo.Files(ctx, version)
	if err != nil {
		return nil, fmt.Errorf("cannot list the files of %s %s: %w", c.Provider.ManifestLabel(), version, err)
	}
	slices.Sort(names)
	return names, nil
}

// Metadata returns a version's metadata.
func (c *Client) Metadata(ctx context.Context, version string) (*clusterctlv1.Metadata, error) {
	raw, err := c.File(ctx, version, MetadataFile)
	if err != nil {
		return nil, err
	}
	m, err := ParseMetadata(raw)
	if err != nil {
		return nil, fmt.Errorf("invalid %s of %s %s: %w", MetadataFile, c.Provider.ManifestLabel(), version, err)
	}
	return m, nil
}

// ParseMetadata reads a metadata.yaml. Many providers have published it without kind or apiVersion: only others than those of
// Metadata are an error.
func ParseMetadata(raw []byte) (*clusterctlv1.Metadata, error) {
	if err := packages.CheckYAML("not valid YAML", raw, packages.MaxMetadata); err != nil {
		return nil, err
	}
	m := &clusterctlv1.Metadata{}
	if err := yaml.Unmarshal(raw, m); err != nil {
		return nil, err
	}
	version, kind := clusterctlv1.GroupVersion.String(), clusterctlv1.MetadataKind
	if m.APIVersion != "" && m.APIVersion != version || m.Kind != "" && m.Kind != kind {
		return nil, fmt.Errorf("it has apiVersion %q and kind %q: it must have %s and %s", m.APIVersion, m.Kind, version, kind)
	}
	return m, nil
}

// Contract returns the contract of a version according to its metadata.
func (c *Client) Contract(ctx context.Context, version string) (string, error) {
	m, err := c.Metadata(ctx, version)
	if err != nil {
		return "", err
	}
	v, err := packages.ParseVersion(version)
	if err != nil {
		return "", err
	}
	if s := m.GetReleaseSeriesForVersion(v.Major, v.Minor); s != nil {
		return s.Contract, nil
	}
	advice := c.Advice.orDefault().Series
	if place := c.OverridePath(version, MetadataFile); place != "" && c.Advice.Series == "" {
		advice = "put a corrected file at " + place
	}
	return "", fmt.Errorf("%s of %s %s has no release series %d.%d: the provider must add it to releaseSeries; until then, %s",
		MetadataFile, c.Provider.ManifestLabel(), version, v.Major, v.Minor, advice)
}

func (c *Client) latest(ctx context.Context) (string, error) {
	versions, err := c.Versions(ctx)
	if err != nil {
		return "", err
	}
	if len(versions) == 0 {
		return "", fmt.Errorf("%s has no version: %w", c.loc.folder, ErrNotFound)
	}
	for _, candidate := range versions[:min(len(versions), maxMetadataProbes)] {
		m, err := c.Metadata(ctx, candidate)
		if errors.Is(err, ErrNotFound) {
			continue
		}
		if err != nil {
			return "", err
		}
		return c.newestFor(ctx, m, candidate, versions)
	}
	return "", fmt.Errorf("none of the latest versions (%s) has a %s: %w",
		strings.Join(versions[:min(len(versions), maxMetadataProbes)], ", "), MetadataFile, ErrNotFound)
}

// newestFor returns candidate if it implements one of the contracts, otherwise the newest version that does, according to the metadata
// of candidate, and that has metadata.
func (c *Client) newestFor(ctx context.Context, m *clusterctlv1.Metadata, candidate string, versions []string) (string, error) {
	contracts := c.Contracts
	if len(contracts) == 0 {
		contracts = packages.Contracts()
	}
	wanted := strings.Join(contracts, " or ")
	if !slices.ContainsFunc(m.ReleaseSeries, func(s clusterctlv1.ReleaseSeries) bool { return slices.Contains(contracts, s.Contract) }) {
		return "", fmt.Errorf("%s of %s has no release series for contract %s", MetadataFile, candidate, wanted)
	}
	probes := 0
	for _, version := range versions {
		v, err := packages.ParseVersion(version)
		if err != nil {
			continue
		}
		series := m.GetReleaseSeriesForVersion(v.Major, v.Minor)
		if series == nil || !slices.Contains(contracts, series.Contract) {
			continue
		}
		if version == candidate {
			return candidate, nil
		}
		if probes++; probes > maxMetadataProbes {
			break
		}
		if _, err := c.Metadata(ctx, version); !errors.Is(err, ErrNotFound) {
			return version, err
		}
	}
	return "", fmt.Errorf("no version of a release series for contract %s is published: %w", wanted, ErrNotFound)
}

// LatestMetadata returns the metadata of the newest of the versions that has one, pre-releases included, and that version: it knows
// all series. versions are those of Versions.
func (c *Client) LatestMetadata(ctx context.Context, versions []string) (*clusterctlv1.Metadata, string, error) {
	newest := slices.Clone(versions)
	slices.SortStableFunc(newest, func(a, b string) int {
		x, errX := packages.ParseVersion(a)
		y, errY := packages.ParseVersion(b)
		if errX != nil || errY != nil {
			return 0
		}
		return y.Compare(x)
	})
	// There may be more pre-releases without a release than are probed.
	var tried []string
	for _, version := range append(newest[:min(len(newest), maxMetadataProbes)], versions[:min(len(versions), maxMetadataProbes)]...) {
		if slices.Contains(tried, version) {
			continue
		}
		tried = append(tried, version)
		m, err := c.Metadata(ctx, version)
		if !errors.Is(err, ErrNotFound) {
			return m, version, err
		}
	}
	return nil, "", fmt.Errorf("none of the latest versions of %s (%s) in %s has a %s: %w",
		c.Provider.ManifestLabel(), strings.Join(tried, ", "), c.loc.folder, MetadataFile, ErrNotFound)
}

// OverridePath returns where users can put a file that replaces a published one; "" if there is no folder for them.
func (c *Client) OverridePath(version, name string) string {
	if c.overrides == "" {
		return ""
	}
	return filepath.Join(c.overrides, c.Provider.ManifestLabel(), version, name)
}

// sortVersions drops invalid semantic versions and sorts the rest: latest first, pre-releases last.
func sortVersions(versions []string) []string {
	type parsed struct {
		text string
		v    semver.Version
	}
	var list []parsed
	for _, text := range versions {
		if v, err := packages.ParseVersion(text); err == nil {
			list = append(list, parsed{text, v})
		}
	}
	slices.SortStableFunc(list, func(a, b parsed) int {
		return cmp.Or(cmp.Compare(min(len(a.v.Pre), 1), min(len(b.v.Pre), 1)), b.v.Compare(a.v))
	})
	sorted := make([]string, 0, len(list))
	for _, p := range list {
		sorted = append(sorted, p.text)
	}
	return slices.Compact(sorted)
}

// Override returns the user's override of a published file: <folder>/<label>/<version>/<name>. It returns nil if there is
// none or folder is empty.
func Override(folder, label, version, name string) ([]byte, error) {
	if folder == "" {
		return nil, nil
	}
	file := filepath.Join(folder, label, version, name)
	raw, err := os.ReadFile(file) // Reading the file the user put there is the purpose.
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("cannot read the override of %s %s: %w", label, version, err)
	}
	if raw == nil {
		raw = []byte{}
	}
	return raw, nil
}
