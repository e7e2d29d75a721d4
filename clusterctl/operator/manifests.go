package operator

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/blang/semver/v4"
	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterctlv1 "sigs.k8s.io/cluster-api/api/clusterctl/v1alpha3"
	"sigs.k8s.io/cluster-api/packages"
	"sigs.k8s.io/cluster-api/packages/catalog"
	"sigs.k8s.io/cluster-api/packages/choose"
	"sigs.k8s.io/cluster-api/packages/components"
	"sigs.k8s.io/cluster-api/packages/manifest"
	"sigs.k8s.io/cluster-api/packages/repository"
)

const (
	// Name is the operator's name in the configuration of images, and the value of Labels.
	Name = "capi-operator"
	// Namespace is the operator's default namespace.
	Namespace = "capi-operator-system"
	// WaitTimeout is, by default, how many seconds commands wait for the operator, and for each provider.
	WaitTimeout = 300

	// manifestsFile has the operator's manifests; it is in the releases of the core provider.
	manifestsFile = "operator-components.yaml"
	// versionLabel is, on the operator's Deployment, its version.
	versionLabel = "app.kubernetes.io/version"
	// unknownVersion is the version of an operator whose Deployment has no label.
	unknownVersion = "of unknown version"
)

// Labels are on all objects of the operator.
func Labels() client.MatchingLabels {
	return client.MatchingLabels{clusterctlv1.ClusterctlCoreLabel: Name}
}

// Installed is the operator of a management cluster.
type Installed struct {
	Namespace, Version string
	// Deployment is its name.
	Deployment string
}

// Find returns the operator of a management cluster, nil if it has none.
func Find(ctx context.Context, c client.Reader) (*Installed, error) {
	list := &appsv1.DeploymentList{}
	if err := c.List(ctx, list, Labels()); err != nil {
		return nil, fmt.Errorf("cannot find out whether the operator is installed: %w", err)
	}
	switch len(list.Items) {
	case 0:
		return nil, nil
	case 1:
		d := &list.Items[0]
		return &Installed{Namespace: d.Namespace, Deployment: d.Name, Version: cmp.Or(d.Labels[versionLabel], unknownVersion)}, nil
	}
	var found []string
	for i := range list.Items {
		found = append(found, client.ObjectKeyFromObject(&list.Items[i]).String())
	}
	return nil,
		fmt.Errorf("the operator is installed %d times, as the Deployments %s: delete all but one of them, with their ClusterRoleBindings",
			len(found), strings.Join(found, ", "))
}

// Unmatched returns what to know about an operator that is newer than a version of clusterctl, which does not know what it can do; ""
// otherwise. Patch releases match.
func (i *Installed) Unmatched(clusterctl string) string {
	own, err := packages.ParseVersion(clusterctl)
	if err != nil {
		return "" // A build without a version.
	}
	if have, err := packages.ParseVersion(i.Version); err == nil && isOlderMinor(own, have) {
		return fmt.Sprintf("the operator %s is newer than this clusterctl (%s): use the clusterctl of its release", i.Version, clusterctl)
	}
	return ""
}

// isOlderMinor reports whether a version is of an older minor version than another.
func isOlderMinor(v, than semver.Version) bool {
	return v.Major < than.Major || v.Major == than.Major && v.Minor < than.Minor
}

// Require returns the operator of a management cluster, or an error if it has none.
func Require(ctx context.Context, c client.Reader) (*Installed, error) {
	have, err := Find(ctx, c)
	if err == nil && have == nil {
		err = errors.New("the operator is not installed: install it with `clusterctl operator init`, " +
			"or upgrade providers with `clusterctl upgrade apply`")
	}
	return have, err
}

// Manifests are those of one version of the operator.
type Manifests struct {
	Installed
	Objects []unstructured.Unstructured
}

func (m *Manifests) part() choose.Part {
	return choose.Part{Name: Name, Version: m.Version, Objects: m.Objects}
}

// Read reads the operator's manifests for a namespace from the core provider's release: that of the version, the latest if it is
// empty. Image names are overridden as configured.
func Read(ctx context.Context, c *catalog.Catalog, version, namespace string) (*Manifests, error) {
	release, err := c.Release(ctx, clusterctlv1.CoreProviderType, packages.Ref{Name: clusterctlv1.ClusterAPIProviderName, Version: version})
	if err != nil {
		return nil, err
	}
	if err := release.Validate(ctx); err != nil && !errors.Is(err, repository.ErrNotFound) {
		return nil, fmt.Errorf("this clusterctl cannot install the operator %s: use the clusterctl of that release: %w", release.Version, err)
	}
	raw, err := release.Read(ctx, manifestsFile)
	if errors.Is(err, repository.ErrNotFound) {
		return nil, fmt.Errorf("release %s has no operator: choose another version with --operator-version: %w", release.Version, err)
	}
	if err != nil {
		return nil, err
	}
	m := &Manifests{Installed: Installed{Namespace: namespace, Version: release.Version}}
	if m.Objects, err = manifest.Parse(raw); err != nil {
		return nil, fmt.Errorf("invalid %s of release %s: %w", manifestsFile, release.Version, err)
	}
	if _, err := components.OverrideImages(m.Objects, Name, c.Config.Images); err != nil {
		return nil, fmt.Errorf("invalid %s of release %s: %w", manifestsFile, release.Version, err)
	}
	m.Objects = components.SetTargetNamespace(m.Objects, namespace)
	components.AddLabels(m.Objects, Labels())
	for i := range m.Objects {
		if o := &m.Objects[i]; o.GetKind() == "Deployment" {
			m.Deployment = o.GetName()
			components.AddLabels(m.Objects[i:i+1], map[string]string{versionLabel: release.Version})
		}
	}
	if m.Deployment == "" {
		return nil, fmt.Errorf("invalid %s of release %s: it has no Deployment", manifestsFile, release.Version)
	}
	return m, nil
}
