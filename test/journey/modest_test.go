package journey

import (
	"crypto/tls"
	"net/http"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	inmemoryv1 "sigs.k8s.io/cluster-api/api/infrastructure/inmemory/v1alpha1"
	"sigs.k8s.io/cluster-api/provider/pki"
)

// A provider of somebody else may simulate machines too, with API servers and etcd that know no more than Cluster API v1.7
// needs: its own in-memory provider's. It also wants authorities with RSA keys, which its users bring.
func TestModestWorkloadCluster(t *testing.T) {
	t.Parallel()
	w := shared.World(t)
	objects, err := readObjects(w.Tools.ProjectTemplate().Class)
	if err != nil {
		t.Fatal(err)
	}
	for _, o := range objects {
		if o.GetKind() == "InMemoryClusterTemplate" {
			emulated := map[string]string{inmemoryv1.FaultsAnnotation: `{"emulate": "v1.7"}`}
			if err := unstructured.SetNestedStringMap(o.Object, emulated, "spec", "template", "metadata", "annotations"); err != nil {
				t.Fatal(err)
			}
		}
		w.Applied(o)
	}
	cluster := w.Generated(w.Tools.ProjectTemplate(), "modest", older, 3, 1)
	bringKeys(t, w, client.ObjectKeyFromObject(cluster))
	c := w.Subject(cluster)
	c.Eventually("it comes up", Ready, ControlPlanes(3), Workers(1), Version(older))
	c.emulates(t)
	before := c.Picture()
	c.Change(setVersion(newer))
	c.Eventually("it is upgraded", Ready, ControlPlanes(3), Workers(1), Version(newer),
		NewMachines((*Picture).ControlPlane, before), NewMachines((*Picture).Workers, before))
	c.Change(setControlPlanes(1))
	c.Eventually("the control plane shrinks", Ready, ControlPlanes(1), Workers(1))
	c.Delete()
}

// emulates checks that the workload cluster is one of which this journey says something.
func (c *Subject) emulates(t *testing.T) {
	t.Helper()
	address := c.Picture().Cluster.Spec.ControlPlaneEndpoint.String()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "https://"+address+"/version", nil)
	if err != nil {
		t.Fatal(err)
	}
	anybody := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{MinVersion: tls.VersionTLS12, InsecureSkipVerify: true}}} // Anybody may ask for the version.
	answer, err := anybody.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close() // Nothing was read.
	anybody.CloseIdleConnections()
	if answer.StatusCode != http.StatusNotFound {
		t.Fatalf("GET /version: %s, an API server like v1.7's has none", answer.Status)
	}
}

// bringKeys makes the Secrets of a cluster's keys as a user does who wants RSA.
func bringKeys(t *testing.T, w *World, cluster client.ObjectKey) {
	t.Helper()
	keys := pki.NewKeys(pki.RSA2048)
	for _, purpose := range []pki.Purpose{pki.ClusterCA, pki.EtcdCA, pki.FrontProxyCA, pki.ServiceAccount} {
		pair, err := keys.Generate(purpose, time.Now())
		if err != nil {
			t.Fatal(err)
		}
		w.Applied(pki.NewSecret(cluster, purpose, pair.Data(), nil))
	}
}
