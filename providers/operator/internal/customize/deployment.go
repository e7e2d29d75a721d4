package customize

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/distribution/reference"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	operatorv1 "sigs.k8s.io/cluster-api/api/operator/v1alpha2"
)

// changeDeployment changes a Deployment. spec may be nil.
func changeDeployment(d *appsv1.Deployment, spec *operatorv1.DeploymentSpec, field string) error {
	if spec == nil {
		return nil
	}
	pod := &d.Spec.Template.Spec
	if spec.Replicas != nil {
		d.Spec.Replicas = ptr.To(int32(*spec.Replicas))
	}
	if spec.NodeSelector != nil {
		pod.NodeSelector = spec.NodeSelector
	}
	if spec.Tolerations != nil {
		pod.Tolerations = spec.Tolerations
	}
	if spec.Affinity != nil {
		pod.Affinity = spec.Affinity
	}
	if spec.ServiceAccountName != "" {
		pod.ServiceAccountName, pod.DeprecatedServiceAccount = spec.ServiceAccountName, ""
	}
	if spec.ImagePullSecrets != nil {
		pod.ImagePullSecrets = spec.ImagePullSecrets
	}
	for _, c := range spec.Containers {
		path := fmt.Sprintf("%s.containers[%s]", field, c.Name)
		i := slices.IndexFunc(pod.Containers, func(o corev1.Container) bool { return o.Name == c.Name })
		if i < 0 {
			return fmt.Errorf("%s: Deployment %s has no such container: it has %s", path, d.Name, containerNames(pod.Containers))
		}
		if err := changeContainer(&pod.Containers[i], c, path); err != nil {
			return err
		}
	}
	return nil
}

func containerNames(containers []corev1.Container) string {
	var list []string
	for _, c := range containers {
		list = append(list, c.Name)
	}
	return strings.Join(list, ", ")
}

func changeContainer(c *corev1.Container, spec operatorv1.ContainerSpec, field string) error {
	if spec.ImageURL != nil {
		c.Image = *spec.ImageURL
	}
	if spec.Image != nil {
		image, err := imageWith(c.Image, spec.Image)
		if err != nil {
			return fmt.Errorf("%s.image: %w", field, err)
		}
		c.Image = image
	}
	if spec.Command != nil {
		c.Command = spec.Command
	}
	if spec.Resources != nil {
		c.Resources = *spec.Resources
	}
	for _, variable := range spec.Env {
		i := slices.IndexFunc(c.Env, func(o corev1.EnvVar) bool { return o.Name == variable.Name })
		if i < 0 {
			c.Env = append(c.Env, variable)
		} else {
			c.Env[i] = variable
		}
	}
	args := arguments{slices.Clone(c.Args)}
	for _, name := range slices.Sorted(maps.Keys(spec.Args)) {
		if key(name) != "namespace" {
			args.set(name, string(spec.Args[name]))
		}
	}
	c.Args = args.list
	return nil
}

// imageWith replaces parts of an image's name. A digest is dropped if another part changes: it is that of the previous image.
func imageWith(image string, parts *operatorv1.ImageMeta) (string, error) {
	named, err := reference.ParseNormalizedNamed(image)
	if err != nil {
		return "", fmt.Errorf("the components have the invalid image %q: %w", image, err)
	}
	path := reference.FamiliarName(named)
	folder, name := "", path
	if i := strings.LastIndex(path, "/"); i >= 0 {
		folder, name = path[:i], path[i+1:]
	}
	folder, name = ptr.Deref(parts.Repository, folder), ptr.Deref(parts.Name, name)
	tag := ptr.Deref(parts.Tag, "")
	if tagged, ok := named.(reference.Tagged); ok && tag == "" {
		tag = tagged.Tag()
	}
	out := strings.TrimSuffix(folder, "/") + "/" + name
	if folder == "" {
		out = name
	}
	if tag != "" {
		out += ":" + tag
	}
	if _, err := reference.ParseNormalizedNamed(out); err != nil {
		return "", fmt.Errorf("the result %q is invalid: %w", out, err)
	}
	return out, nil
}

// concurrencies returns the kinds, in lower case, whose concurrency an argument of a container sets.
func concurrencies(spec *operatorv1.DeploymentSpec) map[string]bool {
	found := map[string]bool{}
	if spec == nil {
		return found
	}
	for _, c := range spec.Containers {
		for name := range c.Args {
			if kind, ok := strings.CutSuffix(key(name), concurrencySuffix); ok {
				found[kind] = true
			}
		}
	}
	return found
}
