package components

import (
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/packages/manifest"
)

// Whatever a provider publishes: its components are the same each time, all of them carry its label, there is one Namespace,
// the target, nothing that lives in a namespace is in another one, and making components of components changes nothing.
func FuzzComponents(f *testing.F) {
	for _, text := range []string{
		everything, "apiVersion: v1\nkind: Namespace\nmetadata: {name: a}\n", "apiVersion: v1\nkind: Service\nmetadata: {name: a}\n", "apiVersion: v1\nkind: Namespace\n", "apiVersion: v1\nkind: Service\nmetadata: {labels: {a: 1}, annotations: [x]}\n",
		"apiVersion: apps/v1\nkind: Deployment\nspec: {template: {spec: {containers: [{name: manager, image: \"${I}\"}]}}}\n", "apiVersion: apps/v1\nkind: DaemonSet\nspec: {template: {spec: {containers: [{image: 1}]}}}\n", "apiVersion: apps/v1\nkind: Deployment\nspec: {template: {spec: {containers: [{image: \"r:5000/é@sha256:x\"}, null]}}}\n",
		"apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata: {name: a.b}\nspec: {group: [a], names: {kind: Sheep}}\n", "apiVersion: rbac.authorization.k8s.io/v1\nkind: RoleBinding\nsubjects: {a: b}\n", "apiVersion: v1\nkind: Service\nmetadata: {name: \"${X}\"}\n", "apiVersion: v1\nkind: Service\nmetadata: x\n",
		"apiVersion: cert-manager.io/v1\nkind: Certificate\nmetadata: {namespace: a}\nspec: {dnsNames: [a.a.svc, 1]}\n", "apiVersion: admissionregistration.k8s.io/v1\nkind: MutatingWebhookConfiguration\nwebhooks: [{clientConfig: {service: null}}, x]\n",
	} {
		f.Add([]byte(text), "target", "registry.example.com/x", "value")
		f.Add([]byte(text), "", "", "a: b")
	}
	f.Fuzz(func(t *testing.T, text []byte, namespace, image, value string) {
		if len(text) > 16<<10 || !utf8.ValidString(namespace+image+value) {
			t.Skip("long, or no configuration that can be read")
		}
		o := Options{Version: "v1.0.0", TargetNamespace: namespace, Images: ImageOverrides{AllComponents: {Repository: image, Tag: "v9"}}}
		o.Variables = func(string) (string, bool) { return value, true }
		first, err := New(mine(), text, o)
		if err != nil {
			return
		}
		second, err := New(mine(), text, o)
		if err != nil {
			t.Fatalf("the second time: %v", err)
		}
		if diff := cmp.Diff(first, second); diff != "" {
			t.Fatalf("the second time is different (-first +second):\n%s", diff)
		}
		checkObjects(t, first)
		_, _, _ = first.ManagerDeployments(), first.NeedsCertManager(), first.ValidateCRDNames()
		if n := len(InstallOrder(first.Objects)); n != len(first.Objects) {
			t.Errorf("%d objects in order of %d", n, len(first.Objects))
		}
		written, err := manifest.Format(first.Objects)
		if err != nil {
			t.Fatal(err)
		}
		again, err := New(mine(), written, Options{Version: o.Version, TargetNamespace: first.TargetNamespace})
		if err != nil {
			if strings.Contains(string(written), "$") {
				return // A value made another expression.
			}
			t.Fatalf("components of components: %v\n%s", err, written)
		}
		if diff := cmp.Diff(first.Objects, again.Objects); diff != "" {
			t.Errorf("components of components (-first +second):\n%s", diff)
		}
	})
}

func checkObjects(t *testing.T, c *Components) {
	t.Helper()
	scope, namespaces := manifest.ScopeOf(c.Objects), 0
	for i := range c.Objects {
		o := &c.Objects[i]
		if _, ok := o.Object["metadata"].(map[string]any); !ok && o.Object["metadata"] != nil {
			continue // No API server takes it.
		}
		if o.GetLabels()[clusterv1.ProviderNameLabel] != c.Provider.ManifestLabel() {
			t.Errorf("%s has labels %v", manifest.Describe(o), o.GetLabels())
		}
		if scope.Namespaced(o) && o.GetNamespace() != c.TargetNamespace {
			t.Errorf("%s is not in %q", manifest.Describe(o), c.TargetNamespace)
		}
		if o.GetKind() == "Namespace" {
			namespaces++
			if o.GetName() != c.TargetNamespace {
				t.Errorf("%s is not %q", manifest.Describe(o), c.TargetNamespace)
			}
		}
	}
	if namespaces != 1 {
		t.Errorf("%d Namespaces", namespaces)
	}
}

// An image stays what it is without overrides; with one, repository and tag are those of it, name and digest stay, and doing
// it again changes nothing.
func FuzzImage(f *testing.F) {
	for _, image := range []string{"a", "a:b", "r/a:b", "r:5000/a", "r:5000/x/a:b@sha256:c", "@", ":", "a@", "a:", "/", "a/", "é/日本:x", "a b", "a@b@c", "a:b:c", "r/:b"} {
		f.Add(image, "mirror.example.com:5000/k8s/", "v9")
		f.Add(image, "", "")
		f.Add(image, "m", "")
	}
	f.Fuzz(func(t *testing.T, image, repository, tag string) {
		if same, err := (ImageOverrides{}).Apply("c", image); err == nil && same != image {
			t.Errorf("%q becomes %q without overrides", image, same)
		}
		overrides := ImageOverrides{AllComponents: {Repository: repository, Tag: tag}}
		got, err := overrides.Apply("c", image)
		if err != nil {
			return
		}
		_, _, digest, err := splitImage(image)
		if err != nil {
			t.Fatal(err)
		}
		if strings.ContainsAny(repository+tag, "@: \t\n") || strings.Contains(tag, "/") {
			return // What users write is theirs.
		}
		name, gotTag, gotDigest, err := splitImage(got)
		if err != nil {
			t.Fatalf("%q becomes %q: %v", image, got, err)
		}
		if prefix := strings.TrimSuffix(repository, "/") + "/"; repository != "" && !strings.HasPrefix(name, prefix) || tag != "" && gotTag != tag || gotDigest != digest {
			t.Errorf("%q with %q and %q becomes %q", image, repository, tag, got)
		}
		if again, err := overrides.Apply("c", got); err != nil || again != got {
			t.Errorf("%q becomes %q, which becomes %q, %v", image, got, again, err)
		}
	})
}
