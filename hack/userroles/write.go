package userroles

import (
	"bytes"
	"cmp"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"
)

// File is where the roles of a component are, in its folder.
const File = "config/rbac/users.yaml"

// header explains the file.
const header = `# Permissions of users. Written by "make generate" from the definitions and hack/userroles/grants.go.
`

// Write writes the roles of all components of a repository that have kinds, and returns the paths of the files that have changed.
func Write(root string) (changed []string, err error) {
	components, err := filepath.Glob(filepath.Join(root, "providers", "*", "config", "component.yaml"))
	if err != nil {
		return nil, err
	}
	for _, component := range components {
		folder := filepath.Dir(filepath.Dir(component))
		definitions, err := definitionsIn(filepath.Join(folder, "config", "crd"))
		if err != nil {
			return changed, err
		}
		if len(definitions) == 0 {
			continue
		}
		p, known := policies()[filepath.Base(folder)]
		if !known {
			return changed, fmt.Errorf("component %s has kinds: say in hack/userroles/grants.go what users may do with them", filepath.Base(folder))
		}
		text, err := render(roles(definitions, p))
		if err != nil {
			return changed, err
		}
		path := filepath.Join(folder, File)
		if before, err := os.ReadFile(path); err == nil && bytes.Equal(before, text) {
			continue
		}
		if err := os.WriteFile(path, text, 0o644); err != nil {
			return changed, err
		}
		changed = append(changed, path)
	}
	return changed, nil
}

func definitionsIn(folder string) ([]apiextensionsv1.CustomResourceDefinition, error) {
	files, err := filepath.Glob(filepath.Join(folder, "*.yaml"))
	if err != nil {
		return nil, err
	}
	out := make([]apiextensionsv1.CustomResourceDefinition, len(files))
	for i, file := range files {
		raw, err := os.ReadFile(file)
		if err != nil {
			return nil, err
		}
		if err := yaml.Unmarshal(raw, &out[i]); err != nil {
			return nil, fmt.Errorf("%s: %w", file, err)
		}
	}
	return out, nil
}

// roles returns the roles for the kinds of a component. The release program sets the component's prefix.
func roles(definitions []apiextensionsv1.CustomResourceDefinition, p policy) []rbacv1.ClusterRole {
	var read, write []rbacv1.PolicyRule
	for group, resources := range byGroup(definitions, func(apiextensionsv1.CustomResourceDefinition) bool { return true }) {
		read = append(read, rule(group, withScale(definitions, resources), "get", "list", "watch"))
	}
	for group, resources := range p.also {
		read = append(read, rule(group, resources, "get", "list", "watch"))
	}
	namespaced := byGroup(definitions, func(d apiextensionsv1.CustomResourceDefinition) bool {
		return d.Spec.Scope == apiextensionsv1.NamespaceScoped
	})
	for group, resources := range namespaced {
		write = append(write, rule(group, withScale(definitions, resources), create, remove, all, patch, update))
	}
	out := []rbacv1.ClusterRole{role("view", read)}
	if len(p.edit) > 0 {
		var edit []rbacv1.PolicyRule
		for _, g := range p.edit {
			edit = append(edit, rule(groupOf(definitions, g.resources[0]), g.resources, g.verbs...))
		}
		out = append(out, role("edit", edit))
	}
	if !p.readOnly {
		out = append(out, role("admin", write))
	}
	return out
}

// byGroup returns the resources of the definitions that are selected, by group.
func byGroup(
	definitions []apiextensionsv1.CustomResourceDefinition, selected func(apiextensionsv1.CustomResourceDefinition) bool,
) map[string][]string {
	out := map[string][]string{}
	for _, d := range definitions {
		if selected(d) {
			out[d.Spec.Group] = append(out[d.Spec.Group], d.Spec.Names.Plural)
		}
	}
	return out
}

// withScale adds the subresource scale of the kinds that have it.
func withScale(definitions []apiextensionsv1.CustomResourceDefinition, resources []string) []string {
	out := slices.Clone(resources)
	for _, d := range definitions {
		scales := slices.ContainsFunc(d.Spec.Versions, func(v apiextensionsv1.CustomResourceDefinitionVersion) bool {
			return v.Subresources != nil && v.Subresources.Scale != nil
		})
		if scales && slices.Contains(resources, d.Spec.Names.Plural) {
			out = append(out, d.Spec.Names.Plural+"/scale")
		}
	}
	return out
}

// groupOf returns the group of a resource, "" if there is none; a subresource has the group of its resource.
func groupOf(definitions []apiextensionsv1.CustomResourceDefinition, resource string) string {
	name, _, _ := strings.Cut(resource, "/")
	for group, resources := range byGroup(definitions, func(apiextensionsv1.CustomResourceDefinition) bool { return true }) {
		if slices.Contains(resources, name) {
			return group
		}
	}
	return ""
}

func rule(group string, resources []string, verbs ...string) rbacv1.PolicyRule {
	return rbacv1.PolicyRule{
		APIGroups: []string{group}, Resources: slices.Sorted(slices.Values(resources)), Verbs: slices.Sorted(slices.Values(verbs)),
	}
}

// role returns the ClusterRole that adds rules to a role of Kubernetes.
func role(to string, rules []rbacv1.PolicyRule) rbacv1.ClusterRole {
	slices.SortStableFunc(rules, func(a, b rbacv1.PolicyRule) int { return cmp.Compare(a.APIGroups[0], b.APIGroups[0]) })
	return rbacv1.ClusterRole{
		TypeMeta: metav1.TypeMeta{APIVersion: rbacv1.SchemeGroupVersion.String(), Kind: "ClusterRole"},
		ObjectMeta: metav1.ObjectMeta{
			Name: to, Labels: map[string]string{"rbac.authorization.k8s.io/aggregate-to-" + to: "true"},
		},
		Rules: rules,
	}
}

func render(roles []rbacv1.ClusterRole) ([]byte, error) {
	out := bytes.NewBufferString(header)
	for i := range roles {
		raw, err := yaml.Marshal(roles[i])
		if err != nil {
			return nil, err
		}
		tree := map[string]any{}
		if err := yaml.Unmarshal(raw, &tree); err != nil {
			return nil, err
		}
		if metadata, ok := tree["metadata"].(map[string]any); ok {
			maps.DeleteFunc(metadata, func(key string, _ any) bool { return key == "creationTimestamp" })
		}
		if raw, err = yaml.Marshal(tree); err != nil {
			return nil, err
		}
		out.WriteString("---\n")
		out.Write(raw)
	}
	return out.Bytes(), nil
}
