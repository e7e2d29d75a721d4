package clustertemplate

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	clusterctlv1 "sigs.k8s.io/cluster-api/api/clusterctl/v1alpha3"
	"sigs.k8s.io/cluster-api/clusterctl/management"
	"sigs.k8s.io/cluster-api/packages"
	"sigs.k8s.io/cluster-api/packages/inventory"
	"sigs.k8s.io/cluster-api/packages/manifest"
	"sigs.k8s.io/cluster-api/packages/repository"
)

func TestChoose(t *testing.T) {
	entry := func(namespace, name, version string) clusterctlv1.Provider {
		return clusterctlv1.Provider{ObjectMeta: metav1.ObjectMeta{Namespace: namespace}, ProviderName: name, Type: "InfrastructureProvider", Version: version}
	}
	declared := func(name string) inventory.Declarations {
		d := inventory.Declaration{Type: clusterctlv1.InfrastructureProviderType}
		d.SetNamespace("ns")
		d.SetName(name)
		return inventory.Declarations{clusterctlv1.ManifestLabel(name, d.Type): d}
	}
	tests := map[string]struct {
		reason    string
		installed inventory.Inventory
		declared  inventory.Declarations
		ref, want packages.Ref
		err       string
	}{
		"Only":    {reason: "The only provider is used.", installed: inventory.Inventory{entry("a", "aws", "v1.0.0")}, want: packages.Ref{Name: "aws", Version: "v1.0.0"}},
		"Named":   {reason: "A name gets the installed version.", installed: inventory.Inventory{entry("a", "aws", "v1.0.0"), entry("b", "toy", "v2.0.0")}, ref: packages.Ref{Name: "toy"}, want: packages.Ref{Name: "toy", Version: "v2.0.0"}},
		"Several": {reason: "One of several must be specified.", installed: inventory.Inventory{entry("a", "aws", "v1.0.0"), entry("b", "toy", "v2.0.0")}, err: "several infrastructure providers (aws, toy): choose one with --infrastructure"},
		"None":    {reason: "Without any the error shows the alternatives.", err: "has no infrastructure provider: install one with"},
		"Operator": {
			reason: "Where the operator manages providers, they are declared.", ref: packages.Ref{Name: "toy"}, declared: declared("aws"),
			err: "the operator manages providers here: declare it with `clusterctl operator init --infrastructure toy`",
		},
		"Declared": {
			reason: "One that is declared, and not installed, has a reason.", ref: packages.Ref{Name: "toy"}, declared: declared("toy"),
			err: "the operator has not installed what InfrastructureProvider ns/toy declares: see `kubectl describe infrastructureprovider toy -n ns`, and correct that object",
		},
		"Absent":   {reason: "One that is not installed has no version.", ref: packages.Ref{Name: "toy"}, err: "specify a version with --infrastructure toy:{version}"},
		"Versions": {reason: "One of several versions must be specified.", installed: inventory.Inventory{entry("a", "aws", "v1.0.0"), entry("b", "aws", "v2.0.0")}, err: "several versions (v1.0.0, v2.0.0): choose one with --infrastructure aws:{version}"},
		"Twice":    {reason: "The same version twice counts once.", installed: inventory.Inventory{entry("a", "aws", "v1.0.0"), entry("b", "aws", "v1.0.0")}, want: packages.Ref{Name: "aws", Version: "v1.0.0"}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			got, err := choose(tc.installed, func() inventory.Declarations { return tc.declared }, tc.ref)
			if tc.err != "" {
				if err == nil || !strings.Contains(err.Error(), tc.err) {
					t.Errorf("%s\nchoose(): want error %q, got: %v", tc.reason, tc.err, err)
				}
				return
			}
			if diff := cmp.Diff(tc.want, got); diff != "" || err != nil {
				t.Errorf("%s\nchoose(): %v -want +got:\n%s", tc.reason, err, diff)
			}
		})
	}
}

// Documents of earlier versions name flavors that have another name now.
func TestRenamedFlavors(t *testing.T) {
	for _, tc := range []struct {
		reason, flavor string
		files          []string
		want           string
	}{
		{"the default template", "", []string{"cluster-template.yaml", "cluster-template-development.yaml"}, "cluster-template.yaml"},
		{"a flavor", "development", []string{"cluster-template-development.yaml"}, "cluster-template-development.yaml"},
		{"the earlier name", "development-topology", []string{"cluster-template-development.yaml"}, "cluster-template-development.yaml"},
		{"a release that still has that name", "development-topology", []string{"cluster-template-development.yaml", "cluster-template-development-topology.yaml"}, "cluster-template-development-topology.yaml"},
		{"neither", "development-topology", []string{"cluster-template.yaml"}, ""},
		{"other flavors have one name", "small-topology", []string{"cluster-template-small.yaml"}, ""},
	} {
		got, err := readFlavor(tc.flavor, func(file string) ([]byte, error) {
			if !slices.Contains(tc.files, file) {
				return nil, repository.ErrNotFound
			}
			return []byte(file), nil
		})
		if string(got) != tc.want || (err == nil) != (tc.want != "") {
			t.Errorf("%s: %q, %v; want %q", tc.reason, got, err, tc.want)
		}
	}
}

func TestMissingClasses(t *testing.T) {
	objects, err := manifest.Parse([]byte(`
{apiVersion: cluster.x-k8s.io/v1beta1, kind: Cluster, metadata: {name: a}, spec: {topology: {class: z}}}
---
{apiVersion: cluster.x-k8s.io/v1beta1, kind: Cluster, metadata: {name: b}, spec: {topology: {class: here}}}
---
{apiVersion: cluster.x-k8s.io/v1beta1, kind: Cluster, metadata: {name: c}, spec: {topology: {class: z}}}
---
{apiVersion: cluster.x-k8s.io/v1beta1, kind: Cluster, metadata: {name: d}, spec: {}}
---
{apiVersion: cluster.x-k8s.io/v1beta1, kind: Cluster, metadata: {name: e}, spec: {topology: {class: a}}}
---
{apiVersion: other.io/v1, kind: Cluster, metadata: {name: f}, spec: {topology: {class: x}}}
---
{apiVersion: cluster.x-k8s.io/v1beta2, kind: Cluster, metadata: {name: g}, spec: {topology: {classRef: {name: m}}}}
---
{apiVersion: cluster.x-k8s.io/v1beta2, kind: Cluster, metadata: {name: h, namespace: ours}, spec: {topology: {classRef: {name: o, namespace: ours}}}}
---
{apiVersion: cluster.x-k8s.io/v1beta2, kind: Cluster, metadata: {name: i, namespace: ours}, spec: {topology: {classRef: {name: p, namespace: shared}}}}
---
{apiVersion: cluster.x-k8s.io/v1beta1, kind: Cluster, metadata: {name: j, namespace: ours}, spec: {topology: {class: q, classNamespace: shared}}}
---
{apiVersion: cluster.x-k8s.io/v1beta1, kind: ClusterClass, metadata: {name: here}}
`))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"a", "m", "o", "z"}, missingClasses(objects)); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestRefuseExisting(t *testing.T) {
	class, err := manifest.Parse([]byte(`
{apiVersion: cluster.x-k8s.io/v1beta1, kind: ClusterClass, metadata: {name: c, namespace: foo}}
---
{apiVersion: toy.example/v1, kind: ToyTemplate, metadata: {name: part, namespace: foo}}
`))
	if err != nil {
		t.Fatal(err)
	}
	cluster := &management.Cluster{Client: fake.NewClientBuilder().WithObjects(class[1].DeepCopy()).Build()}
	err = checkOverwritten(t.Context(), cluster, class, "c")
	want := "ClusterClass c does not exist, but its template ToyTemplate foo/part does"
	if err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("a part that exists must not be overwritten: want %q, got: %v", want, err)
	}
	if err := checkOverwritten(t.Context(), nil, class, "c"); err != nil {
		t.Errorf("without a cluster nothing exists: %v", err)
	}
}
