package operator

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	operatorv1 "sigs.k8s.io/cluster-api/api/operator/v1alpha2"
	"sigs.k8s.io/cluster-api/packages"
	"sigs.k8s.io/cluster-api/packages/catalog"
	"sigs.k8s.io/cluster-api/packages/components"
	"sigs.k8s.io/cluster-api/packages/inventory"
	"sigs.k8s.io/cluster-api/packages/repository"
)

// variablesLabel is, on Secrets with values of variables, the manifest label of the provider.
const variablesLabel = "operator.cluster.x-k8s.io/variables-of"

// Declaration is the object that declares a provider, and what it refers to.
type Declaration struct {
	Reference
	// Object is written last.
	Object *unstructured.Unstructured
	// Variables has the values of variables, under the name that Object refers to; nil: none are needed.
	Variables *corev1.Secret
	// Release has a release that only the user's machine can read; nil: the operator downloads it.
	Release *corev1.ConfigMap

	components *components.Components
}

// declare returns the declaration of a release. secret is that of the variables; nil: the values of the configuration are put into one
// of the provider's own.
func declare(ctx context.Context, c *catalog.Catalog, r Reference, secret *client.ObjectKey) (*Declaration, error) {
	release, err := c.Release(ctx, r.Type, r.Ref)
	if err != nil {
		return nil, err
	}
	if err := release.Validate(ctx); err != nil {
		return nil, err
	}
	built, err := c.Components(ctx, release, catalog.Options{TargetNamespace: r.Namespace})
	if err != nil {
		return nil, err
	}
	d := &Declaration{Reference: r, components: built}
	d.Version, d.Namespace = release.Version, built.TargetNamespace
	spec := &operatorv1.ProviderSpec{Version: release.Version}
	if d.Release, err = Local(ctx, release, d.Namespace); err != nil {
		return nil, err
	}
	spec.FetchConfig = d.fetchConfig(release.Provider)
	if spec.Deployment, spec.AdditionalDeployments, err = overridden(built, c.Config.Images); err != nil {
		return nil, err
	}
	switch values := set(built, c.Config.Variable); {
	case secret != nil:
		spec.ConfigSecret = &operatorv1.SecretReference{Name: secret.Name, Namespace: secret.Namespace}
	case len(values) > 0:
		d.Variables = &corev1.Secret{
			TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Secret"},
			ObjectMeta: metav1.ObjectMeta{
				Namespace: d.Namespace, Name: r.Label() + "-variables", Labels: map[string]string{variablesLabel: r.Label()},
			},
			Data: values,
		}
		spec.SecretName = ptr.To(d.Variables.Name)
	}
	d.Object, err = object(d.Reference, spec)
	return d, err
}

// object returns the object of a spec, without fields that are empty.
func object(r Reference, spec *operatorv1.ProviderSpec) (*unstructured.Unstructured, error) {
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(spec)
	if err != nil {
		return nil, err
	}
	o := &unstructured.Unstructured{Object: map[string]any{"spec": content}}
	o.SetGroupVersionKind(inventory.DeclarationKind(r.Type))
	o.SetNamespace(r.Namespace)
	o.SetName(r.Name)
	return o, nil
}

// set returns the variables of the components that have a value.
func set(c *components.Components, lookup func(string) (string, bool)) map[string][]byte {
	values := map[string][]byte{}
	for _, v := range c.Variables {
		if value, ok := lookup(v.Name); ok {
			values[v.Name] = []byte(value)
		}
	}
	return values
}

// fetchConfig returns where the operator finds releases; nil: where it looks by itself.
func (d *Declaration) fetchConfig(p packages.Provider) *operatorv1.FetchConfiguration {
	if d.Release != nil {
		return &operatorv1.FetchConfiguration{Selector: &metav1.LabelSelector{MatchLabels: map[string]string{
			operatorv1.ProviderTypeLabel: d.Release.Labels[operatorv1.ProviderTypeLabel],
			operatorv1.ProviderNameLabel: d.Release.Labels[operatorv1.ProviderNameLabel],
		}}}
	}
	if slices.Contains(packages.Defaults(), p) {
		return nil
	}
	return &operatorv1.FetchConfiguration{URL: p.URL}
}

// Local returns a ConfigMap with a release that only the user's machine can read, because it is in a local repository, or has files in the
// overrides folder; nil if others can.
func Local(ctx context.Context, r *catalog.Release, namespace string) (*corev1.ConfigMap, error) {
	if !filepath.IsAbs(r.Provider.URL) && !strings.HasPrefix(r.Provider.URL, "file:") {
		overridden, err := r.Overridden(r.Version, r.ComponentsFile(), repository.MetadataFile)
		if err != nil || !overridden {
			return nil, err
		}
	}
	return Preload(ctx, r, namespace)
}

// Preload returns a ConfigMap with a release, as the operator reads it.
func Preload(ctx context.Context, r *catalog.Release, namespace string) (*corev1.ConfigMap, error) {
	var files [2][]byte
	for i, name := range []string{r.ComponentsFile(), repository.MetadataFile} {
		var err error
		if files[i], err = r.Read(ctx, name); err != nil {
			return nil, err
		}
	}
	m, err := repository.ToConfigMap(r.Provider, r.Version, namespace, files[0], files[1])
	if err != nil {
		return nil, fmt.Errorf("%w: publish an OCI artifact with `clusterctl operator publish`, and set spec.fetchConfig.oci", err)
	}
	m.TypeMeta = metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMap"}
	return m, nil
}

// overridden returns the image overrides of the configuration as fields of the spec: for the only Deployment, or for each of several.
func overridden(
	built *components.Components, overrides components.ImageOverrides,
) (*operatorv1.DeploymentSpec, map[string]operatorv1.AdditionalDeployments, error) {
	if len(overrides) == 0 {
		return nil, nil, nil
	}
	specs, total := map[string]operatorv1.AdditionalDeployments{}, 0
	var last *operatorv1.DeploymentSpec
	for i := range built.Objects {
		if built.Objects[i].GetKind() != "Deployment" {
			continue
		}
		total++
		spec, err := imagesOf(&built.Objects[i], built.Provider.ManifestLabel(), overrides)
		if err != nil {
			return nil, nil, err
		}
		if len(spec.Containers) > 0 {
			specs[built.Objects[i].GetName()] = operatorv1.AdditionalDeployments{Deployment: spec}
			last = spec
		}
	}
	if total == 1 {
		return last, nil, nil
	}
	return nil, specs, nil
}

// imagesOf returns what the overrides change in a Deployment. That they are applied already makes no difference: they keep the name of an
// image, which determines them.
func imagesOf(o *unstructured.Unstructured, label string, overrides components.ImageOverrides) (*operatorv1.DeploymentSpec, error) {
	d := &appsv1.Deployment{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(o.Object, d); err != nil {
		return nil, fmt.Errorf("%s: Deployment %s is invalid: %w", label, o.GetName(), err)
	}
	spec := &operatorv1.DeploymentSpec{}
	for _, container := range d.Spec.Template.Spec.Containers {
		override, err := overrides.Of(label, container.Image)
		if err != nil {
			return nil, fmt.Errorf("%s: container %s of Deployment %s: %w", label, container.Name, o.GetName(), err)
		}
		if override == (components.ImageOverride{}) {
			continue
		}
		image := &operatorv1.ImageMeta{}
		if override.Repository != "" {
			image.Repository = &override.Repository
		}
		if override.Tag != "" {
			image.Tag = &override.Tag
		}
		spec.Containers = append(spec.Containers, operatorv1.ContainerSpec{Name: container.Name, Image: image})
	}
	return spec, nil
}
