package check

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/version"
)

// definition is a CustomResourceDefinition with the version in which its objects are copied.
type definition struct {
	*apiextensionsv1.CustomResourceDefinition
	// version is the one that is stored, in the copy.
	version string
}

// readDefinitions copies the definitions of Cluster API and of providers, and all their objects.
func (s *source) readDefinitions(ctx context.Context) error {
	r := apiextensionsv1.SchemeGroupVersion.WithResource("customresourcedefinitions")
	var all []definition
	err := s.each(ctx, r, "", metav1.ListOptions{}, func(o *unstructured.Unstructured) error {
		group, _, _ := unstructured.NestedString(o.Object, "spec", "group")
		if _, provider := o.GetLabels()[providerLabel]; !provider && !isOfClusterAPI(group) {
			return nil
		}
		d, err := s.adapt(o)
		if err != nil {
			return err
		}
		all = append(all, d)
		return s.add(r.GroupResource(), o)
	})
	if err != nil {
		return err
	}
	for _, d := range all {
		s.facts.definition(d)
		if err := s.readObjects(ctx, d); err != nil {
			return err
		}
	}
	return nil
}

// adapt changes a definition for the copy. Our managers convert its objects if those of the cluster that they replace do. Otherwise, the
// manager that converts does not run in the copy: there the definition stores the version that our managers read, in which the cluster
// returns the objects.
func (s *source) adapt(o *unstructured.Unstructured) (definition, error) {
	crd, err := into[apiextensionsv1.CustomResourceDefinition](o)
	if err != nil {
		return definition{}, err
	}
	d := definition{crd, stored(crd)}
	strategy, _, _ := unstructured.NestedString(o.Object, "spec", "conversion", "strategy")
	if strategy != string(apiextensionsv1.WebhookConverter) {
		return d, nil
	}
	clientConfig, ok, _ := unstructured.NestedMap(o.Object, "spec", "conversion", "webhook", "clientConfig")
	if ok && s.trusted(clientConfig) {
		return d, unstructured.SetNestedMap(o.Object, clientConfig, "spec", "conversion", "webhook", "clientConfig")
	}
	d.version = read(crd)
	s.facts.unconverted(d)
	versions, _, err := unstructured.NestedSlice(o.Object, "spec", "versions")
	if err != nil {
		return d, fmt.Errorf("reading the versions of %s: %w", crd.Name, err)
	}
	for _, v := range versions {
		if of, ok := v.(map[string]any); ok {
			of["storage"] = of["name"] == d.version
		}
	}
	if err := unstructured.SetNestedSlice(o.Object, versions, "spec", "versions"); err != nil {
		return d, err
	}
	if err := unstructured.SetNestedSlice(o.Object, []any{d.version}, "status", "storedVersions"); err != nil {
		return d, err
	}
	return d, unstructured.SetNestedMap(o.Object, map[string]any{"strategy": "None"}, "spec", "conversion")
}

// stored returns the version that a definition stores.
func stored(crd *apiextensionsv1.CustomResourceDefinition) string {
	at := slices.IndexFunc(crd.Spec.Versions, func(v apiextensionsv1.CustomResourceDefinitionVersion) bool { return v.Storage })
	return crd.Spec.Versions[max(at, 0)].Name // API servers require one.
}

// read returns the version of a provider's kind that managers read: the newest one of the newest contract that its labels list.
func read(crd *apiextensionsv1.CustomResourceDefinition) string {
	served := map[string]bool{}
	for _, v := range crd.Spec.Versions {
		served[v.Name] = v.Served
	}
	for _, contract := range []string{"v1beta2", "v1beta1"} {
		versions := strings.Split(crd.Labels[domain+"/"+contract], "_")
		slices.SortFunc(versions, func(a, b string) int { return version.CompareKubeAwareVersionStrings(b, a) })
		for _, v := range versions {
			if served[v] {
				return v
			}
		}
	}
	return stored(crd)
}

// readObjects copies the objects of a definition.
func (s *source) readObjects(ctx context.Context, d definition) error {
	r := schema.GroupVersionResource{Group: d.Spec.Group, Version: d.version, Resource: d.Spec.Names.Plural}
	namespace := s.namespace
	if d.Spec.Scope == apiextensionsv1.ClusterScoped || isShared(d) {
		namespace = ""
	}
	n := 0
	err := s.each(ctx, r, namespace, metav1.ListOptions{}, func(o *unstructured.Unstructured) error {
		n++
		s.facts.object(o)
		s.nameReferences(o)
		return s.add(r.GroupResource(), o)
	})
	if err != nil {
		return err
	}
	if n > 0 {
		s.progress("%d %s read", n, r.GroupResource())
	}
	return nil
}

// isShared reports whether Clusters use objects of other namespaces: classes with their templates, and what is recorded of providers.
func isShared(d definition) bool {
	kind := d.Spec.Names.Kind
	return kind == "ClusterClass" || strings.HasSuffix(kind, "Template") || d.Spec.Group == "clusterctl."+domain
}

// nameReferences notes which Secrets and ConfigMaps an object refers to: those that a ClusterResourceSet applies, and those with files and
// passwords of a KubeadmConfig.
func (s *source) nameReferences(o *unstructured.Unstructured) {
	type secret struct {
		Secret struct{ Name string } `json:"secret"`
	}
	var of struct {
		Spec struct {
			Resources []struct{ Kind, Name string } `json:"resources"`
			Files     []struct {
				ContentFrom secret `json:"contentFrom"`
			} `json:"files"`
			Users []struct {
				PasswdFrom secret `json:"passwdFrom"`
			} `json:"users"`
		} `json:"spec"`
	}
	kind := o.GetKind()
	if kind != "ClusterResourceSet" && kind != "KubeadmConfig" {
		return
	}
	content, err := o.MarshalJSON()
	if err != nil || json.Unmarshal(content, &of) != nil {
		return
	}
	name := func(r schema.GroupVersionResource, name string) {
		if name != "" {
			s.name(r, o.GetNamespace(), name)
		}
	}
	for _, resource := range of.Spec.Resources {
		switch resource.Kind {
		case "Secret":
			name(secretResource, resource.Name)
		case "ConfigMap":
			name(configMapResource, resource.Name)
		}
	}
	for _, file := range of.Spec.Files {
		name(secretResource, file.ContentFrom.Secret.Name)
	}
	for _, user := range of.Spec.Users {
		name(secretResource, user.PasswdFrom.Secret.Name)
	}
}
