package delete

import (
	"context"
	"errors"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterctlv1 "sigs.k8s.io/cluster-api/api/clusterctl/v1alpha3"
	"sigs.k8s.io/cluster-api/clusterctl/iostreams"
	"sigs.k8s.io/cluster-api/clusterctl/management"
	"sigs.k8s.io/cluster-api/packages/apply"
	"sigs.k8s.io/cluster-api/packages/choose"
	"sigs.k8s.io/cluster-api/packages/inventory"
	"sigs.k8s.io/cluster-api/packages/manifest"
	"sigs.k8s.io/cluster-api/sdk/testenv"
)

// everyVariable is the environment variable that, if not empty, makes TestKilled interrupt after every request, in both ways.
const everyVariable = "CAPI_DELETE_EVERY_REQUEST"

// readStride is the distance of the requests before the first deletion after which TestKilled interrupts otherwise. It is odd,
// because responses are lost in every other one.
const readStride = 41

// components are those of a provider; LABEL is its label, NS its namespace, KIND the kind that it defines. The names of its
// cluster-scoped objects do not start with its namespace.
const components = `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: KINDs.toy.example}
spec:
  group: toy.example
  names: {kind: KIND, listKind: KINDList, plural: KINDs, singular: KIND}
  scope: Cluster
  versions:
  - {name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}}
---
{apiVersion: v1, kind: Namespace, metadata: {name: NS}}
---
{apiVersion: v1, kind: ServiceAccount, metadata: {name: manager, namespace: NS}}
---
{apiVersion: v1, kind: Secret, metadata: {name: credentials, namespace: NS}, stringData: {token: hush-hush}}
---
{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole, metadata: {name: LABEL-manager}}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: LABEL-manager}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: LABEL-manager}
subjects: [{kind: ServiceAccount, name: manager, namespace: NS}]
---
{apiVersion: v1, kind: Service, metadata: {name: webhook, namespace: NS}, spec: {ports: [{port: 443}]}}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: manager, namespace: NS}
spec:
  selector: {matchLabels: {app: toy}}
  template: {metadata: {labels: {app: toy}}, spec: {containers: [{name: manager, image: registry.example/toy}]}}
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingWebhookConfiguration
metadata: {name: LABEL}
webhooks: []
---
{apiVersion: toy.example/v1, kind: KIND, metadata: {name: default}}
`

// fixture is a management cluster with two providers, infrastructure-toy and bootstrap-toy.
type fixture struct {
	*testing.T
	env    *testenv.Env
	client client.WithWatch
	writer *apply.Writer
}

func newFixture(t *testing.T) *fixture {
	t.Helper()
	env := server.Start(t)
	scheme, err := management.Scheme()
	testenv.Must(t, err)
	c := env.NewClient(t, scheme)
	r := &fixture{T: t, env: env, client: c, writer: &apply.Writer{Client: c, Backoff: wait.Backoff{Steps: 1}}}
	crd, err := manifest.Parse(inventory.CRD())
	testenv.Must(t, err)
	testenv.Must(t, inventory.EnsureCRD(t.Context(), r.writer, crd))
	r.install("bootstrap-toy", "BootstrapProvider", "boots")
	return r
}

// objects returns the components of a provider.
func (r *fixture) objects(label, kind string) []unstructured.Unstructured {
	r.Helper()
	text := strings.NewReplacer("LABEL", label, "NS", label+"-system", "KIND", kind).Replace(components)
	objects, err := manifest.Parse([]byte(text))
	testenv.Must(r.T, err)
	for i := range objects {
		objects[i].SetLabels(map[string]string{clusterctlv1.ClusterctlLabel: "", "cluster.x-k8s.io/provider": label})
	}
	return objects
}

// install installs what is missing of a provider.
func (r *fixture) install(label, providerType, kind string) {
	r.Helper()
	objects := r.objects(label, kind)
	testenv.Must(r.T, r.writer.Objects(r.Context(), objects[:len(objects)-1]))
	testenv.Must(r.T, apply.WaitEstablished(r.Context(), r.client, kind+"s.toy.example"))
	testenv.Must(r.T, r.writer.Objects(r.Context(), objects[len(objects)-1:]))
	entry := &clusterctlv1.Provider{}
	entry.Namespace, entry.Name = label+"-system", label
	entry.ProviderName, entry.Type, entry.Version = "toy", providerType, "v1.0.0"
	testenv.Must(r.T, client.IgnoreAlreadyExists(r.client.Create(r.Context(), entry)))
}

// exist returns which components of a provider exist, with its inventory.
func (r *fixture) exist(label, kind string) []string {
	r.Helper()
	objects := append(r.objects(label, kind), *object("clusterctl.cluster.x-k8s.io/v1alpha3", "Provider", label+"-system", label, label))
	var found []string
	for i := range objects {
		err := r.client.Get(r.Context(), client.ObjectKeyFromObject(&objects[i]), &objects[i])
		if err != nil && !apierrors.IsNotFound(err) && !meta.IsNoMatchError(err) {
			r.Fatal(err)
		}
		if err == nil && objects[i].GetDeletionTimestamp() == nil {
			found = append(found, manifest.Describe(&objects[i]))
		}
	}
	slices.Sort(found)
	return found
}

// delete runs the command for infrastructure-toy, like a new process.
func (r *fixture) delete(w *testenv.Wire, o ProviderOptions) (messages string, err error) {
	r.Helper()
	ctx, cancel := context.WithCancel(r.Context())
	defer cancel()
	w.Dead = cancel
	streams, buffers := iostreams.Test()
	o.IO, o.Selection = streams, choose.Selection{Infrastructure: []string{"toy"}}
	o.Connect = func(management.Kubeconfig) (*management.Cluster, error) {
		c := rest.CopyConfig(r.env.Config)
		c.Wrap(w.Wrap)
		return management.New(c, "default")
	}
	err = runProviders(ctx, &o)
	return buffers.Err.String() + buffers.Out.String(), err
}

// TestKilled interrupts the deletion of a provider after its first request, its second and so on, until it is not interrupted
// any longer. Each is completed by another run. What the other provider has is never touched.
func TestKilled(t *testing.T) {
	for _, tc := range []struct {
		reason string
		opts   ProviderOptions
		want   []string // what is left of the provider
	}{
		{
			reason: "what users would lose is kept",
			want:   []string{"CustomResourceDefinition toys.toy.example", "Namespace infrastructure-toy-system", "toy default"},
		},
		{
			reason: "CustomResourceDefinitions are deleted, too", opts: ProviderOptions{IncludeCRDs: true},
			want: []string{"Namespace infrastructure-toy-system"},
		},
	} {
		t.Run(tc.reason, func(t *testing.T) {
			r := newFixture(t)
			other := r.exist("bootstrap-toy", "boots")
			first, total := r.undisturbed(tc.opts)
			stops := 0
			for n := range total {
				for _, lose := range []bool{false, true} {
					if os.Getenv(everyVariable) == "" && (lose != (n%2 == 1) || n < first && n%readStride != 0) {
						continue
					}
					stops++
					r.install("infrastructure-toy", "InfrastructureProvider", "toy")
					r.killed(&testenv.Wire{Limit: n, Lose: lose}, tc.opts, tc.want)
				}
			}
			if diff := cmp.Diff(other, r.exist("bootstrap-toy", "boots")); diff != "" || len(other) != 11 {
				t.Errorf("the other provider: -before +after:\n%s", diff)
			}
			t.Logf("%d requests, %d of them before the first deletion; interrupted %d times", total, first, stops)
		})
	}
}

// undisturbed returns the number of requests before the first deletion, and of all.
func (r *fixture) undisturbed(o ProviderOptions) (first, total int) {
	r.Helper()
	r.install("infrastructure-toy", "InfrastructureProvider", "toy")
	w := &testenv.Wire{Limit: -1}
	_, err := r.delete(w, o)
	testenv.Must(r.T, err)
	log := w.Log()
	return slices.IndexFunc(log, func(s string) bool { return strings.HasPrefix(s, "DELETE") }), len(log)
}

// killed interrupts a run, and checks that the next one completes it.
func (r *fixture) killed(w *testenv.Wire, o ProviderOptions, want []string) {
	r.Helper()
	messages, err := r.delete(w, o)
	when := "killed at " + w.Last()
	if err != nil && (strings.Contains(messages+err.Error(), "hush") || strings.Contains(messages+err.Error(), "aHVza")) {
		r.Errorf("%s: a Secret's content is printed: %s, %v", when, messages, err)
	}
	if left := r.exist("infrastructure-toy", "toy"); err != nil && len(left) > len(want) && !slices.Contains(left, "Provider infrastructure-toy-system/infrastructure-toy") {
		r.Errorf("%s: the inventory forgot the provider, which still has %v", when, left)
	}
	_, err = r.delete(&testenv.Wire{Limit: -1}, o)
	// Without an entry, the interrupted run was complete: only its last response was lost.
	if err != nil && !strings.Contains(err.Error(), "infrastructure-toy is not installed") {
		r.Errorf("%s: the next run: %v", when, err)
	}
	if diff := cmp.Diff(want, r.exist("infrastructure-toy", "toy")); diff != "" {
		r.Fatalf("%s: what is left: -want +got:\n%s", when, diff)
	}
}

// TestKeepsObjectsOfUsers checks that CustomResourceDefinitions with objects of users are kept, whatever the labels of these.
func TestKeepsObjectsOfUsers(t *testing.T) {
	r := newFixture(t)
	r.install("infrastructure-toy", "InfrastructureProvider", "toy")
	before := r.exist("infrastructure-toy", "toy")
	mine := object("toy.example/v1", "toy", "", "mine", "bootstrap-toy")
	testenv.Must(t, r.client.Create(t.Context(), mine))
	_, err := r.delete(&testenv.Wire{Limit: -1}, ProviderOptions{IncludeCRDs: true})
	if err == nil || errors.Is(err, testenv.ErrKilled) || !strings.Contains(err.Error(), "toy /mine") {
		t.Errorf("the object is in use, got %v", err)
	}
	if diff := cmp.Diff(before, r.exist("infrastructure-toy", "toy")); diff != "" {
		t.Errorf("nothing may be deleted: -before +after:\n%s", diff)
	}
	testenv.Must(t, r.client.Delete(t.Context(), mine))
}
