package root

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// TestDeleteProviders deletes providers of a management cluster in the ways that users can; each step builds on the ones
// before.
func TestDeleteProviders(t *testing.T) {
	c := newCLI(t)
	j := &journey{cli: c.with("TOY_TOKEN", "secret-token"), Env: deletes.Start(t)}
	t.Setenv("KUBECONFIG", j.Kubeconfig)
	j.fails("Nothing was ever installed.", []string{"delete", "--all"}, "not a management cluster")
	j.works("init", "-i", "toy:v1.0.0")
	j.deleteMistakes()
	j.deleteOne()
	j.deleteWithCRDs()
	j.deleteAll()
}

func (j *journey) deleteMistakes() {
	before := j.versions()
	if out := j.works("__complete", "delete", "--infrastructure", "").Out; !strings.Contains(out, "toy\n") || strings.Contains(out, "aws") {
		j.t.Errorf("installed providers must be completed, got:\n%s", out)
	}
	j.fails("Something must be selected.", []string{"delete"}, "no provider is selected", "--all")
	j.fails("All is all.", []string{"delete", "--all", "-i", "toy"}, "--all deletes all providers")
	j.fails("A name must be known to the cluster.", []string{"delete", "-i", "toys"}, "infrastructure-toys is not installed")
	j.fails("A version must match.", []string{"delete", "-i", "toy:v1.1.0"}, "infrastructure-toy is installed in version v1.0.0, not v1.1.0")
	j.fails("A provider is not its type.", []string{"delete", "-b", "toy"}, "--bootstrap: bootstrap-toy is not installed")
	j.fails("An argument is not a provider.", []string{"delete", "toy"}, `unknown command "toy"`)
	cluster := object("cluster.x-k8s.io/v1beta1", "Cluster", "default", "used")
	if err := j.Env.Client.Create(j.t.Context(), cluster); err != nil {
		j.t.Fatal(err)
	}
	j.fails("Users' objects are not deleted.", []string{"delete", "--all", "--include-crd"}, "--include-crd: ", "Cluster default/used", "delete these first")
	if diff := cmp.Diff(before, j.versions()); diff != "" {
		j.t.Errorf("mistakes must change nothing: -before +after:\n%s", diff)
	}
	if err := j.Env.Client.Delete(j.t.Context(), cluster); err != nil {
		j.t.Fatal(err)
	}
}

// gone checks which objects do not exist.
func (j *journey) gone(want bool, objects ...*unstructured.Unstructured) {
	j.t.Helper()
	for _, o := range objects {
		if err := j.get(o); apierrors.IsNotFound(err) != want && o.GetDeletionTimestamp() == nil {
			j.t.Errorf("%s %s: want gone %t, got %v", o.GetKind(), o.GetName(), want, err)
		}
	}
}

func (j *journey) deleteOne() {
	j.works("delete", "--infrastructure", "toy:v1.0.0")
	j.gone(true,
		object("apps/v1", "Deployment", "toy-system", "toy"),
		object("v1", "Secret", "toy-system", "toy-credentials"),
		object("clusterctl.cluster.x-k8s.io/v1alpha3", "Provider", "toy-system", "infrastructure-toy"))
	j.gone(false,
		object("v1", "Namespace", "", "toy-system"),
		object("apiextensions.k8s.io/v1", "CustomResourceDefinition", "", "toyidentities.toy.example"),
		object("toy.example/v1", "ToyIdentity", "", "default"),
		object("apps/v1", "Deployment", "toy-core-system", "toy-core"))
	if got := len(j.inventory()); got != 3 {
		j.t.Errorf("the other three providers must stay on record, got %d", got)
	}
}

func (j *journey) deleteWithCRDs() {
	j.works("init", "-i", "toy:v1.0.0")
	if err := j.Env.Client.Create(j.t.Context(), object("v1", "ConfigMap", "toy-system", "mine")); err != nil {
		j.t.Fatal(err)
	}
	// The ToyIdentity is in the provider's manifests: it goes with its CRD.
	j.works("delete", "--infrastructure", "toy", "--include-crd")
	j.gone(true, object("apiextensions.k8s.io/v1", "CustomResourceDefinition", "", "toyidentities.toy.example"))
	j.gone(false, object("v1", "ConfigMap", "toy-system", "mine"), object("v1", "Namespace", "", "toy-system"))
}

func (j *journey) deleteAll() {
	const hint = "run `clusterctl delete --all --include-crd --include-namespace`"
	r := j.works("delete", "--all", "--include-namespace")
	if !strings.Contains(r.Err, hint) || !strings.Contains(r.Err, "toy-core-system, toy-system are still being deleted") {
		j.t.Errorf("what is left must be said:\n%s", r.Err)
	}
	j.gone(true, object("admissionregistration.k8s.io/v1", "ValidatingWebhookConfiguration", "", "toy-core"))
	namespace := object("v1", "Namespace", "", "toy-core-system")
	if err := j.get(namespace); err == nil && namespace.GetDeletionTimestamp() == nil {
		j.t.Error("the Namespace must be deleted")
	}
	clusters := object("apiextensions.k8s.io/v1", "CustomResourceDefinition", "", "clusters.cluster.x-k8s.io")
	j.gone(false, clusters)
	if r := j.works("delete", "--all"); !strings.Contains(r.Err, hint) {
		j.t.Errorf("what is left must be said again:\n%s", r.Err)
	}
	used := object("cluster.x-k8s.io/v1beta1", "Cluster", "default", "used")
	if err := j.Env.Client.Create(j.t.Context(), used); err != nil {
		j.t.Fatal(err)
	}
	j.fails("Users' objects are not deleted.", []string{"delete", "--all", "--include-crd"}, "--include-crd: ", "Cluster default/used")
	if err := j.Env.Client.Delete(j.t.Context(), used); err != nil {
		j.t.Fatal(err)
	}
	r = j.works("delete", "--all", "--include-crd", "--include-namespace")
	if !strings.Contains(strings.Join(strings.Fields(r.Err), " "), "cluster-api leftovers: deleted") || strings.Contains(r.Err, hint) {
		j.t.Errorf("what was left must be deleted:\n%s", r.Err)
	}
	j.gone(true, clusters, object("apiextensions.k8s.io/v1", "CustomResourceDefinition", "", "providers.clusterctl.cluster.x-k8s.io"))
}
