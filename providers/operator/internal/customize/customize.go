package customize

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	operatorv1 "sigs.k8s.io/cluster-api/api/operator/v1alpha2"
	"sigs.k8s.io/cluster-api/packages"
)

// Apply returns the components with the changes of the spec. additional are those of spec.additionalManifests; they are not changed
// otherwise, except by patches. Errors name the field of the spec.
func Apply(objects, additional []unstructured.Unstructured, spec *operatorv1.ProviderSpec) ([]unstructured.Unstructured, error) {
	objects = slices.Clone(objects)
	for i := range objects {
		objects[i] = *objects[i].DeepCopy()
	}
	if spec.Manager != nil || spec.Deployment != nil {
		i, err := mainDeployment(objects)
		if err != nil {
			return nil, fmt.Errorf("spec.manager and spec.deployment: %w", err)
		}
		if err := change(&objects[i], "spec", spec.Manager, spec.Deployment); err != nil {
			return nil, err
		}
	}
	for _, name := range slices.Sorted(maps.Keys(spec.AdditionalDeployments)) {
		field := fmt.Sprintf("spec.additionalDeployments[%s]", name)
		i := slices.IndexFunc(objects, func(o unstructured.Unstructured) bool { return isDeployment(&o) && o.GetName() == name })
		if i < 0 {
			return nil, fmt.Errorf("%s: the provider has no such Deployment: it has %s", field, names(objects))
		}
		parts := spec.AdditionalDeployments[name]
		if err := change(&objects[i], field, parts.Manager, parts.Deployment); err != nil {
			return nil, err
		}
	}
	return patch(append(objects, additional...), spec)
}

func isDeployment(o *unstructured.Unstructured) bool {
	return o.GetKind() == "Deployment" && o.GroupVersionKind().Group == appsv1.GroupName
}

func names(objects []unstructured.Unstructured) string {
	var list []string
	for i := range objects {
		if isDeployment(&objects[i]) {
			list = append(list, objects[i].GetName())
		}
	}
	return cmp.Or(strings.Join(list, ", "), "none")
}

// mainDeployment returns the index of the Deployment that spec.manager and spec.deployment are for: the only one, or the one named like
// those of Cluster API's providers.
func mainDeployment(objects []unstructured.Unstructured) (int, error) {
	var all, named []int
	for i := range objects {
		if !isDeployment(&objects[i]) {
			continue
		}
		all = append(all, i)
		if name := objects[i].GetName(); strings.HasPrefix(name, "ca") && strings.HasSuffix(name, "-controller-manager") {
			named = append(named, i)
		}
	}
	switch {
	case len(all) == 1:
		return all[0], nil
	case len(named) == 1:
		return named[0], nil
	case len(all) == 0:
		return 0, fmt.Errorf("the provider has no Deployment")
	}
	return 0, fmt.Errorf("the provider has several Deployments (%s), of which not exactly one is named ca*-controller-manager: "+
		"use spec.additionalDeployments", names(objects))
}

// change changes one Deployment.
func change(o *unstructured.Unstructured, field string, manager *operatorv1.ManagerSpec, deployment *operatorv1.DeploymentSpec) error {
	d := &appsv1.Deployment{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(o.Object, d); err != nil {
		return fmt.Errorf("%s: Deployment %s of the components is invalid: %w", field, o.GetName(), err)
	}
	if err := changeDeployment(d, deployment, field+".deployment"); err != nil {
		return err
	}
	if err := changeManager(d, manager, concurrencies(deployment), field+".manager"); err != nil {
		return err
	}
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(d)
	if err != nil {
		return fmt.Errorf("%s: converting Deployment %s: %w", field, d.Name, err)
	}
	delete(content, "status")
	unstructured.RemoveNestedField(content, "metadata", "creationTimestamp")
	unstructured.RemoveNestedField(content, "spec", "template", "metadata", "creationTimestamp")
	if len(d.Spec.Strategy.Type) == 0 && d.Spec.Strategy.RollingUpdate == nil {
		unstructured.RemoveNestedField(content, "spec", "strategy")
	}
	content["apiVersion"], content["kind"] = o.GetAPIVersion(), o.GetKind()
	o.Object = content
	return nil
}

// managerContainer returns the container that runs the controllers.
func managerContainer(d *appsv1.Deployment) *corev1.Container {
	containers := d.Spec.Template.Spec.Containers
	for i := range containers {
		if containers[i].Name == packages.ManagerContainer || len(containers) == 1 {
			return &containers[i]
		}
	}
	return nil
}
