package journey

import (
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"sigs.k8s.io/cluster-api/sdk/testenv"
)

// TestDefinitionsOfV114 replaces the definitions by those of Cluster API v1.14, which store v1beta2, while managers and a Cluster run. The
// managers notice it, convert for the API server, and write v1beta2 from then on. No Machine is replaced, and the Cluster can be scaled,
// upgraded and deleted.
func TestDefinitionsOfV114(t *testing.T) {
	t.Parallel()
	tools := shared.Management(t).Tools
	dir := filepath.Join(cmp.Or(os.Getenv("CAPI_FACTS_DIR"), filepath.Join(tools.Root, "..", "shared", "facts")), "data", "crds-v1.14")
	if _, err := os.Stat(dir); err != nil {
		t.Skipf("the CRDs of Cluster API v1.14 are absent: set CAPI_FACTS_DIR to the directory with data/crds-v1.14 (%v)", err)
	}
	s := NewStandalone(t, tools)
	testenv.Must(t, tools.install(t.Context(), s.kubeconfig()))
	w := s.Management().World(t)
	c := w.Subject(NewCluster("kept", w.Class(w.Tools.ProjectTemplate())).Workers(1).Build())
	c.Eventually("the Cluster becomes ready", Ready, ControlPlanes(1), Workers(1), c.WorkloadMatches)
	before := c.Snapshot()

	w.define(dir)
	c.Change(SetWorkers(2))
	c.Eventually("the Cluster is scaled", Ready, ControlPlanes(1), Workers(2), c.WorkloadMatches,
		SameMachines((*Snapshot).ControlPlane, before))
	names := map[string]bool{}
	for _, m := range c.Snapshot().Workers() {
		names[m.Name] = true
	}
	if !names[before.Workers()[0].Name] {
		t.Errorf("Machine %s was replaced", before.Workers()[0].Name)
	}
	later := w.Subject(NewCluster("later", "in-memory").Workers(1).Build())
	later.Eventually("another Cluster becomes ready", Ready, ControlPlanes(1), Workers(1), later.WorkloadMatches)
	later.Delete()
	c.Change(SetVersion(newer))
	c.Eventually("the Cluster is upgraded", Ready, ControlPlanes(1), Workers(2), Version(newer), c.WorkloadMatches)
	c.Gone()
}

// define replaces the definitions by those in a directory, with the conversion webhooks of our managers, and returns when API servers
// trust these.
func (w *World) define(dir string) {
	w.t.Helper()
	scheme := runtime.NewScheme()
	testenv.Must(w.t, apiextensionsv1.AddToScheme(scheme))
	api, err := client.New(w.Config, client.Options{Scheme: scheme})
	testenv.Must(w.t, err)
	for _, p := range publishedComponents(w.Tools.Infrastructure) {
		if p.folder == "inmemory" {
			continue // v1.14 does not have it.
		}
		definitions, err := p.definitions(filepath.Join(dir, p.folder))
		testenv.Must(w.t, err)
		for _, definition := range definitions {
			theirs := &apiextensionsv1.CustomResourceDefinition{}
			testenv.Must(w.t, runtime.DefaultUnstructuredConverter.FromUnstructured(definition.Object, theirs))
			w.replace(api, theirs)
		}
	}
	testenv.Eventually(w.t, "the managers are trusted to convert", func() error {
		list := &apiextensionsv1.CustomResourceDefinitionList{}
		if err := api.List(w.t.Context(), list, client.HasLabels{"cluster.x-k8s.io/provider"}); err != nil {
			return err
		}
		converting := 0
		for _, crd := range list.Items {
			if crd.Spec.Conversion.Strategy != apiextensionsv1.WebhookConverter {
				continue
			}
			converting++
			if len(crd.Spec.Conversion.Webhook.ClientConfig.CABundle) == 0 {
				return fmt.Errorf("%s has no CA bundle", crd.Name)
			}
		}
		if converting < 15 {
			return fmt.Errorf("%d definitions are converted by webhooks", converting)
		}
		return nil
	})
}

// replace replaces the definition of the same name, if there is one.
func (w *World) replace(api client.Client, theirs *apiextensionsv1.CustomResourceDefinition) {
	w.t.Helper()
	err := retry.RetryOnConflict(retry.DefaultRetry, func() error {
		crd := &apiextensionsv1.CustomResourceDefinition{}
		if err := api.Get(w.t.Context(), client.ObjectKeyFromObject(theirs), crd); err != nil {
			return client.IgnoreNotFound(err)
		}
		crd.Spec = theirs.Spec
		crd.Labels["cluster.x-k8s.io/v1beta2"] = "v1beta2"
		return api.Update(w.t.Context(), crd)
	})
	testenv.Must(w.t, err)
}
