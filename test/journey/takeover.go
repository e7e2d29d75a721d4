package journey

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/util/cert"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"sigs.k8s.io/cluster-api/sdk/testenv"
)

// upgradeTimeout is the --wait-provider-timeout of upgrades, in seconds.
const upgradeTimeout = "120"

// NewPublished starts a management cluster with the components of Cluster API v1.7, which our programs run in, and returns the repository
// that they are from. Without the definitions of v1.7, the test is skipped.
func NewPublished(t testing.TB, tools *Tools) (*Repository, *World) {
	t.Helper()
	r, s := newPublished(t, tools)
	return r, s.Management().World(t)
}

// newPublished is NewPublished for tests that need the program itself.
func newPublished(t testing.TB, tools *Tools) (*Repository, *Standalone) {
	t.Helper()
	definitions := publishedDefinitions(t, tools.Root)
	r := NewRepository(t, tools)
	r.ReleasePublished(definitions)
	s := NewStandalone(t, r.Tools)
	prepareCertManager(t, r.Tools, s.kubeconfig())
	testenv.Must(t, r.Tools.install(t.Context(), s.kubeconfig()))
	return r, s
}

// Upgrade upgrades all providers to the latest version.
func (w *World) Upgrade() {
	w.t.Helper()
	if r := w.upgradeAll(); r.Failed {
		w.t.Fatal(r)
	}
}

func (w *World) upgradeAll() Result {
	return w.Tools.Clusterctl(w.t.Context(), "", "upgrade", "apply", "--kubeconfig", w.Kubeconfig, "--contract", "v1beta1",
		"--wait-provider-timeout", upgradeTimeout)
}

// HandedBack installs v1.7 again, and checks that no Machine is replaced, and nothing left that it does not know.
func (c *Subject) HandedBack() {
	w, version := c.World, publishedVersion
	w.t.Helper()
	run := func(arguments ...string) string {
		w.t.Helper()
		r := w.Tools.Clusterctl(w.t.Context(), "", append(arguments, "--kubeconfig", w.Kubeconfig)...)
		if r.Failed {
			w.t.Fatal(r)
		}
		return r.Out
	}
	before := c.Snapshot()
	planned := run("takeover", "handback", "--to", version, "--dry-run")
	hook := "remove annotation pre-terminate.delete.hook.machine.cluster.x-k8s.io/kcp-cleanup from Machine " + w.Namespace + "/"
	if !strings.Contains(planned, hook) {
		w.t.Errorf("the hook of the control plane Machine is not planned to be removed:\n%s", planned)
	}
	if r := w.Tools.Clusterctl(w.t.Context(), "", "takeover", "handback", "--to", version, "--kubeconfig", w.Kubeconfig); !r.Failed {
		w.t.Errorf("objects are handed back while the managers of this version run: %s", r)
	}
	run("upgrade", "apply", "--core", "cluster-api:"+version, "--bootstrap", "kubeadm:"+version, "--control-plane", "kubeadm:"+version,
		"--infrastructure", w.Tools.Infrastructure+":"+version, "--wait-provider-timeout", upgradeTimeout)
	run("takeover", "handback", "--to", version)
	if left := run("takeover", "handback", "--to", version, "--dry-run"); left != "" {
		w.t.Errorf("what %s does not know is left:\n%s", version, left)
	}
	c.Eventually("the Cluster stays ready in the hands of the previous version", Ready, SameMachines((*Snapshot).Workers, before),
		SameMachines((*Snapshot).ControlPlane, before), c.WorkloadMatches)
}

// certManagerDefinitions are the kinds of cert-manager that components use. Nothing reconciles them.
const certManagerDefinitions = `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: certificates.cert-manager.io}
spec:
  group: cert-manager.io
  names: {kind: Certificate, listKind: CertificateList, plural: certificates, singular: certificate}
  scope: Namespaced
  versions: [{name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}}]
---
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: issuers.cert-manager.io}
spec:
  group: cert-manager.io
  names: {kind: Issuer, listKind: IssuerList, plural: issuers, singular: issuer}
  scope: Namespaced
  versions: [{name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}}]
`

// prepareCertManager creates the kinds of cert-manager, and the Secrets that it would have issued.
func prepareCertManager(t testing.TB, tools *Tools, kubeconfig string) {
	t.Helper()
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	testenv.Must(t, err)
	api, err := client.New(config, client.Options{})
	testenv.Must(t, err)
	objects, err := parseObjects(certManagerDefinitions)
	testenv.Must(t, err)
	for _, o := range objects {
		testenv.Must(t, api.Create(t.Context(), o))
	}
	for _, p := range publishedComponents(tools.Infrastructure) {
		pair, key, err := cert.GenerateSelfSignedCertKey(p.host(), nil, nil)
		testenv.Must(t, err)
		chain, err := cert.ParseCertsPEM(pair)
		testenv.Must(t, err)
		ca, err := cert.EncodeCertificates(chain[len(chain)-1])
		testenv.Must(t, err)
		testenv.Must(t, api.Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: p.namespace}}))
		testenv.Must(t, api.Create(t.Context(), &corev1.Secret{
			ObjectMeta: metav1.ObjectMeta{
				Namespace: p.namespace, Name: p.secret(),
				Labels:      map[string]string{"controller.cert-manager.io/fao": "true"},
				Annotations: map[string]string{"cert-manager.io/certificate-name": p.prefix + "serving-cert", "cert-manager.io/issuer-kind": "Issuer"},
			},
			Type: corev1.SecretTypeTLS,
			Data: map[string][]byte{"ca.crt": ca, corev1.TLSCertKey: pair, corev1.TLSPrivateKeyKey: key},
		}))
	}
}
