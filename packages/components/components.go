package components

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/gobuffalo/flect"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/validation"

	clusterctlv1 "sigs.k8s.io/cluster-api/api/clusterctl/v1alpha3"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/packages"
	"sigs.k8s.io/cluster-api/packages/manifest"
	"sigs.k8s.io/cluster-api/packages/template"
)

// certManagerGroup is the API group of cert-manager.
const certManagerGroup = "cert-manager.io"

// Options are how to turn manifests into components.
type Options struct {
	// Version is the provider's version.
	Version string
	// TargetNamespace is the provider's namespace; empty means the Namespace in its manifests.
	TargetNamespace string
	// Variables looks up the values of variables; nil keeps the expressions.
	Variables template.Lookup
	// Images overrides parts of image names.
	Images ImageOverrides
}

// Components are the objects of one version of a provider, ready to be installed.
type Components struct {
	Provider        packages.Provider
	Version         string
	TargetNamespace string
	// Variables of the manifests, sorted by name.
	Variables []template.Variable
	// Images of all containers after overrides, sorted and unique.
	Images []string
	// Objects in the order of the manifests; a Namespace that the manifests do not have comes first.
	Objects []unstructured.Unstructured
}

// New processes a provider's manifests: variables, images, namespace, labels.
func New(p packages.Provider, raw []byte, o Options) (*Components, error) {
	c, err := process(p, raw, o)
	if err != nil {
		return nil, fmt.Errorf("cannot process the components of %s %s: %w", p.ManifestLabel(), o.Version, err)
	}
	return c, nil
}

func process(p packages.Provider, raw []byte, o Options) (*Components, error) {
	tmpl, err := template.Parse(raw)
	if err != nil {
		return nil, err
	}
	if o.Variables != nil {
		if raw, err = tmpl.Execute(o.Variables); err != nil {
			return nil, err
		}
	}
	objects, err := manifest.Parse(raw)
	if err != nil {
		return nil, err
	}
	images, err := OverrideImages(objects, p.ManifestLabel(), o.Images)
	if err != nil {
		return nil, err
	}
	namespace, err := targetNamespace(objects, o.TargetNamespace)
	if err != nil {
		return nil, err
	}
	objects = SetTargetNamespace(objects, namespace)
	AddLabels(objects, Labels(p))
	return &Components{
		Provider: p, Version: o.Version, TargetNamespace: namespace,
		Variables: tmpl.Variables(), Images: images, Objects: objects,
	}, nil
}

// Labels returns the labels that every object of a provider carries.
func Labels(p packages.Provider) map[string]string {
	return map[string]string{clusterctlv1.ClusterctlLabel: "", clusterv1.ProviderNameLabel: p.ManifestLabel()}
}

// AddLabels sets labels on every object.
func AddLabels(objects []unstructured.Unstructured, labels map[string]string) {
	for i := range objects {
		merged := objects[i].GetLabels()
		if merged == nil {
			merged = map[string]string{}
		}
		maps.Copy(merged, labels)
		objects[i].SetLabels(merged)
	}
}

// Inventory returns the object that records these components in a management cluster.
func (c *Components) Inventory() *clusterctlv1.Provider {
	labels := Labels(c.Provider)
	labels[clusterctlv1.ClusterctlCoreLabel] = clusterctlv1.ClusterctlCoreLabelInventoryValue
	return &clusterctlv1.Provider{
		TypeMeta:     metav1.TypeMeta{APIVersion: clusterctlv1.GroupVersion.String(), Kind: clusterctlv1.ProviderKind},
		ObjectMeta:   metav1.ObjectMeta{Name: c.Provider.ManifestLabel(), Namespace: c.TargetNamespace, Labels: labels},
		ProviderName: c.Provider.Name,
		Type:         string(c.Provider.Type),
		Version:      c.Version,
	}
}

// NeedsCertManager reports whether the objects require cert-manager.
func (c *Components) NeedsCertManager() bool {
	return slices.ContainsFunc(c.Objects, func(o unstructured.Unstructured) bool {
		return o.GroupVersionKind().Group == certManagerGroup
	})
}

// ManagerDeployments returns the names of the Deployments that run the provider's controllers: those with a container
// named manager.
func (c *Components) ManagerDeployments() []string {
	var names []string
	for i := range c.Objects {
		o := &c.Objects[i]
		if o.GetKind() != "Deployment" {
			continue
		}
		for _, container := range containers(o) {
			if container["name"] == packages.ManagerContainer {
				names = append(names, o.GetName())
			}
		}
	}
	return names
}

// ValidateCRDNames rejects CRDs that contract lookups would not find: names must derive from group and kind.
func (c *Components) ValidateCRDNames() error {
	for i := range c.Objects {
		crd := &c.Objects[i]
		if crd.GetKind() != manifest.KindCRD {
			continue
		}
		if _, skip := crd.GetAnnotations()[clusterctlv1.SkipCRDNamePreflightCheckAnnotation]; skip {
			continue
		}
		group, _, _ := unstructured.NestedString(crd.Object, "spec", "group")
		kind, _, _ := unstructured.NestedString(crd.Object, "spec", "names", "kind")
		if want := flect.Pluralize(strings.ToLower(kind)) + "." + group; crd.GetName() != want {
			return fmt.Errorf("%s %s: CustomResourceDefinition %s of kind %s must be named %s; "+
				"if that is known to be safe, the provider can add the annotation %s",
				c.Provider.ManifestLabel(), c.Version, crd.GetName(), kind, want, clusterctlv1.SkipCRDNamePreflightCheckAnnotation)
		}
	}
	return nil
}

func targetNamespace(objects []unstructured.Unstructured, wanted string) (string, error) {
	var names []string
	for _, o := range objects {
		if o.GetKind() == "Namespace" {
			names = append(names, o.GetName())
		}
	}
	switch {
	case len(names) > 1:
		return "", fmt.Errorf("they contain %d Namespaces (%s), but at most one is allowed", len(names), strings.Join(names, ", "))
	case wanted != "":
		if msgs := validation.IsDNS1123Label(wanted); len(msgs) > 0 {
			return "", fmt.Errorf("invalid target namespace %q: %s", wanted, strings.Join(msgs, "; "))
		}
		return wanted, nil
	case len(names) == 0:
		return "", fmt.Errorf("they contain no Namespace: set one with --target-namespace")
	default:
		return names[0], nil
	}
}
