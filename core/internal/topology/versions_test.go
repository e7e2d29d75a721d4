package topology

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta1"
	"sigs.k8s.io/cluster-api/provider/contract"
)

const foreignGroup = "versions.example.com"

// foreignDefinition is a kind of a provider that serves two versions and so far speaks the contract in the older one.
func foreignDefinition(kind string) *apiextensionsv1.CustomResourceDefinition {
	yes := true
	schema := &apiextensionsv1.CustomResourceValidation{OpenAPIV3Schema: &apiextensionsv1.JSONSchemaProps{
		Type: "object", XPreserveUnknownFields: &yes,
	}}
	plural := strings.ToLower(kind) + "s"
	return &apiextensionsv1.CustomResourceDefinition{
		ObjectMeta: metav1.ObjectMeta{Name: plural + "." + foreignGroup, Labels: map[string]string{contract.Label(): "v1alpha1"}},
		Spec: apiextensionsv1.CustomResourceDefinitionSpec{
			Group: foreignGroup, Scope: apiextensionsv1.NamespaceScoped,
			Names: apiextensionsv1.CustomResourceDefinitionNames{Plural: plural, Singular: strings.ToLower(kind), Kind: kind, ListKind: kind + "List"},
			Versions: []apiextensionsv1.CustomResourceDefinitionVersion{
				{Name: "v1alpha1", Served: true, Schema: schema}, {Name: "v1beta1", Served: true, Storage: true, Schema: schema},
			},
		},
	}
}

func foreignKinds() []string {
	return []string{"FooCluster", "FooClusterTemplate", "FooMachineTemplate"}
}

// speaks makes the provider say in which versions it speaks the contract, and waits until the controller knows.
func (w *world) speaks(versions, newest string) {
	w.t.Helper()
	for _, kind := range foreignKinds() {
		definition := foreignDefinition(kind)
		if err := w.Get(w.t.Context(), client.ObjectKeyFromObject(definition), definition); err != nil {
			w.t.Fatal(err)
		}
		before := definition.DeepCopy()
		definition.Labels[contract.Label()] = versions
		if err := w.Patch(w.t.Context(), definition, client.MergeFrom(before)); err != nil {
			w.t.Fatal(err)
		}
		w.eventually(newest+" of "+kind+" is seen", func() error {
			have, err := w.control.Planner.External.Versions.Newest(w.t.Context(), schema.GroupKind{Group: foreignGroup, Kind: kind})
			if err == nil && have.Version != newest {
				err = fmt.Errorf("it is %s", have.Version)
			}
			return err
		})
	}
}

// A provider learns a new version of its API. The class goes on naming the old one, and its patches with it: nothing
// but references change, once.
func TestAProviderLearnsANewVersion(t *testing.T) {
	w := newWorld(t)
	e := server.Start(t)
	for _, kind := range foreignKinds() {
		e.Install(t, foreignDefinition(kind))
	}
	w.speaks("v1alpha1", "v1alpha1")
	w.applyFile("testdata/foreign.yaml")
	w.reconciledClass("foreign")
	c := w.cluster("c")
	c.Spec.Topology.Class = "foreign"
	w.created(c)
	w.reconciled(c)
	w.expect("steady", []string{}, w.writes(c))

	w.speaks("v1alpha1_v1beta1", "v1beta1")
	w.expect("references are brought up to date, and nothing is rotated",
		[]string{"PATCH clusters/c", "PATCH kubeadmcontrolplanes/c-XXXXX", "PATCH machinedeployments/c-md-0-XXXXX"}, w.writes(c))
	w.expect("steady again", []string{}, w.writes(c))
	md := &clusterv1.MachineDeployment{}
	if err := w.Get(t.Context(), client.ObjectKeyFromObject(w.one("MachineDeployment", "c-md-0", c)), md); err != nil {
		t.Fatal(err)
	}
	w.expect("what the Cluster, its control plane and its workers refer to",
		[]any{foreignGroup + "/v1beta1", foreignGroup + "/v1beta1", foreignGroup + "/v1beta1"},
		[]any{c.Spec.InfrastructureRef.APIVersion, md.Spec.Template.Spec.InfrastructureRef.APIVersion,
			fieldOf(w.one("KubeadmControlPlane", "c", c), "spec.machineTemplate.infrastructureRef.apiVersion")})

	changed(w, c, func(c *clusterv1.Cluster) {
		c.Spec.Topology.Variables = []clusterv1.ClusterVariable{{Name: "startup", Value: raw(`"20s"`)}}
	})
	w.expect("a patch for the old version finds its template", true,
		slices.Contains(w.writes(c), "PATCH foomachinetemplates/c-md-0-XXXXX"))
}

// writes reconciles and returns what was written.
func (w *world) writes(c *clusterv1.Cluster) []string {
	w.t.Helper()
	return append([]string{}, normal(w.reconciled(c))...)
}
