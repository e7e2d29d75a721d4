package compatibility

import (
	"encoding/json"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"sigs.k8s.io/cluster-api/sdk/testenv"
)

var server testenv.Server // shared by the tests of the package, ended by TestMain

func TestMain(m *testing.M) { server.Main(m) }

// unserved is a version that a CRD defines but does not serve.
type unserved struct {
	Name       string
	Deprecated bool
}

// TestUnservedVersions compares the versions that are not served: an API server that has stored objects in one rejects a CRD
// without it.
func TestUnservedVersions(t *testing.T) {
	reference := readDefinitions(t, filepath.Join(facts(t, "crds-v1.7"), "*", "*.yaml"))
	actual := ours(t)
	found := 0
	for _, name := range slices.Sorted(maps.Keys(reference)) {
		if _, ok := actual[name]; !ok {
			continue // TestNames reports it.
		}
		want := unservedOf(reference[name])
		found += len(want)
		if diff := cmp.Diff(want, unservedOf(actual[name])); diff != "" {
			t.Errorf("%s (-reference +ours):\n%s", name, diff)
		}
	}
	if found == 0 {
		t.Error("the reference data has no unserved versions: nothing was compared")
	}
}

func unservedOf(definition object) []unserved {
	var all []unserved
	for _, v := range list(definition, "spec", "versions") {
		if at(v, "served") != true {
			all = append(all, unserved{text(v, "name"), at(v, "deprecated") == true})
		}
	}
	return all
}

// TestUpgradeInPlace replaces the CRDs of v1.7 by ours on an API server that has stored objects in every version.
func TestUpgradeInPlace(t *testing.T) {
	data, err := filepath.Abs(facts(t, "crds-v1.7"))
	if err != nil {
		t.Fatal(err)
	}
	e := server.Start(t)
	theirs, err := e.ReadCRDs(data)
	if err != nil {
		t.Fatal(err)
	}
	next := map[string]*apiextensionsv1.CustomResourceDefinition{}
	for _, component := range []string{"core", "bootstrap-kubeadm", "control-plane-kubeadm"} {
		ours, err := e.ReadCRDs(filepath.Join("providers", component, "config", "crd"))
		if err != nil {
			t.Fatal(err)
		}
		for _, crd := range ours {
			next[crd.Name] = crd
		}
	}
	replaced := 0
	for _, crd := range theirs {
		wanted, ok := next[crd.Name]
		if !ok {
			continue
		}
		t.Run(crd.Name, func(t *testing.T) {
			crd.Spec.Conversion = nil // no manager of v1.7 runs here
			e.Install(t, crd)
			current := &apiextensionsv1.CustomResourceDefinition{}
			if err := e.Client.Get(t.Context(), client.ObjectKeyFromObject(crd), current); err != nil {
				t.Fatal(err)
			}
			current.Status.StoredVersions = nil
			for _, v := range current.Spec.Versions {
				current.Status.StoredVersions = append(current.Status.StoredVersions, v.Name)
			}
			if err := e.Client.Status().Update(t.Context(), current); err != nil {
				t.Fatalf("setting all versions as stored: %v", err)
			}
			spec, err := json.Marshal(map[string]any{"spec": wanted.Spec})
			if err != nil {
				t.Fatal(err)
			}
			if err := e.Client.Patch(t.Context(), current, client.RawPatch("application/merge-patch+json", spec)); err != nil {
				t.Errorf("ours does not replace theirs: %s", strings.TrimSpace(err.Error()))
			}
			replaced++
		})
	}
	if replaced < 15 {
		t.Errorf("only %d definitions were replaced", replaced)
	}
}
