package cluster

import (
	"crypto/tls"
	"crypto/x509"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1beta1 "sigs.k8s.io/cluster-api/api/core/v1beta1"
	inmemoryv1 "sigs.k8s.io/cluster-api/api/infrastructure/inmemory/v1alpha1"
	"sigs.k8s.io/cluster-api/sdk/pki"
	"sigs.k8s.io/cluster-api/sdk/testenv"
)

// serves returns an error unless an API server with a certificate of the CA listens.
func serves(address string, ca *pki.CA) error {
	roots := x509.NewCertPool()
	roots.AddCert(ca.Certificate)
	conn, err := tls.Dial("tcp", address, &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: roots})
	if err == nil {
		err = conn.Close()
	}
	return err
}

// TestHostedControlPlane starts, upgrades and stops an API server without machines.
func TestHostedControlPlane(t *testing.T) {
	infra := newInfra()
	infra.Spec.HostedControlPlane = &inmemoryv1.HostedControlPlane{Version: "v1.30.5"}
	w := newWorld(t, newCluster(), infra)
	w.reconcile(t)
	address := addressOf(w.read(t))
	if !w.read(t).Status.Ready || w.read(t).Status.HostedControlPlaneVersion != "" {
		t.Errorf("without a CA there is an endpoint, and no control plane: %+v", w.read(t).Status)
	}

	ca, err := pki.NewCA(pki.ECDSA, time.Now())
	testenv.Must(t, err)
	pair, err := ca.PEM()
	testenv.Must(t, err)
	testenv.Must(t, w.Create(t.Context(), pki.NewSecret(key, pki.ClusterCA, pair.Data(), nil)))
	w.reconcile(t)
	if got := w.read(t).Status.HostedControlPlaneVersion; got != "v1.30.5" {
		t.Errorf("version %q, want v1.30.5", got)
	}
	testenv.Must(t, serves(address, ca))
	w.restart(t)
	w.reconcile(t)
	testenv.Must(t, serves(address, ca))

	obj := w.read(t)
	obj.Spec.HostedControlPlane.Version = "v1.31.2"
	testenv.Must(t, w.Update(t.Context(), obj))
	w.reconcile(t)
	endpoint, _ := w.lab.Server.Endpoint(key)
	if got := endpoint.Version(); got != "v1.31.2" || w.read(t).Status.HostedControlPlaneVersion != "v1.31.2" {
		t.Errorf("version %q, status %+v, want v1.31.2", got, w.read(t).Status)
	}

	obj = w.read(t)
	obj.Spec.HostedControlPlane = nil
	testenv.Must(t, w.Update(t.Context(), obj))
	w.reconcile(t)
	if err := serves(address, ca); err == nil || w.read(t).Status.HostedControlPlaneVersion != "" {
		t.Errorf("it still serves: %+v", w.read(t).Status)
	}
	if _, err := w.runner.Reconcile(t.Context(), ctrl.Request{NamespacedName: client.ObjectKeyFromObject(obj)}); err != nil {
		t.Error(err)
	}
}

// TestFailureDomains copies failure domains to the status, and removes those that are removed from the spec.
func TestFailureDomains(t *testing.T) {
	w := newWorld(t, newCluster(), newInfra())
	for _, domains := range []clusterv1beta1.FailureDomains{
		{"a": {ControlPlane: true, Attributes: map[string]string{"rack": "1"}}, "b": {}},
		{"b": {}},
		nil,
	} {
		obj := w.read(t)
		obj.Spec.FailureDomains = domains
		testenv.Must(t, w.Update(t.Context(), obj))
		w.reconcile(t)
		if diff := cmp.Diff(domains, w.read(t).Status.FailureDomains); diff != "" {
			t.Errorf("-want +got:\n%s", diff)
		}
	}
}
