package components

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"sigs.k8s.io/cluster-api/packages/manifest"
)

// ImageOverride replaces parts of an image name; an empty field keeps that part.
type ImageOverride struct {
	// Repository replaces everything before the last element of the path.
	Repository string `json:"repository,omitempty"`
	// Tag replaces the tag.
	Tag string `json:"tag,omitempty"`
}

// AllComponents is the key of an ImageOverride for every image.
const AllComponents = "all"

// ImageOverrides are keyed by AllComponents, by a manifest label or "cert-manager", or by such a key and an image's
// name joined by a slash. The more specific key wins, field by field.
type ImageOverrides map[string]ImageOverride

// Apply returns the image's name after the overrides for the component; a digest is kept.
func (o ImageOverrides) Apply(component, image string) (string, error) {
	name, tag, digest, err := splitImage(image)
	if err != nil {
		return "", err
	}
	base := name[strings.LastIndex(name, "/")+1:]
	override := o.of(component, base)
	if override.Repository != "" {
		name = override.Repository + "/" + base
	}
	if override.Tag != "" {
		tag = override.Tag
	}
	if tag != "" {
		name += ":" + tag
	}
	if digest != "" {
		name += "@" + digest
	}
	return name, nil
}

// Of returns what the overrides replace in an image of the component.
func (o ImageOverrides) Of(component, image string) (ImageOverride, error) {
	name, _, _, err := splitImage(image)
	if err != nil {
		return ImageOverride{}, err
	}
	return o.of(component, name[strings.LastIndex(name, "/")+1:]), nil
}

// of returns the override for the last element of an image's name.
func (o ImageOverrides) of(component, base string) ImageOverride {
	var merged ImageOverride
	for _, key := range []string{AllComponents, component, component + "/" + base} {
		merged.Repository = cmp.Or(strings.TrimSuffix(o[key].Repository, "/"), merged.Repository)
		merged.Tag = cmp.Or(o[key].Tag, merged.Tag)
	}
	return merged
}

func splitImage(image string) (name, tag, digest string, err error) {
	name, digest, digested := strings.Cut(image, "@")
	path, base := name[:strings.LastIndex(name, "/")+1], name[strings.LastIndex(name, "/")+1:]
	base, tag, tagged := strings.Cut(base, ":")
	name = path + base
	if base == "" || tagged && tag == "" || digested && digest == "" || strings.Contains(tag, ":") || strings.ContainsAny(image, " \t\n") {
		return "", "", "", fmt.Errorf("invalid image name %q", image)
	}
	return name, tag, digest, nil
}

// OverrideImages applies overrides to the containers of Deployments and DaemonSets and returns the resulting images,
// sorted and unique.
func OverrideImages(objects []unstructured.Unstructured, component string, overrides ImageOverrides) ([]string, error) {
	var images []string
	for i := range objects {
		for _, container := range containers(&objects[i]) {
			image, ok := container["image"].(string)
			if !ok {
				return nil, fmt.Errorf("container %v of %s has no image", container["name"], manifest.Describe(&objects[i]))
			}
			// A name that is still a variable has no parts yet.
			if len(overrides) > 0 && !strings.Contains(image, "${") {
				var err error
				if image, err = overrides.Apply(component, image); err != nil {
					return nil, fmt.Errorf("container %v of %s: %w", container["name"], manifest.Describe(&objects[i]), err)
				}
				container["image"] = image
			}
			images = append(images, image)
		}
	}
	slices.Sort(images)
	return slices.Compact(images), nil
}

// containers returns all containers of a Deployment or DaemonSet, none for other kinds.
func containers(o *unstructured.Unstructured) []map[string]any {
	if kind := o.GetKind(); kind != "Deployment" && kind != "DaemonSet" {
		return nil
	}
	return append(items(o.Object, "spec", "template", "spec", "containers"),
		items(o.Object, "spec", "template", "spec", "initContainers")...)
}
