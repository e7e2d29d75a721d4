package root

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"sigs.k8s.io/cluster-api/sdk/testenv"
)

// server is the management cluster of TestJourney, and deletes that of TestDeleteProviders: both begin with an empty cluster.
var server, deletes testenv.Server

func TestMain(m *testing.M) { testenv.Main(m, &server, &deletes) }

// journey is a user's way with one management cluster.
type journey struct {
	*cli
	*testenv.Env
}

func object(apiVersion, kind, namespace, name string) *unstructured.Unstructured {
	o := &unstructured.Unstructured{}
	o.SetAPIVersion(apiVersion)
	o.SetKind(kind)
	o.SetNamespace(namespace)
	o.SetName(name)
	return o
}

func (j *journey) get(o client.Object) error {
	return j.Env.Client.Get(j.t.Context(), client.ObjectKeyFromObject(o), o)
}

// inventory returns what the cluster has on record.
func (j *journey) inventory() []string {
	j.t.Helper()
	list := &unstructured.UnstructuredList{}
	list.SetAPIVersion("clusterctl.cluster.x-k8s.io/v1alpha3")
	list.SetKind("ProviderList")
	if err := j.Env.Client.List(j.t.Context(), list); err != nil {
		j.t.Fatal(err)
	}
	var entries []string
	for _, p := range list.Items {
		entries = append(entries, strings.Join([]string{p.GetNamespace(), p.GetName(), p.Object["type"].(string), p.Object["version"].(string)}, " "))
	}
	return entries
}

// versions returns the resource versions of everything that carries clusterctl's label and can be listed here.
func (j *journey) versions() map[string]string {
	j.t.Helper()
	found := map[string]string{}
	for _, kind := range []string{"v1 Namespace", "v1 Secret", "apps/v1 Deployment", "apiextensions.k8s.io/v1 CustomResourceDefinition", "admissionregistration.k8s.io/v1 ValidatingWebhookConfiguration", "clusterctl.cluster.x-k8s.io/v1alpha3 Provider"} {
		apiVersion, name, _ := strings.Cut(kind, " ")
		list := &metav1.PartialObjectMetadataList{TypeMeta: metav1.TypeMeta{APIVersion: apiVersion, Kind: name + "List"}}
		if err := j.Env.Client.List(j.t.Context(), list, client.HasLabels{"clusterctl.cluster.x-k8s.io"}); err != nil {
			j.t.Fatal(err)
		}
		for _, o := range list.Items {
			found[name+" "+o.Namespace+"/"+o.Name] = o.ResourceVersion
		}
	}
	return found
}

// TestJourney goes through the life of a management cluster in the order a user does; each step builds on the ones
// before.
func TestJourney(t *testing.T) {
	c := newCLI(t)
	j := &journey{cli: c, Env: server.Start(t)}
	t.Setenv("KUBECONFIG", j.Kubeconfig)
	j.nothingOnMistakes()
	j.firstInit()
	j.initAgain()
	j.caBundleStays()
	j.rejections()
	j.generate()
	j.kubeconfig()
	j.certManager()
	j.waiting()
}

func (j *journey) nothingOnMistakes() {
	j.fails("Before init there is no management cluster.", []string{"get", "kubeconfig", "c1"}, "not a management cluster", "run `clusterctl init` first")
	j.fails("Every value is asked for before anything is written.", []string{"init", "-i", "toy"}, "infrastructure-toy v1.1.0", "required variable TOY_TOKEN")
	for _, o := range []client.Object{
		object("v1", "Namespace", "", "toy-core-system"),
		object("apiextensions.k8s.io/v1", "CustomResourceDefinition", "", "providers.clusterctl.cluster.x-k8s.io"),
	} {
		if err := j.get(o); !apierrors.IsNotFound(err) {
			j.t.Errorf("a failed init must not have created %s: %v", o.GetName(), err)
		}
	}
}

func (j *journey) firstInit() {
	j.cli = j.with("TOY_TOKEN", "secret-token")
	j.foreignDefinition()
	config := filepath.Join(j.env["XDG_CONFIG_HOME"], "cluster-api", "clusterctl.yaml")
	elsewhere := j.with("XDG_CONFIG_HOME", j.t.TempDir())
	t := j.t
	t.Setenv("KUBECONFIG", filepath.Join(t.TempDir(), "none"))
	r := elsewhere.works("init", "-i", "toy:v1.0.0", "--config", config, "--kubeconfig", j.Kubeconfig)
	elsewhere.nextSteps(r.Out, 2)
	t.Setenv("KUBECONFIG", j.Kubeconfig)
	if !strings.Contains(r.Out, "Your management cluster has been initialized successfully!") || strings.Contains(r.Out+r.Err, "secret-token") {
		j.t.Errorf("init must say that it is done, without secrets:\n%s%s", r.Out, r.Err)
	}
	want := []string{
		"toy-bootstrap-system bootstrap-kubeadm BootstrapProvider v1.0.0",
		"toy-control-plane-system control-plane-kubeadm ControlPlaneProvider v1.0.0",
		"toy-core-system cluster-api CoreProvider v1.0.0",
		"toy-system infrastructure-toy InfrastructureProvider v1.0.0",
	}
	if diff := cmp.Diff(want, j.inventory()); diff != "" {
		j.t.Errorf("inventory: -want +got:\n%s", diff)
	}
	// An object of a kind that the same components define, without namespace.
	if err := j.get(object("toy.example/v1", "ToyIdentity", "", "default")); err != nil {
		j.t.Error(err)
	}
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "toy-system", Name: "toy-credentials"}}
	if err := j.get(secret); err != nil || string(secret.Data["token"]) != "secret-token" {
		j.t.Errorf("variables must be replaced: %v", err)
	}
	wantLabels := map[string]string{"clusterctl.cluster.x-k8s.io": "", "cluster.x-k8s.io/provider": "infrastructure-toy"}
	if diff := cmp.Diff(wantLabels, secret.Labels); diff != "" {
		j.t.Errorf("labels: -want +got:\n%s", diff)
	}
}

// nextSteps runs the commands of clusterctl that an output proposes, as they are, up to kubectl. Their number is expected.
func (c *cli) nextSteps(out string, expected int) {
	c.t.Helper()
	count := 0
	for line := range strings.SplitSeq(out, "\n") {
		command, ok := strings.CutPrefix(line, "  clusterctl ")
		if !ok {
			continue
		}
		count++
		command, _, _ = strings.Cut(command, " | kubectl apply -f -")
		if strings.HasPrefix(command, "create cluster ") {
			command = "generate" + strings.TrimPrefix(command, "create") // Of the same flags; nothing here makes a Cluster ready.
		}
		c.works(strings.Fields(command)...)
	}
	if count != expected {
		c.t.Errorf("%d commands are proposed, want %d:\n%s", count, expected, out)
	}
}

// foreignDefinition ends with the definition being the provider's, because the user says so.
func (j *journey) foreignDefinition() {
	foreign := object("apiextensions.k8s.io/v1", "CustomResourceDefinition", "", "toyidentities.toy.example")
	version := map[string]any{"name": "v1", "served": true, "storage": true, "schema": map[string]any{"openAPIV3Schema": map[string]any{"type": "object", "properties": map[string]any{"mine": map[string]any{"type": "string"}}}}}
	names := map[string]any{"kind": "ToyIdentity", "listKind": "ToyIdentityList", "plural": "toyidentities", "singular": "toyidentity"}
	foreign.Object["spec"] = map[string]any{"group": "toy.example", "scope": "Cluster", "names": names, "versions": []any{version}}
	if err := j.Env.Client.Create(j.t.Context(), foreign); err != nil {
		j.t.Fatal(err)
	}
	const label = "cluster.x-k8s.io/provider=infrastructure-toy"
	j.fails("A definition of others is not overwritten.", []string{"init", "-i", "toy:v1.0.0"},
		"CustomResourceDefinition toyidentities.toy.example exists already, and is of no provider",
		"kubectl label customresourcedefinition.apiextensions.k8s.io toyidentities.toy.example "+label, "--validate=false")
	if err := j.get(object("v1", "Namespace", "", "toy-core-system")); !apierrors.IsNotFound(err) {
		j.t.Errorf("nothing must have been written: %v", err)
	}
	patch := client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"labels":{"cluster.x-k8s.io/provider":"infrastructure-toy"}}}`))
	if err := j.Env.Client.Patch(j.t.Context(), foreign, patch); err != nil {
		j.t.Fatal(err)
	}
}

func (j *journey) initAgain() {
	before := j.versions()
	if len(before) < 12 {
		j.t.Errorf("too few objects to compare: %v", before)
	}
	r := j.works("init", "-i", "toy")
	if !strings.Contains(r.Err, "infrastructure-toy v1.0.0 is already installed in namespace toy-system") || strings.Contains(r.Out, "initialized") {
		j.t.Errorf("init must say what it leaves alone:\n%s%s", r.Out, r.Err)
	}
	if diff := cmp.Diff(before, j.versions()); diff != "" {
		j.t.Errorf("init again must write nothing: -before +after:\n%s", diff)
	}
	// As after an interruption: objects are there, but the core provider and another are not on record.
	for _, o := range []client.Object{
		object("clusterctl.cluster.x-k8s.io/v1alpha3", "Provider", "toy-core-system", "cluster-api"),
		object("clusterctl.cluster.x-k8s.io/v1alpha3", "Provider", "toy-control-plane-system", "control-plane-kubeadm"),
	} {
		if err := j.Env.Client.Delete(j.t.Context(), o); err != nil {
			j.t.Fatal(err)
		}
	}
	r = j.works("init", "-i", "toy:v1.0.0")
	if !strings.Contains(r.Out, "initialized successfully") || len(j.inventory()) != 4 {
		j.t.Errorf("an interrupted init must be completed by the same command: %v\n%s%s", j.inventory(), r.Out, r.Err)
	}
}

func (j *journey) caBundleStays() {
	webhooks := object("admissionregistration.k8s.io/v1", "ValidatingWebhookConfiguration", "", "toy-core")
	bundle := testBundle(j.t)
	patch := client.RawPatch(types.JSONPatchType, []byte(`[{"op":"add","path":"/webhooks/0/clientConfig/caBundle","value":"`+bundle+`"}]`))
	if err := j.Env.Client.Patch(j.t.Context(), webhooks, patch); err != nil {
		j.t.Fatal(err)
	}
	if err := j.Env.Client.Delete(j.t.Context(), object("clusterctl.cluster.x-k8s.io/v1alpha3", "Provider", "toy-core-system", "cluster-api")); err != nil {
		j.t.Fatal(err)
	}
	j.works("init")
	if err := j.get(webhooks); err != nil {
		j.t.Fatal(err)
	}
	list, _, _ := unstructured.NestedSlice(webhooks.Object, "webhooks")
	kept, _, _ := unstructured.NestedString(list[0].(map[string]any), "clientConfig", "caBundle")
	if kept != bundle {
		j.t.Errorf("init again must keep the CA bundle of a running manager, got %q", kept)
	}
}

func (j *journey) rejections() {
	j.fails("Another version requires an upgrade.", []string{"init", "-i", "toy:v1.1.0"}, "infrastructure-toy is already installed in version v1.0.0 in namespace toy-system", "clusterctl upgrade apply --infrastructure toy:v1.1.0")
	j.fails("Another namespace would be a second instance.", []string{"init", "-i", "toy:v1.0.0", "-n", "other"}, "infrastructure-toy is already installed", "omit --target-namespace other")
	r := j.works("init")
	if strings.Count(r.Err, "already installed") != 4 || !strings.Contains(r.Err, "All requested providers are installed") || r.Out != "" {
		j.t.Errorf("init again must say what is there, and succeed: %+v", r)
	}
	r = j.run("init", "--addon", "certified", "-i", "toy:v1.1.0", "--validate=false", "--target-namespace", "BAD")
	if !r.Failed || !strings.Contains(r.Err, `invalid target namespace "BAD"`) {
		j.t.Errorf("without validation mistakes still are mistakes: %s", r.Err)
	}
}

func (j *journey) generate() {
	out := j.works("generate", "cluster", "c1", "--kubernetes-version", "v1.29.0").Out
	if !strings.Contains(out, "kind: ClusterClass") || !strings.Contains(out, "name: c1\n  namespace: default") {
		j.t.Errorf("the one provider's template with its class is expected:\n%s", out)
	}
	class := object("cluster.x-k8s.io/v1beta1", "ClusterClass", "default", "toy")
	if err := j.Env.Client.Create(j.t.Context(), class); err != nil {
		j.t.Fatal(err)
	}
	if out := j.works("generate", "cluster", "c1", "-i", "toy", "--kubernetes-version", "v1.29.0").Out; strings.Contains(out, "kind: ClusterClass") {
		j.t.Errorf("a class that exists must not be included:\n%s", out)
	}
	configMap := &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "templates"},
		Data:       map[string]string{"template": "{apiVersion: v1, kind: ConfigMap, metadata: {name: '${CLUSTER_NAME}'}}"},
	}
	if err := j.Env.Client.Create(j.t.Context(), configMap); err != nil {
		j.t.Fatal(err)
	}
	if out := j.works("generate", "cluster", "c1", "--from-config-map", "templates", "-n", "foo").Out; out != "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: c1\n  namespace: foo\n" {
		j.t.Errorf("got:\n%s", out)
	}
	j.fails("The error lists the existing keys.", []string{"generate", "cluster", "c1", "--from-config-map", "templates", "--from-config-map-key", "x"}, `has no key "x"`, `["template"]`)
	j.fails("A provider that is not installed has no version to use.", []string{"generate", "cluster", "c1", "-i", "aws"}, "infrastructure provider aws is not installed", "--infrastructure aws:{version}")
}

func (j *journey) kubeconfig() {
	j.fails("A missing cluster is an error.", []string{"get", "kubeconfig", "c1"}, "cluster default/c1 not found")
	if err := j.Env.Client.Create(j.t.Context(), object("cluster.x-k8s.io/v1beta1", "Cluster", "default", "c1")); err != nil {
		j.t.Fatal(err)
	}
	j.fails("A cluster without kubeconfig is an error.", []string{"get", "kubeconfig", "c1"}, "cluster default/c1 has no kubeconfig yet")
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "c1-kubeconfig"}, Data: map[string][]byte{"value": []byte("the kubeconfig")}}
	if err := j.Env.Client.Create(j.t.Context(), secret); err != nil {
		j.t.Fatal(err)
	}
	if out := j.works("get", "kubeconfig", "c1", "-n", "default").Out; out != "the kubeconfig\n" {
		j.t.Errorf("got %q", out)
	}
	if out := j.works("__complete", "get", "kubeconfig", "").Out; !strings.Contains(out, "c1\n") {
		j.t.Errorf("cluster names must be completed, got:\n%s", out)
	}
	if out := j.works("__complete", "get", "kubeconfig", "-n", "toy-").Out; !strings.Contains(out, "toy-system\n") {
		j.t.Errorf("namespaces must be completed, got:\n%s", out)
	}
}

func (j *journey) certManager() {
	if err := j.get(object("v1", "Namespace", "", "cert-manager")); !apierrors.IsNotFound(err) {
		j.t.Errorf("cert-manager must not be installed before it is needed: %v", err)
	}
	r := j.works("init", "--addon", "certified")
	if !strings.Contains(r.Err, "Installing cert-manager v1.14.4") {
		j.t.Errorf("init must say that it installs cert-manager:\n%s", r.Err)
	}
	deployment := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: "cert-manager", Name: "cert-manager"}}
	if err := j.get(deployment); err != nil {
		j.t.Fatal(err)
	}
	got := []string{deployment.Labels["clusterctl.cluster.x-k8s.io/core"], deployment.Annotations["cert-manager.clusterctl.cluster.x-k8s.io/version"]}
	if diff := cmp.Diff([]string{"cert-manager", "v1.14.4"}, got); diff != "" {
		j.t.Errorf("label and annotation: -want +got:\n%s", diff)
	}
	if err := j.get(object("cert-manager.io/v1", "Certificate", "certified-system", "serving")); err != nil {
		j.t.Error(err)
	}
	list := &unstructured.UnstructuredList{}
	list.SetAPIVersion("cert-manager.io/v1")
	list.SetKind("IssuerList")
	if err := j.Env.Client.List(j.t.Context(), list); err != nil || len(list.Items) != 0 {
		j.t.Errorf("finding out whether cert-manager works must leave nothing behind: %v, %d Issuers", err, len(list.Items))
	}
}

// waiting ends with an error here, because nothing runs the made-up providers' images.
func (j *journey) waiting() {
	j.fails("What has given up is not waited for, and reported with the reason.", []string{"init", "-i", "toy", "--wait-providers"},
		"provider infrastructure-toy: Deployment toy-system/toy does not start: ", "registry.example/toy/infrastructure:v1.0.0")
}
