package credentials

import (
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	controlplanev1 "sigs.k8s.io/cluster-api/api/controlplane/v1beta2"
	"sigs.k8s.io/cluster-api/sdk/pki"
	"sigs.k8s.io/cluster-api/sdk/testenv"
	"sigs.k8s.io/cluster-api/sdk/testenv/object"
)

// TestExpiries: a CA is read when its Secret was, again when the Secret has changed, and is forgotten with its control plane.
func TestExpiries(t *testing.T) {
	stored := &controlplanev1.KubeadmControlPlane{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "cp", UID: "cp-uid"}}
	b := newBench(t, stored)
	b.Keys = pki.NewKeys(pki.ECDSA)
	take := func() {
		t.Helper()
		if _, err := b.take(t.Context(), "certificates"); err != nil {
			t.Fatal(err)
		}
	}
	take()
	all := b.provider.Expiries(b.KCP.UID)
	if len(all) != 3 || all[0].Secret != "c-ca" || all[1].Secret != "c-etcd" || all[2].Secret != "c-proxy" {
		t.Fatalf("CAs: %+v", all)
	}
	soon := object.Now().Add(48 * time.Hour).Truncate(time.Second)
	pair, err := b.Keys.GenerateUntil(pki.EtcdCA, object.Now(), soon)
	if err != nil {
		t.Fatal(err)
	}
	etcd := b.secret(t, pki.EtcdCA)
	etcd.Data = pair.Data()
	testenv.Must(t, b.API.Update(t.Context(), etcd))
	take()
	if got := b.provider.Expiries(b.KCP.UID)[1].At; !got.Equal(soon) {
		t.Errorf("the CA of etcd expires at %s, want %s", got, soon)
	}
	if got := collected(t, b.provider); len(got) != 3 || got["c-etcd"] != float64(soon.Unix()) || got["c-ca"] != float64(all[0].At.Unix()) {
		t.Errorf("metrics: %v", got)
	}
	b.API.Writes = nil
	take()
	if len(b.API.Writes) != 0 {
		t.Errorf("writes at rest: %v", b.API.Writes)
	}
	testenv.Must(t, b.API.Delete(t.Context(), stored))
	if n := len(collected(t, b.provider)); n != 0 || b.provider.Expiries(b.KCP.UID) != nil {
		t.Errorf("%d metrics of a control plane that was moved away", n)
	}
}

// collected returns the values of the metric, by Secret.
func collected(t *testing.T, p *Provider) map[string]float64 {
	t.Helper()
	registry := prometheus.NewRegistry()
	testenv.Must(t, registry.Register(p))
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	values := map[string]float64{}
	for _, f := range families {
		for _, m := range f.GetMetric() {
			labels := map[string]string{}
			for _, l := range m.GetLabel() {
				labels[l.GetName()] = l.GetValue()
			}
			values[labels["cluster_name"]+"-"+labels["certificate_authority"]] = m.GetGauge().GetValue()
		}
	}
	return values
}
