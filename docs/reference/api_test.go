package reference

import (
	"os"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"

	"sigs.k8s.io/cluster-api/docs/manual"
	"sigs.k8s.io/cluster-api/sdk/version"
)

const definition = `spec:
  group: toys.example.org
  names: {kind: KIND, plural: PLURAL}
  versions:
  - name: v1
    schema: {openAPIV3Schema: {description: The old one}}
  - name: v2
    storage: true
    schema:
      openAPIV3Schema:
        description: |-
          KIND is <one>
          of them.
        properties:
          apiVersion: {type: string}
          kind: {type: string}
          metadata: {type: object}
          spec:
            type: object
            required: [size]
            properties:
              size: {x-kubernetes-int-or-string: true, description: "Its size, a|b", default: 3}
              color: {type: string, enum: [red, blue]}
              count: {type: integer, format: int32}
              parts: {type: array, items: {type: object, properties: {name: {type: string}}}}
              labels: {type: object, additionalProperties: {type: string}}
              raw: {type: object, x-kubernetes-preserve-unknown-fields: true}
`

func TestAPI(t *testing.T) {
	file := func(kind string) *fstest.MapFile {
		return &fstest.MapFile{Data: []byte(strings.NewReplacer("KIND", kind, "PLURAL", strings.ToLower(kind)+"s").Replace(definition))}
	}
	pages, err := API(fstest.MapFS{"p/crd/b.yaml": file("Block"), "p/crd/a.yaml": file("Car"), "p/other.yaml": {Data: []byte("{")}}, "*/crd/*.yaml")
	if err != nil {
		t.Fatal(err)
	}
	want := "# API toys.example.org/v2\n\nAll fields of the kinds of this version. `kubectl explain` shows the same.\n\n" +
		"## Block\n\nBlock is \\<one\\> of them.\n\n`toys.example.org/v2`, `blocks`\n\n" +
		"| field | type | |\n|---|---|---|\n" +
		"| `spec` | object |  |\n" +
		"| `spec.color` | string | One of `red`, `blue`. |\n" +
		"| `spec.count` | int32 |  |\n" +
		"| `spec.labels` | map of string |  |\n" +
		"| `spec.parts` | list of object |  |\n" +
		"| `spec.parts[].name` | string |  |\n" +
		"| `spec.raw` | any |  |\n" +
		"| `spec.size` | integer or string | Its size, a\\|b Required. Default: `3`. |\n\n" +
		"## Car\n\nCar is \\<one\\> of them.\n\n`toys.example.org/v2`, `cars`\n\nThe fields are those of [Block](#block).\n\n"
	if len(pages) != 2 || pages[0].File != "api-toys-v2.md" || pages[1].File != "api-toys-v1.md" {
		t.Fatalf("got %d pages", len(pages))
	}
	if old := "# API toys.example.org/v1\n\nAll fields of the kinds of this version, which is served, but not stored."; !strings.HasPrefix(string(pages[1].Source), old) {
		t.Errorf("the page of the version that is not stored is\n%s", pages[1].Source)
	}
	if diff := cmp.Diff(want, string(pages[0].Source)); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if _, err := API(fstest.MapFS{"x.yaml": {Data: []byte("{")}}, "*.yaml"); err == nil || !strings.HasPrefix(err.Error(), "x.yaml: ") {
		t.Errorf("a broken file: got %v", err)
	}
}

// TestSource checks the pages of what the repository's code declares.
func TestSource(t *testing.T) {
	pages, err := Source(os.DirFS("../.."))
	if err != nil {
		t.Fatal(err)
	}
	sources := map[string]string{}
	for _, p := range pages {
		sources[p.File] = string(p.Source)
	}
	for file, rows := range map[string][]string{
		"names.md": {
			"| `cluster.x-k8s.io/cluster-name` | ", "| `cluster.x-k8s.io/paused` | ", "| `machine.cluster.x-k8s.io` | ", "## Finalizers",
		},
		"conditions.md": {"| `EtcdClusterHealthy` | ", "| `TopologyReconciled` | ", "## Reasons of v1beta1"},
		"metrics.md":    {"| `capi_step_duration_seconds` | histogram: Duration of steps of reconciles. |", "| `capim_apiserver_request_total` | counter: "},
		"messages.md":   {"## Events of core", "- Scaling up MachineSet to %d replicas"},
	} {
		for _, row := range rows {
			if !strings.Contains(sources[file], row) {
				t.Errorf("%s does not have %q", file, row)
			}
		}
	}
}

// TestOwnAPI checks that the book can have all kinds of the repository.
func TestOwnAPI(t *testing.T) {
	pages, err := API(os.DirFS("../.."), "providers/*/config/crd/*.yaml")
	if err != nil {
		t.Fatal(err)
	}
	site, err := manual.New(version.Info{GitVersion: "v2.0.0"}, pages...)
	if err != nil {
		t.Fatal(err)
	}
	for file, want := range map[string]string{
		"api-cluster-v1beta2.html": `<h2 id="machinehealthcheck">`, "api-controlplane-v1beta2.html": `<code>spec.machineTemplate.spec.deletion`,
	} {
		if !strings.Contains(string(site[file]), want) {
			t.Errorf("%s does not have %s", file, want)
		}
	}
}
