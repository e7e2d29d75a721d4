package upgrade

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterctlv1 "sigs.k8s.io/cluster-api/api/clusterctl/v1alpha3"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/clusterctl/iostreams"
	"sigs.k8s.io/cluster-api/clusterctl/management"
	"sigs.k8s.io/cluster-api/packages"
	"sigs.k8s.io/cluster-api/packages/apply"
	"sigs.k8s.io/cluster-api/packages/catalog"
	"sigs.k8s.io/cluster-api/packages/choose"
	"sigs.k8s.io/cluster-api/packages/components"
	"sigs.k8s.io/cluster-api/packages/config"
	"sigs.k8s.io/cluster-api/packages/inventory"
	"sigs.k8s.io/cluster-api/packages/lock"
	"sigs.k8s.io/cluster-api/packages/manifest"
	"sigs.k8s.io/cluster-api/packages/repository"
	"sigs.k8s.io/cluster-api/packages/retry"
	"sigs.k8s.io/cluster-api/sdk/testenv"
)

const (
	oldVersion = "v1.0.0"
	newVersion = "v1.1.0"
	// brokenVersion is newVersion with an image that does not start.
	brokenVersion = "v1.2.0"
	// incompatibleVersion does not have the version in which objects are stored.
	incompatibleVersion = "v1.3.0"

	namespace = "up-system"
)

// common is the part of all versions. Deployments have no replicas: the API server for tests reports them as available.
const common = `
apiVersion: v1
kind: Namespace
metadata: {name: up-system}
---
apiVersion: v1
kind: ServiceAccount
metadata: {name: up-manager, namespace: up-system}
---
apiVersion: v1
kind: Secret
metadata: {name: up-credentials, namespace: up-system}
stringData: {token: secret-VERSION}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: up-leader, namespace: up-system}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: up-leader-VERSION}
subjects: [{kind: ServiceAccount, name: up-manager, namespace: up-system}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: {name: up-leader-VERSION, namespace: up-system}
rules: [{apiGroups: [coordination.k8s.io], resources: [leases], verbs: [get]}]
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: up-controller, namespace: up-system}
spec:
  replicas: REPLICAS
  selector: {matchLabels: {app: up}}
  template:
    metadata: {labels: {app: up}}
    spec: {containers: [{name: manager, image: "registry.example/up:VERSION"}]}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: up-selector, namespace: up-system}
spec:
  replicas: 0
  selector: {matchLabels: {app: SELECTOR}}
  template:
    metadata: {labels: {app: SELECTOR}}
    spec: {containers: [{name: manager, image: "registry.example/up:VERSION"}]}
---
apiVersion: up.example/v1
kind: Thing
metadata: {name: default}
spec: VERSION
---
`

// onlyOld is the part of the old version alone, changed that of all others, with the same names in part.
const onlyOld = `
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: up-manager-role}
rules: [{apiGroups: [up.example], resources: [things], verbs: [get, list]}]
---
apiVersion: v1
kind: ConfigMap
metadata: {name: up-config, namespace: up-system}
data: {a: old}
---
apiVersion: v1
kind: Service
metadata: {name: up-webhook, namespace: up-system}
spec: {selector: {app: up}, ports: [{port: 443, targetPort: 9443}]}
---
apiVersion: v1
kind: Service
metadata: {name: up-metrics, namespace: up-system}
spec: {selector: {app: up}, ports: [{port: 8080}]}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: up-old, namespace: up-system}
spec:
  replicas: 0
  selector: {matchLabels: {app: up-old}}
  template:
    metadata: {labels: {app: up-old}}
    spec: {containers: [{name: other, image: "registry.example/old:VERSION"}]}
---
apiVersion: cert-manager.io/v1
kind: Certificate
metadata: {name: up-serving-cert, namespace: up-system}
spec: {dnsNames: [up-webhook.up-system.svc], secretName: up-webhook-cert}
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingWebhookConfiguration
metadata: {name: up-old, annotations: {cert-manager.io/inject-ca-from: up-system/up-serving-cert}}
webhooks:
- name: old.up.example
  admissionReviewVersions: [v1]
  sideEffects: None
  clientConfig: {caBundle: BUNDLE, service: {name: up-webhook, namespace: up-system, path: /old}}
  rules: [{apiGroups: [up.example], apiVersions: [v1], operations: [CREATE], resources: [nothings]}]
`

const changed = `
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: up-manager-role}
rules: [{apiGroups: [up.example], resources: [things], verbs: ["*"]}]
---
apiVersion: v1
kind: ConfigMap
metadata: {name: up-config, namespace: up-system}
data: {a: new, b: new}
---
apiVersion: v1
kind: Service
metadata: {name: up-webhook, namespace: up-system}
spec: {selector: {app: up-new}, ports: [{port: 443, targetPort: 9444}]}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: up-new, namespace: up-system}
spec:
  replicas: 0
  selector: {matchLabels: {app: up-new}}
  template:
    metadata: {labels: {app: up-new}}
    spec: {containers: [{name: other, image: "registry.example/new:VERSION"}]}
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingWebhookConfiguration
metadata: {name: up-new}
webhooks:
- name: new.up.example
  admissionReviewVersions: [v1]
  sideEffects: None
  clientConfig: {service: {name: up-webhook, namespace: up-system, path: /new}}
  rules: [{apiGroups: [up.example], apiVersions: [v1], operations: [CREATE], resources: [nothings]}]
`

// definition is a CRD of a kind Thing; versions are its versions, the last one is stored.
func definition(kind string, versions ...string) string {
	plural := strings.ToLower(kind) + "s"
	text := fmt.Sprintf(`
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: %s.up.example}
spec:
  group: up.example
  names: {kind: %s, listKind: %sList, plural: %s, singular: %s}
  scope: Cluster
  versions:
`, plural, kind, kind, plural, strings.ToLower(kind))
	for i, v := range versions {
		text += fmt.Sprintf("  - {name: %s, served: true, storage: %t, schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}}\n", v, i == len(versions)-1)
	}
	return text + "---\n"
}

// releases returns the components of all versions.
func releases(bundle string) map[string]string {
	of := func(version, selector string, replicas int, parts ...string) string {
		r := strings.NewReplacer("VERSION", version, "SELECTOR", selector, "REPLICAS", fmt.Sprint(replicas), "BUNDLE", bundle)
		return r.Replace(strings.Join(parts, ""))
	}
	return map[string]string{
		oldVersion:          of(oldVersion, "before", 0, definition("Thing", "v1alpha1", "v1"), common, onlyOld),
		newVersion:          of(newVersion, "after", 0, definition("Thing", "v2", "v1"), definition("Added", "v1"), common, changed),
		brokenVersion:       of(brokenVersion, "after", 1, definition("Thing", "v2", "v1"), definition("Added", "v1"), common, changed),
		incompatibleVersion: of(incompatibleVersion, "after", 0, definition("Thing", "v2"), common, changed),
	}
}

// world is a management cluster with one provider, and a repository with its versions.
type world struct {
	*testing.T
	env *testenv.Env
	// repository has all versions, stable only the old and the new one, and gone only the old one.
	repository, stable, gone string
	// running are the processes that run, by their number, and started is how many were.
	running sync.Map
	started atomic.Int64
}

var server testenv.Server

func TestMain(m *testing.M) { testenv.Main(m, &server) }

func newWorld(t *testing.T) *world {
	w := &world{T: t, env: server.Start(t, "providers/core/config/crd")}
	bundle := base64.StdEncoding.EncodeToString(w.env.Config.CAData)
	w.repository, w.stable, w.gone = t.TempDir(), t.TempDir(), t.TempDir()
	for version, text := range releases(bundle) {
		w.release(w.repository, version, text)
		if version == oldVersion {
			w.release(w.gone, version, text)
		}
		if version == oldVersion || version == newVersion {
			w.release(w.stable, version, text)
		}
	}
	if have, err := inventory.Read(t.Context(), w.connect(nil).Client); err != nil || len(have) == 0 {
		w.install(bundle)
	}
	return w
}

func (w *world) release(dir, version, text string) {
	w.Helper()
	folder := filepath.Join(dir, "cluster-api", version)
	metadata := "apiVersion: clusterctl.cluster.x-k8s.io/v1alpha3\nkind: Metadata\nreleaseSeries:\n"
	for minor := range 4 {
		metadata += fmt.Sprintf("- {major: 1, minor: %d, contract: v1beta1}\n", minor)
	}
	for name, content := range map[string]string{"core-components.yaml": text, "metadata.yaml": metadata} {
		if err := os.MkdirAll(folder, 0o750); err != nil {
			w.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(folder, name), []byte(content), 0o600); err != nil {
			w.Fatal(err)
		}
	}
}

func provider(dir string) packages.Provider {
	return packages.Provider{Name: clusterctlv1.ClusterAPIProviderName, Type: clusterctlv1.CoreProviderType, URL: dir + "/cluster-api/latest/core-components.yaml"}
}

// install installs the old version, as init does, and what users have.
func (w *world) install(bundle string) {
	w.Helper()
	certManager := strings.NewReplacer("up.example", "cert-manager.io", "scope: Cluster", "scope: Namespaced").Replace(definition("Certificate", "v1") + definition("Issuer", "v1"))
	cluster := w.connect(nil)
	writer := &apply.Writer{Client: cluster.Client, Backoff: retry.Backoff()}
	// Thing was stored in its first version.
	for _, text := range []string{certManager, definition("Thing", "v1alpha1"), "{apiVersion: up.example/v1alpha1, kind: Thing, metadata: {name: mine}, spec: kept}"} {
		objects, err := manifest.Parse([]byte(text))
		testenv.Must(w.T, err)
		testenv.Must(w.T, writer.Objects(w.Context(), objects))
	}
	c, err := components.New(provider(w.repository), []byte(releases(bundle)[oldVersion]), components.Options{Version: oldVersion})
	testenv.Must(w.T, err)
	crd, err := manifest.Parse(inventory.CRD())
	testenv.Must(w.T, err)
	testenv.Must(w.T, inventory.EnsureCRD(w.Context(), writer, crd))
	testenv.Must(w.T, writer.Objects(w.Context(), c.Objects))
	testenv.Must(w.T, inventory.Record(w.Context(), writer, c.Inventory()))
	w.patch("apps/v1", "Deployment", "up-controller", `{"metadata":{"labels":{"mine":"kept"},"annotations":{"mine":"kept"},"finalizers":["mine.example/kept"]}}`)
}

func (w *world) patch(apiVersion, kind, name, patch string) {
	w.Helper()
	o := &unstructured.Unstructured{}
	o.SetAPIVersion(apiVersion)
	o.SetKind(kind)
	o.SetNamespace(namespace)
	o.SetName(name)
	testenv.Must(w.T, w.env.Client.Patch(context.WithoutCancel(w.Context()), o, client.RawPatch(types.MergePatchType, []byte(patch))))
}

func (w *world) connect(n *testenv.Wire) *management.Cluster {
	w.Helper()
	c := rest.CopyConfig(w.env.Config)
	if n != nil {
		c.Wrap(n.Wrap)
	}
	cluster, err := management.New(c, "default")
	testenv.Must(w.T, err)
	return cluster
}

// apply upgrades to a version of a repository.
func (w *world) apply(n *testenv.Wire, dir, version string) (string, error) {
	w.Helper()
	return w.request(n, dir, choose.UpgradeRequest{Selection: choose.Selection{Core: "cluster-api:" + version}})
}

// request runs the command like a new process.
func (w *world) request(n *testenv.Wire, dir string, r choose.UpgradeRequest) (string, error) {
	w.Helper()
	ctx, cancel := context.WithCancel(w.Context())
	defer cancel()
	n.Dead = cancel
	pid := int(w.started.Add(1))
	w.running.Store(pid, true)
	defer w.running.Delete(pid)
	streams, buffers := iostreams.Test()
	opts := &ApplyOptions{
		Replacing: Replacing{
			IO: streams, Clock: clock.RealClock{},
			Self: lock.Holder{Host: "h", PID: pid}, Ended: func(h lock.Holder) bool { _, runs := w.running.Load(h.PID); return !runs },
			Connect: func(management.Kubeconfig) (*management.Cluster, error) { return w.connect(n), nil },
		},
		WaitTimeout: 20, Request: r,
		Catalog: func(context.Context) (*catalog.Catalog, error) {
			conf := config.Default(func(string) (string, bool) { return "", false })
			conf.Providers = []packages.Provider{provider(dir)}
			return &catalog.Catalog{Config: conf, Store: repository.NewStore(repository.Options{})}, nil
		},
	}
	err := runApply(ctx, opts)
	return buffers.Err.String() + buffers.Out.String(), err
}

// state returns everything that the provider has, without what differs between equal clusters, and the UIDs of what must
// never be deleted.
func (w *world) state() map[string]string {
	w.Helper()
	found := map[string]string{}
	labels := client.MatchingLabels{clusterv1.ProviderNameLabel: "cluster-api"}
	for _, kind := range []string{
		"v1 Namespace", "v1 ServiceAccount", "v1 Secret", "v1 ConfigMap", "v1 Service", "apps/v1 Deployment", "up.example/v1 Thing",
		"rbac.authorization.k8s.io/v1 Role", "rbac.authorization.k8s.io/v1 RoleBinding", "rbac.authorization.k8s.io/v1 ClusterRole",
		"cert-manager.io/v1 Certificate", "admissionregistration.k8s.io/v1 ValidatingWebhookConfiguration",
		"apiextensions.k8s.io/v1 CustomResourceDefinition", "clusterctl.cluster.x-k8s.io/v1alpha3 Provider",
	} {
		apiVersion, name, _ := strings.Cut(kind, " ")
		list := &unstructured.UnstructuredList{}
		list.SetAPIVersion(apiVersion)
		list.SetKind(name + "List")
		testenv.Must(w.T, w.env.Client.List(w.Context(), list, labels))
		for i := range list.Items {
			o := &list.Items[i]
			found[name+" "+o.GetName()] = text(w.T, o)
		}
	}
	mine := &unstructured.Unstructured{}
	mine.SetAPIVersion("up.example/v1")
	mine.SetKind("Thing")
	testenv.Must(w.T, w.env.Client.Get(w.Context(), client.ObjectKey{Name: "mine"}, mine))
	ns := &corev1.Namespace{}
	testenv.Must(w.T, w.env.Client.Get(w.Context(), client.ObjectKey{Name: namespace}, ns))
	found["mine"], found["namespace"] = string(mine.GetUID())+text(w.T, mine), string(ns.UID)
	return found
}

// text returns an object's metadata of users, and all fields but the status.
func text(t *testing.T, o *unstructured.Unstructured) string {
	t.Helper()
	fields := maps.Clone(o.Object)
	delete(fields, "status")
	annotations := o.GetAnnotations()
	delete(annotations, "deployment.kubernetes.io/revision")
	fields["metadata"] = map[string]any{"labels": o.GetLabels(), "annotations": annotations, "finalizers": o.GetFinalizers()}
	// Addresses are allocated again if a Service is created again.
	for _, field := range []string{"clusterIP", "clusterIPs"} {
		unstructured.RemoveNestedField(fields, "spec", field)
	}
	raw, err := json.Marshal(fields)
	if err != nil {
		t.Fatal(err)
	}
	return string(raw)
}

// storedVersions returns those of Thing, and sets them if any are given.
func (w *world) storedVersions(set ...string) []string {
	w.Helper()
	crd := &unstructured.Unstructured{}
	crd.SetAPIVersion("apiextensions.k8s.io/v1")
	crd.SetKind(manifest.KindCRD)
	crd.SetName("things.up.example")
	if len(set) > 0 {
		patch, err := json.Marshal(map[string]any{"status": map[string]any{"storedVersions": set}})
		testenv.Must(w.T, err)
		testenv.Must(w.T, w.env.Client.Status().Patch(w.Context(), crd, client.RawPatch(types.MergePatchType, patch)))
	}
	testenv.Must(w.T, w.env.Client.Get(w.Context(), client.ObjectKeyFromObject(crd), crd))
	stored, _, err := unstructured.NestedStringSlice(crd.Object, "status", "storedVersions")
	testenv.Must(w.T, err)
	return stored
}
