package openapi_test

import (
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/yaml"

	"sigs.k8s.io/cluster-api/hack/openapi"
)

// newer is the version of payloads in the document.
const newer = "v1beta2"

// hook is what requests and responses of a hook have, apart from what all have. Fields that may be unset end with a question mark.
type hook struct {
	Request, Response []string
	// Later is whether the hook is not called yet.
	Later bool
}

// TestHooks pins the hooks of Cluster API v1.14 and their fields.
func TestHooks(t *testing.T) {
	fields := func(names ...string) []string { return names }
	remaining := func(names ...string) []string { return append(names, "controlPlaneUpgrades?", "workersUpgrades?") }
	retry, before := fields("retryAfterSeconds"), remaining("cluster", "fromKubernetesVersion", "toKubernetesVersion")
	after := remaining("cluster", "kubernetesVersion")
	want := map[string]hook{
		"discovery":                    {Response: fields("handlers")},
		"beforeclustercreate":          {Request: fields("cluster"), Response: retry},
		"aftercontrolplaneinitialized": {Request: fields("cluster")},
		"beforeclusterupgrade":         {Request: before, Response: retry},
		"beforecontrolplaneupgrade":    {Request: before, Response: retry, Later: true},
		"aftercontrolplaneupgrade":     {Request: after, Response: retry},
		"beforeworkersupgrade":         {Request: before, Response: retry, Later: true},
		"afterworkersupgrade":          {Request: after, Response: retry, Later: true},
		"afterclusterupgrade":          {Request: fields("cluster", "kubernetesVersion"), Response: retry},
		"beforeclusterdelete":          {Request: fields("cluster"), Response: retry},
		"generateupgradeplan": {
			Request:  fields("cluster", "fromControlPlaneKubernetesVersion", "fromWorkersKubernetesVersion?", "toKubernetesVersion"),
			Response: remaining(), Later: true,
		},
		"generatepatches":   {Request: fields("items", "variables"), Response: fields("items")},
		"validatetopology":  {Request: fields("items", "variables")},
		"discovervariables": {Response: fields("variables")},
		"canupdatemachine": {
			Request:  fields("current", "desired"),
			Response: fields("bootstrapConfigPatch?", "infrastructureMachinePatch?", "machinePatch?"), Later: true,
		},
		"canupdatemachineset": {
			Request:  fields("current", "desired"),
			Response: fields("bootstrapConfigTemplatePatch?", "infrastructureMachineTemplatePatch?", "machineSetPatch?"), Later: true,
		},
		"updatemachine": {Request: fields("desired"), Response: retry, Later: true},
	}
	d, parsed := parse(t, generate(t)[openapi.File])
	got := map[string]hook{}
	for path, item := range parsed["paths"].(map[string]any) {
		post := item.(map[string]any)["post"].(map[string]any)
		got[strings.Split(path, "/")[3]] = hook{
			Request: d.fields(post["requestBody"]), Response: d.fields(post["responses"].(map[string]any)["200"]),
			Later: strings.Contains(post["description"].(string), "does not call the hook"),
		}
	}
	for name, h := range want {
		slices.Sort(h.Request)
		slices.Sort(h.Response)
		want[name] = h
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

// fields returns the fields of the body of a request or response.
func (d *document) fields(body any) []string {
	content := body.(map[string]any)["content"].(map[string]any)["application/json"].(map[string]any)
	schema := d.expand(content["schema"]).(map[string]any)
	required, _ := schema["required"].([]any)
	var out []string
	for _, name := range slices.Sorted(maps.Keys(schema["properties"].(map[string]any))) {
		switch {
		case slices.Contains([]string{"apiVersion", "kind", "settings", "status", "message"}, name):
		case slices.Contains(required, any(name)):
			out = append(out, name)
		default:
			out = append(out, name+"?")
		}
	}
	return out
}

// TestPayloads compares the objects in requests with their CustomResourceDefinitions: all fields, in the version of the document.
func TestPayloads(t *testing.T) {
	d, _ := parse(t, generate(t)[openapi.File])
	for name := range d.schemas {
		if strings.Contains(name, ".v1beta1.") {
			t.Errorf("the document has %s, which is not in %s", name, newer)
		}
	}
	for kind, plural := range map[string]string{"Cluster": "clusters", "Machine": "machines", "MachineSet": "machinesets"} {
		content, err := os.ReadFile(filepath.Join(root, "providers", "core", "config", "crd", "cluster.x-k8s.io_"+plural+".yaml"))
		if err != nil {
			t.Fatal(err)
		}
		definition := apiextensionsv1.CustomResourceDefinition{}
		if err := yaml.UnmarshalStrict(content, &definition); err != nil {
			t.Fatal(err)
		}
		i := slices.IndexFunc(definition.Spec.Versions, func(v apiextensionsv1.CustomResourceDefinitionVersion) bool { return v.Name == newer })
		if i < 0 {
			t.Fatalf("%s is not served in %s", kind, newer)
		}
		want := d.plain(definition.Spec.Versions[i].Schema.OpenAPIV3Schema)
		got := d.plain(d.schemas["sigs.k8s.io.cluster-api.api.core."+newer+"."+kind])
		for _, schema := range []map[string]any{want, got} {
			delete(schema["properties"].(map[string]any), "metadata") // Definitions do not describe it.
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-definition +document)\n%s", kind, diff)
		}
	}
}

// plain returns a schema as it is parsed, with its types expanded.
func (d *document) plain(schema any) map[string]any {
	content, err := yaml.Marshal(schema)
	if err != nil {
		d.t.Fatal(err)
	}
	var out map[string]any
	if err := yaml.Unmarshal(content, &out); err != nil {
		d.t.Fatal(err)
	}
	return d.expand(out).(map[string]any)
}
