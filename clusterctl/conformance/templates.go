package conformance

import (
	"slices"
	"strings"

	"sigs.k8s.io/cluster-api/clusterctl/tree"
)

// templates checks the cluster templates and ClusterClass definitions.
func (c *checker) templates(names []string) error {
	for _, name := range names {
		base, yaml := strings.CutSuffix(name, ".yaml")
		if !yaml {
			continue
		}
		if class, found := strings.CutPrefix(base, "clusterclass-"); found {
			if err := c.class(name, class); err != nil {
				return err
			}
		} else if base == "cluster-template" || strings.HasPrefix(base, "cluster-template-") {
			if err := c.clusterTemplate(name, names); err != nil {
				return err
			}
		}
	}
	return nil
}

// clusterTemplate checks a cluster template.
func (c *checker) clusterTemplate(file string, names []string) error {
	list, variables, err := c.documents(file, chapterTemplates)
	if err != nil || list == nil {
		return err
	}
	var used []string
	for _, v := range variables {
		used = append(used, v.Name)
	}
	for _, name := range []string{"CLUSTER_NAME", "KUBERNETES_VERSION"} {
		if !slices.Contains(used, name) {
			c.add(Warning, file, 0, chapterTemplates,
				"the variable %s is not used: the argument or flag of `clusterctl generate cluster` for it has no effect", name)
		}
	}
	namespaces, clusters := map[string]bool{}, 0
	for _, d := range list {
		switch d.GetKind() {
		case "Namespace":
			c.add(Error, file, d.line(), chapterTemplates,
				"%s must not be part of the template: the target namespace must be assumed to exist", describe(d))
			continue
		case "Cluster":
			clusters++
			if class, path := tree.Class(&d.Unstructured); class.Name != "" && !slices.Contains(names, "clusterclass-"+class.Name+".yaml") {
				var field []any
				for _, name := range path {
					field = append(field, name)
				}
				c.add(Warning, file, d.line(field...), chapterTemplates, "%s uses ClusterClass %s, but there is no clusterclass-%s.yaml: "+
					"users have to create the class first", describe(d), class.Name, class.Name)
			}
		}
		if namespaces[d.GetNamespace()] = true; len(namespaces) == 2 {
			c.add(Error, file, d.line("metadata", "namespace"), chapterTemplates,
				"%s has another namespace than the objects before: all objects must be in the same one, ${NAMESPACE}", describe(d))
		}
	}
	switch {
	case clusters > 0:
	case slices.ContainsFunc(list, func(d *document) bool { return d.GetKind() == "ClusterClass" }):
		c.add(Warning, file, 0, chapterTemplates, "there is a ClusterClass, but no Cluster: users have to create Clusters themselves")
	default:
		c.add(Error, file, 0, chapterTemplates, "there is no Cluster")
	}
	return nil
}

// class checks a ClusterClass definition.
func (c *checker) class(file, class string) error {
	list, variables, err := c.documents(file, chapterClasses)
	if err != nil || list == nil {
		return err
	}
	if len(variables) > 0 {
		c.add(Warning, file, 0, chapterClasses,
			"the variable %s is used: ClusterClass definitions should not have any, but variables of the ClusterClass", variables[0].Name)
	}
	found := false
	for _, d := range list {
		if d.GetKind() == "ClusterClass" {
			if d.GetName() == class {
				found = true
			} else {
				c.add(Error, file, d.line("metadata", "name"), chapterClasses,
					"%s must be in the file clusterclass-%s.yaml, where `clusterctl generate cluster` looks for it", describe(d), d.GetName())
			}
		}
		if d.GetNamespace() != "" {
			c.add(Warning, file, d.line("metadata", "namespace"), chapterClasses, "%s should not have a namespace: clusterctl sets it", describe(d))
		}
		c.references(d, d.Object, nil)
	}
	if !found {
		c.add(Error, file, 0, chapterClasses, "there is no ClusterClass %s", class)
	}
	return nil
}

// references looks for references with a namespace below a field.
func (c *checker) references(d *document, value any, path []any) {
	switch v := value.(type) {
	case map[string]any:
		if ref, ok := v["ref"].(map[string]any); ok && ref["namespace"] != nil {
			where := append(slices.Clone(path), "ref", "namespace")
			c.add(Warning, d.file, d.line(where...), chapterClasses, "a reference of %s should not have a namespace", describe(d))
		}
		for key, next := range v {
			c.references(d, next, append(slices.Clone(path), key))
		}
	case []any:
		for i, next := range v {
			c.references(d, next, append(slices.Clone(path), i))
		}
	}
}
