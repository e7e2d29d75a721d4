package journey

import (
	"crypto/tls"
	"net/http"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	inmemoryv1 "sigs.k8s.io/cluster-api/api/infrastructure/inmemory/v1alpha1"
	"sigs.k8s.io/cluster-api/sdk/pki"
)

// TestLegacyWorkloadCluster uses API servers and etcd that have only the features of Cluster API v1.7's in-memory provider, as
// third-party providers may do: no server-side apply, no bookmarks, resource versions that are not numbers. It also uses CAs
// with RSA keys that a user has created, and manifests in v1beta1.
func TestLegacyWorkloadCluster(t *testing.T) {
	t.Parallel()
	w := shared.World(t)
	objects, err := readObjects(w.Tools.OlderTemplate().Class)
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
	cluster := w.Generated(w.Tools.OlderTemplate(), "legacy", older, 1, 1)
	createKeys(t, w, client.ObjectKeyFromObject(cluster), pki.RSA2048)
	c := w.Subject(cluster)
	c.Eventually("the Cluster becomes ready", Ready, ControlPlanes(1), Workers(1), Version(older))
	c.emulates(t)
	c.Change(SetControlPlanes(3))
	c.Eventually("the control plane is scaled up", Ready, ControlPlanes(3), Workers(1))
	before := c.Snapshot()
	c.Change(SetVersion(newer))
	c.Eventually("the Cluster is upgraded", Ready, ControlPlanes(3), Workers(1), Version(newer),
		NewMachines((*Snapshot).ControlPlane, before), NewMachines((*Snapshot).Workers, before))
	c.Change(SetControlPlanes(1))
	c.Eventually("the control plane is scaled down", Ready, ControlPlanes(1), Workers(1))
	c.Delete()
}

// emulates checks that the API server has the features of v1.7 only.
func (c *Subject) emulates(t *testing.T) {
	t.Helper()
	address := c.Snapshot().Cluster.Spec.ControlPlaneEndpoint.String()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "https://"+address+"/version", nil)
	if err != nil {
		t.Fatal(err)
	}
	anonymous := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{MinVersion: tls.VersionTLS12, InsecureSkipVerify: true}}} // The version is public.
	answer, err := anonymous.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close() // Nothing was read.
	anonymous.CloseIdleConnections()
	if answer.StatusCode != http.StatusNotFound {
		t.Fatalf("GET /version: %s, want 404 as from v1.7", answer.Status)
	}
}

// createKeys creates the Secrets with a cluster's keys, as users do who want other keys than generated ones.
func createKeys(t *testing.T, w *World, cluster client.ObjectKey, algorithm pki.KeyAlgorithm) {
	t.Helper()
	keys := pki.NewKeys(algorithm)
	for _, purpose := range []pki.Purpose{pki.ClusterCA, pki.EtcdCA, pki.FrontProxyCA, pki.ServiceAccount} {
		pair, err := keys.Generate(purpose, time.Now())
		if err != nil {
			t.Fatal(err)
		}
		w.Applied(pki.NewSecret(cluster, purpose, pair.Data(), nil))
	}
}
