package userroles

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/yaml"

	"sigs.k8s.io/cluster-api/hack/statemetrics"
)

const root = "../.."

// written returns the rules in the files of all components, by the role of Kubernetes that they extend.
func written(t *testing.T) map[string][]rbacv1.PolicyRule {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(root, "providers", "*", File))
	if err != nil || len(files) == 0 {
		t.Fatalf("%d files: %v", len(files), err)
	}
	out := map[string][]rbacv1.PolicyRule{}
	for _, file := range files {
		raw, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, document := range strings.Split(string(raw), "---\n")[1:] {
			r := rbacv1.ClusterRole{}
			if err := yaml.UnmarshalStrict([]byte(document), &r); err != nil {
				t.Fatalf("%s: %v", file, err)
			}
			if len(r.Labels) != 1 || r.Labels["rbac.authorization.k8s.io/aggregate-to-"+r.Name] != "true" {
				t.Errorf("%s: the role %s has the labels %v", file, r.Name, r.Labels)
			}
			out[r.Name] = append(out[r.Name], r.Rules...)
		}
	}
	return out
}

// may reports whether one of the rules has a permission.
func may(rules []rbacv1.PolicyRule, verb, group, resource string) bool {
	return slices.ContainsFunc(rules, func(r rbacv1.PolicyRule) bool {
		return slices.Contains(r.Verbs, verb) && slices.Contains(r.APIGroups, group) && slices.Contains(r.Resources, resource)
	})
}

func TestRolesOfAllKinds(t *testing.T) {
	t.Parallel()
	definitions, err := statemetrics.Definitions(root)
	if err != nil {
		t.Fatal(err)
	}
	roles := written(t)
	for _, d := range definitions {
		group, resource := d.Spec.Group, d.Spec.Names.Plural
		if !may(roles["view"], "list", group, resource) {
			t.Errorf("view cannot list %s.%s", resource, group)
		}
		reserved := d.Spec.Scope == apiextensionsv1.ClusterScoped || group == "operator.cluster.x-k8s.io" ||
			strings.HasPrefix(resource, "docker") || strings.HasPrefix(resource, "dev")
		for _, verb := range []string{"create", "update", "patch", "delete", "deletecollection"} {
			if may(roles["admin"], verb, group, resource) == reserved {
				t.Errorf("admin may %s %s.%s: %t", verb, resource, group, !reserved)
			}
			if reserved && may(roles["edit"], verb, group, resource) {
				t.Errorf("edit may %s %s.%s", verb, resource, group)
			}
		}
	}
}

// TestRolesHaveNothingElse fails for permissions that are not for kinds of this project, such as Secrets.
func TestRolesHaveNothingElse(t *testing.T) {
	t.Parallel()
	definitions, err := statemetrics.Definitions(root)
	if err != nil {
		t.Fatal(err)
	}
	known := map[string]bool{"providers.clusterctl.cluster.x-k8s.io": true}
	for _, d := range definitions {
		known[d.Name] = true
		for _, v := range d.Spec.Versions {
			if v.Subresources != nil && v.Subresources.Scale != nil {
				known[d.Spec.Names.Plural+"/scale."+d.Spec.Group] = true
			}
		}
	}
	for name, rules := range written(t) {
		for _, r := range rules {
			for _, group := range r.APIGroups {
				for _, resource := range r.Resources {
					if !known[resource+"."+group] {
						t.Errorf("%s has permissions for %s in group %q", name, resource, group)
					}
				}
			}
			if name == "view" && !slices.Equal(r.Verbs, []string{"get", "list", "watch"}) {
				t.Errorf("view may %v %v", r.Verbs, r.Resources)
			}
		}
	}
}

// TestEditCreatesNoMachines: quotas and classes decide how many machines there are, and of which type.
func TestEditCreatesNoMachines(t *testing.T) {
	t.Parallel()
	edit := written(t)["edit"]
	for _, r := range edit {
		creates := slices.Contains(r.Verbs, "create")
		for _, resource := range r.Resources {
			if creates && !slices.Contains([]string{"clusters", "machinehealthchecks", "machinedrainrules", "etcdbackups"}, resource) {
				t.Errorf("edit may create %s", resource)
			}
		}
		if slices.Contains(r.APIGroups, "infrastructure.cluster.x-k8s.io") {
			t.Errorf("edit may %v %v", r.Verbs, r.Resources)
		}
	}
	if !may(edit, "create", "cluster.x-k8s.io", "clusters") {
		t.Error("edit may not create Clusters")
	}
}

func TestEveryComponentWithKindsHasAPolicy(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	crds := filepath.Join(folder, "providers", "new", "config", "crd")
	if err := os.MkdirAll(crds, 0o755); err != nil {
		t.Fatal(err)
	}
	for file, text := range map[string]string{
		filepath.Join(crds, "things.yaml"):                  "spec: {group: example.com, names: {plural: things}, scope: Namespaced}",
		filepath.Join(filepath.Dir(crds), "component.yaml"): "label: new",
	} {
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := Write(folder); err == nil || !strings.Contains(err.Error(), "component new has kinds") {
		t.Errorf("got %v", err)
	}
}

func TestNothingChangesTwice(t *testing.T) {
	t.Parallel()
	if changed, err := Write(root); err != nil || len(changed) > 0 {
		t.Errorf("%v were not up to date: %v", changed, err)
	}
}
