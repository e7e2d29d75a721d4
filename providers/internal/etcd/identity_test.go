package etcd

import (
	"crypto/x509"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/cert"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"sigs.k8s.io/cluster-api/sdk/pki"
)

var (
	cluster = types.NamespacedName{Namespace: "default", Name: "c"}
	start   = time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)
)

func newCA(t *testing.T) (*pki.CA, pki.Pair) {
	t.Helper()
	a, err := pki.NewCA("", start)
	if err != nil {
		t.Fatal(err)
	}
	pair, err := a.PEM()
	if err != nil {
		t.Fatal(err)
	}
	return a, pair
}

func TestIdentityIsKeptAndRenewed(t *testing.T) {
	_, ca := newCA(t)
	secret := pki.NewSecret(cluster, pki.EtcdCA, ca.Data(), nil)
	secrets := fake.NewClientBuilder().WithObjects(secret).Build()
	now := clocktesting.NewFakePassiveClock(start)
	i := &Identity{Secrets: secrets, Cluster: cluster, Clock: now}
	get := func() *proof {
		p, err := i.get(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		return p
	}
	first := get()
	leaf := first.client.Leaf
	if leaf.Subject.CommonName != "cluster-api.x-k8s.io" || !leaf.NotAfter.Equal(start.Add(24*time.Hour)) {
		t.Errorf("the certificate is for %s until %s", leaf.Subject.CommonName, leaf.NotAfter)
	}
	now.SetTime(start.Add(12*time.Hour - time.Second))
	if get() != first {
		t.Error("a valid certificate was not kept")
	}
	now.SetTime(start.Add(12 * time.Hour))
	second := get()
	if second == first || !second.client.Leaf.NotAfter.Equal(start.Add(36*time.Hour)) {
		t.Error("a certificate was not renewed after half of its validity")
	}
	_, other := newCA(t)
	secret.Data = other.Data()
	if err := secrets.Update(t.Context(), secret); err != nil {
		t.Fatal(err)
	}
	if get() == second {
		t.Error("a certificate was kept although the CA has changed")
	}
}

func TestIdentitySources(t *testing.T) {
	a, ca := newCA(t)
	brought, err := a.Issue(pki.Request{CommonName: "brought", Validity: time.Hour}, start)
	if err != nil {
		t.Fatal(err)
	}
	_, foreign := newCA(t)
	onlyTrusted := pki.NewSecret(cluster, pki.EtcdCA, map[string][]byte{pki.CertificateKey: ca.Certificate}, nil)
	tests := map[string]struct {
		reason  string
		objects []client.Object
		want    string
		wantErr string
	}{
		"Issued": {
			reason:  "With the key of the CA, a certificate is issued.",
			objects: []client.Object{pki.NewSecret(cluster, pki.EtcdCA, ca.Data(), nil)},
			want:    "cluster-api.x-k8s.io",
		},
		"Brought": {
			reason:  "Without the key, the certificate of the user is used.",
			objects: []client.Object{onlyTrusted, pki.NewSecret(cluster, pki.APIServerEtcdClient, brought.Data(), nil)},
			want:    "brought",
		},
		"NoKey": {
			reason:  "The error says what to do.",
			objects: []client.Object{onlyTrusted},
			wantErr: "Secret default/c-apiserver-etcd-client does not exist: create it with a client certificate",
		},
		"NoSecret": {
			reason:  "The CA is required.",
			wantErr: "reading the etcd CA, Secret default/c-etcd",
		},
		"Mismatch": {
			reason: "A wrong key is an error that does not contain it.",
			objects: []client.Object{onlyTrusted, pki.NewSecret(cluster, pki.APIServerEtcdClient,
				pki.Pair{Certificate: brought.Certificate, Key: foreign.Key}.Data(), nil)},
			wantErr: "do not match",
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			i := &Identity{Secrets: fake.NewClientBuilder().WithObjects(tc.objects...).Build(), Cluster: cluster, Clock: clocktesting.NewFakePassiveClock(start)}
			got, err := i.get(t.Context())
			if tc.wantErr != "" {
				if err == nil || !strings.Contains(err.Error(), tc.wantErr) {
					t.Errorf("%s\nget(): %v, want %q", tc.reason, err, tc.wantErr)
				}
				return
			}
			if err != nil {
				t.Fatalf("%s\nget(): %v", tc.reason, err)
			}
			if diff := cmp.Diff(tc.want, got.client.Leaf.Subject.CommonName); diff != "" {
				t.Errorf("%s\nget(): -want +got:\n%s", tc.reason, diff)
			}
		})
	}
}

func TestVerify(t *testing.T) {
	own, _ := newCA(t)
	foreign, _ := newCA(t)
	tests := map[string]struct {
		reason  string
		from    *pki.CA
		names   []string
		now     time.Time
		wantErr string
	}{
		"Kubeadm":  {reason: "Certificates of kubeadm have the names of the Node and localhost.", from: own, names: []string{"a", "localhost"}, now: start},
		"Pod":      {reason: "The name of the Pod is accepted, too.", from: own, names: []string{"etcd-a"}, now: start},
		"Other":    {reason: "The certificate of another member is rejected.", from: own, names: []string{"b"}, now: start, wantErr: "not valid for any of [etcd-a a localhost]"},
		"Foreign":  {reason: "The certificate of another CA is rejected.", from: foreign, names: []string{"a"}, now: start, wantErr: "unknown authority"},
		"Expired":  {reason: "An expired certificate is rejected.", from: own, names: []string{"a"}, now: start.Add(2 * time.Hour), wantErr: "expired"},
		"IsClient": {reason: "A client certificate is rejected.", from: own, now: start, wantErr: "incompatible key usage"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			pair, err := tc.from.Issue(pki.Request{CommonName: "member", DNSNames: tc.names, Validity: time.Hour}, start)
			if err != nil {
				t.Fatal(err)
			}
			chain, err := cert.ParseCertsPEM(pair.Certificate)
			if err != nil {
				t.Fatal(err)
			}
			roots := x509.NewCertPool()
			roots.AddCert(own.Certificate)
			err = verify(chain, roots, tc.now, "etcd-a", "a", "localhost")
			if (err == nil) != (tc.wantErr == "") || (err != nil && !strings.Contains(err.Error(), tc.wantErr)) {
				t.Errorf("%s\nverify(): %v, want %q", tc.reason, err, tc.wantErr)
			}
		})
	}
}
