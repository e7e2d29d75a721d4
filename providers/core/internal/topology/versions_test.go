package topology

import (
	"fmt"
	"slices"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/sdk/contract"
	"sigs.k8s.io/cluster-api/sdk/testenv"
	"sigs.k8s.io/cluster-api/sdk/testenv/object"
)

const testGroup = "versions.example.com"

// testDefinition returns a kind of a provider that serves two API versions, of which only the older one implements the contract.
func testDefinition(kind string) *apiextensionsv1.CustomResourceDefinition {
	crd := object.CRD(schema.GroupVersionKind{Group: testGroup, Version: "v1beta1", Kind: kind}, "v1alpha1")
	crd.Labels[contract.V1Beta1.Label()] = "v1alpha1"
	return crd
}

func testKinds() []string {
	return []string{"FooCluster", "FooClusterTemplate", "FooMachineTemplate"}
}

// setContract sets the API versions that implement the contract, and waits until the controller's cache has them.
func (w *world) setContract(versions, newest string) {
	w.t.Helper()
	for _, kind := range testKinds() {
		definition := testDefinition(kind)
		testenv.Must(w.t, w.Get(w.t.Context(), client.ObjectKeyFromObject(definition), definition))
		before := definition.DeepCopy()
		definition.Labels[contract.V1Beta1.Label()] = versions
		testenv.Must(w.t, w.Patch(w.t.Context(), definition, client.MergeFrom(before)))
		w.eventually(newest+" of "+kind+" is cached", func() error {
			have, err := w.control.Planner.External.Versions.Newest(w.t.Context(), schema.GroupKind{Group: testGroup, Kind: kind})
			if err == nil && have.Version != newest {
				err = fmt.Errorf("the newest version is %s", have.Version)
			}
			return err
		})
	}
}

// A new release of a provider adds an API version. The class and its patches still use the old one: only references change,
// once.
func TestAProviderAddsAnAPIVersion(t *testing.T) {
	w := newWorld(t)
	e := server.Start(t)
	for _, kind := range testKinds() {
		e.Install(t, testDefinition(kind))
	}
	w.setContract("v1alpha1", "v1alpha1")
	w.applyFile("testdata/foreign.yaml")
	w.reconciledClass("foreign")
	c := w.cluster("c")
	c.Spec.Topology.ClassRef.Name = "foreign"
	w.created(c)
	w.reconciled(c)
	w.expect("steady", []string{}, w.writes(c))

	w.setContract("v1alpha1_v1beta1", "v1beta1")
	w.expect("the reference that has a version is updated, and nothing is rotated", []string{"PATCH kubeadmcontrolplanes/c-XXXXX"}, w.writes(c))
	w.expect("steady again", []string{}, w.writes(c))
	w.expect("API version of the reference of the control plane", testGroup+"/v1beta1",
		fieldOf(w.one("KubeadmControlPlane", "c", c), "spec.machineTemplate.infrastructureRef.apiVersion"))

	changed(w, c, func(c *clusterv1.Cluster) {
		c.Spec.Topology.Variables = []clusterv1.ClusterVariable{{Name: "startup", Value: raw(`"20s"`)}}
	})
	w.expect("a patch for the old version still applies", true,
		slices.Contains(w.writes(c), "PATCH foomachinetemplates/c-md-0-XXXXX"))
}

// writes reconciles and returns the writes.
func (w *world) writes(c *clusterv1.Cluster) []string {
	w.t.Helper()
	return append([]string{}, normalized(w.reconciled(c))...)
}
