package extensionconfig

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"sigs.k8s.io/cluster-api/sdk/testenv"
	"sigs.k8s.io/cluster-api/test/extensiontest"
)

func TestCA(t *testing.T) {
	key, err := extensiontest.Key()
	testenv.Must(t, err)
	const (
		prefix     = "False Error DiscoveryFailed error in discovery: "
		annotation = "annotation runtime.cluster.x-k8s.io/inject-ca-from-secret"
	)
	for _, tc := range []struct {
		reason, ref string
		data        map[string][]byte
		want        string
	}{
		{reason: "no slash", ref: "s", want: prefix + annotation + ` must be <namespace>/<name> of a Secret, not "s"`},
		{reason: "no name", ref: "ns/", want: prefix + annotation + ` must be <namespace>/<name> of a Secret, not "ns/"`},
		{reason: "a path", ref: "ns/s/t", want: prefix + annotation + ` must be <namespace>/<name> of a Secret, not "ns/s/t"`},
		{reason: "no Secret", ref: "ns/missing", want: prefix + "Secret ns/missing in " + annotation + " does not exist"},
		{reason: "no key", ref: "ns/s", data: map[string][]byte{"tls.crt": []byte("x")}, want: prefix + "Secret ns/s in " + annotation + " has no key ca.crt"},
		{reason: "no certificate", ref: "ns/s", data: map[string][]byte{"ca.crt": []byte("secret")},
			want: prefix + "key ca.crt of Secret ns/s in " + annotation + " has no certificate in PEM"},
		{reason: "a private key is not copied", ref: "ns/s", data: map[string][]byte{"ca.crt": key},
			want: prefix + "key ca.crt of Secret ns/s in " + annotation + " must have only certificates, in PEM"},
	} {
		t.Run(tc.reason, func(t *testing.T) {
			server := serving(t, discovery())
			w := newWorld(t, config(server, injected(tc.ref)), secret(tc.data))
			testenv.Must(t, w.reconcile())
			if got := w.state(); got != tc.want {
				t.Errorf("got  %s\nwant %s", got, tc.want)
			}
			if len(w.config().Spec.ClientConfig.CABundle) > 0 || len(server.Calls()) > 0 {
				t.Error("the server was called without a CA")
			}
			writes := len(w.Writes)
			testenv.Must(t, w.reconcile())
			if diff := cmp.Diff(0, len(w.Writes)-writes); diff != "" {
				t.Errorf("writes without a change: %v", w.Writes[writes:])
			}
		})
	}
}

func TestCAIsInjectedAndRotated(t *testing.T) {
	old, server := serving(t, discovery()), serving(t, discovery(found("a", "BeforeClusterCreate")))
	w := newWorld(t, config(server, injected("ns/s")), secret(map[string][]byte{"ca.crt": old.CA}))
	if err := w.reconcile(); err == nil {
		t.Error("the discovery must be retried")
	}
	if got, want := w.state(), "False Error DiscoveryFailed error in discovery: the certificate of the server is not signed by a CA of spec.clientConfig.caBundle"; got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	if diff := cmp.Diff(string(old.CA), string(w.config().Spec.ClientConfig.CABundle)); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	testenv.Must(t, w.Client.Update(t.Context(), secret(map[string][]byte{"ca.crt": server.CA})))
	testenv.Must(t, w.reconcile())
	if got := w.state(); got != "True" || len(w.config().Status.Handlers) != 1 {
		t.Errorf("got %s, %v", got, w.config().Status.Handlers)
	}
	if diff := cmp.Diff(string(server.CA), string(w.config().Spec.ClientConfig.CABundle)); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestSecretsWake(t *testing.T) {
	w := newWorld(t, config(serving(t, discovery()), injected("ns/s")))
	c := &Controller{Clients: w.ForController()}
	want := []reconcile.Request{{NamespacedName: client.ObjectKey{Name: "e"}}}
	if diff := cmp.Diff(want, c.ofSecret(t.Context(), secret(nil))); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	other := secret(nil)
	other.Name = "other"
	if got := c.ofSecret(t.Context(), other); len(got) > 0 {
		t.Errorf("got %v for another Secret", got)
	}
}
